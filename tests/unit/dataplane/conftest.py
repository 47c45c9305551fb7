import pytest
from lenders import Lent
from stored_queue import Queue
from wires import Broker


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def queue() -> Queue:
    return Queue()


@pytest.fixture
def lent() -> Lent:
    return Lent()
