"""A database in memory for each test of the inbox."""

import sqlite3
from collections.abc import Iterator

import pytest


@pytest.fixture
def database() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    yield connection
    connection.close()
