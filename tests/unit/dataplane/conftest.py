import pytest
from wires import Broker


@pytest.fixture
def broker() -> Broker:
    return Broker()
