import pytest
from federated_queues import FederatedQueue
from stored_queue import Queue
from wires import Broker


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def queue() -> Queue:
    return Queue()


@pytest.fixture
def remote() -> FederatedQueue:
    return FederatedQueue()
