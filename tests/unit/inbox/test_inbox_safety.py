"""What would have effects happen twice, or never: other streams, other drivers, equal ids."""

import re
import sqlite3
import uuid
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from inboxes import inbox_of

from cogwork.amqp.errors import DecodeError
from cogwork.inbox import (
    AnotherStream,
    Inbox,
    NoTransaction,
    Overtaken,
    RowcountUnknown,
    _id_text,
)
from cogwork.plugin.engine.contract import FromOffset, Origin

STREAM = "stream/orders"


# -- a stream that begins again


class Kept:
    """A record, as far as the inbox looks at it."""

    def __init__(self, offset: int, body: object = b"", time_ms: int = 1000) -> None:
        self.offset = offset
        self.time_ms = time_ms
        self._body = body

    @property
    def body(self) -> object:
        if self._body is None:
            raise DecodeError("it cannot be read", 0)
        return self._body


def record(offset: int, body: object = b"", time_ms: int = 1000) -> Any:
    return Kept(offset, body, time_ms)


def test_the_last_record_is_known_again(database: sqlite3.Connection) -> None:
    inbox = inbox_of(database)
    for offset, body in enumerate((b"a", "b", {"c": 1}, None)):
        assert inbox.take_record(STREAM, record(offset, body))
        assert not inbox.take_record(STREAM, record(offset, body))
        assert inbox.position(STREAM) == offset + 1
    assert not inbox.take_record(STREAM, record(0, "of which nothing is known any more"))


@pytest.mark.parametrize("other", [record(1, b"b", 1001), record(1, b"c"), record(1, "")])
def test_another_record_in_its_place_is_another_stream(
    database: sqlite3.Connection, other: Any
) -> None:
    inbox = inbox_of(database)
    inbox.take_record(STREAM, record(0, b"a"))
    inbox.take_record(STREAM, record(1, b"b"))
    said = f"{STREAM} is not the stream that the consumer 'billing' has read: its record 1 is"
    with pytest.raises(AnotherStream, match=said) as raised:
        inbox.take_record(STREAM, other)
    assert (raised.value.consumer, raised.value.stream, raised.value.offset) == (
        "billing",
        STREAM,
        1,
    )
    assert inbox_of(database, "shipping").take_record(STREAM, other)
    inbox.forget(STREAM)
    assert inbox.start(STREAM) is Origin.FIRST
    assert inbox.take_record(STREAM, other)


def test_a_seam_stays_true_where_only_offsets_are_taken(database: sqlite3.Connection) -> None:
    inbox = inbox_of(database)
    inbox.take_record(STREAM, record(1, b"b"))
    inbox.take(STREAM, 4)
    assert not inbox.take_record(STREAM, record(4, b"whichever"))
    assert not inbox.take_record(STREAM, record(1, b"b"))
    with pytest.raises(AnotherStream):
        inbox.take_record(STREAM, record(1, b"c"))


def test_what_is_forgotten_is_compared_with_nothing(database: sqlite3.Connection) -> None:
    inbox = inbox_of(database)
    inbox.take_record(STREAM, record(1, b"b"))
    inbox.forget(STREAM)
    inbox.take(STREAM, 4)
    assert not inbox.take_record(STREAM, record(1, b"c"))


def test_a_seam_is_committed_with_its_position(database: sqlite3.Connection) -> None:
    inbox = inbox_of(database)
    with database:
        inbox.take_record(STREAM, record(0, b"a"))
    inbox.take_record(STREAM, record(1, b"b"))
    database.rollback()
    assert inbox.take_record(STREAM, record(1, b"c"))


def test_tables_from_before_seams_go_on(database: sqlite3.Connection) -> None:
    for statement in Inbox(database, "billing").statements()[:2]:
        database.execute(statement)
    inbox = Inbox(database, "billing")
    inbox.take(STREAM, 0)
    assert inbox.take_batch(STREAM, 1, 2) == 0
    assert inbox.take_id("queue/q", "m")
    assert inbox.start(STREAM) == FromOffset(3)
    inbox.create()
    assert inbox.take_record(STREAM, record(3))


# -- what drivers do


class Cursor:
    """SQLite's, of which a test may change what it says."""

    def __init__(self, cursor: sqlite3.Cursor) -> None:
        self._cursor = cursor

    @property
    def rowcount(self) -> int:
        return self._cursor.rowcount

    def execute(self, operation: str, parameters: Sequence[Any] = (), /) -> object:
        return self._cursor.execute(operation, parameters)

    def fetchone(self) -> Sequence[Any] | None:
        found: Sequence[Any] | None = self._cursor.fetchone()
        return found

    def close(self) -> None:
        self._cursor.close()


class Driven:
    """A connection of another driver than SQLite's."""

    def __init__(self, database: sqlite3.Connection, **says: Any) -> None:
        self.__dict__.update(says)
        self._database = database

    def cursor(self) -> Cursor:
        return Cursor(self._database.cursor())


class Libpq:
    """Says of a connection what psycopg2 and psycopg 3 say."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    @property
    def transaction_status(self) -> int:
        return 2 if self._database.in_transaction else 0


def test_psycopg_is_asked_for_its_transaction() -> None:
    database = sqlite3.connect(":memory:", isolation_level=None)
    connection = Driven(database, info=Libpq(database), autocommit=True, isolation_level=None)
    inbox = Inbox(connection, "c", paramstyle="qmark")
    inbox.create()
    for take in (partial(inbox.take, STREAM, 0), partial(inbox.take_id, "queue/q", "m")):
        with pytest.raises(NoTransaction):
            take()
        database.execute("BEGIN")
        assert take(), "the refusal has left a note"
        database.execute("COMMIT")
    connection = Driven(database, info=Libpq(database))  # where it shows only afterwards
    inbox = Inbox(connection, "c", paramstyle="qmark")
    with pytest.raises(NoTransaction):
        inbox.take(STREAM, 1)
    database.close()


def test_a_transaction_that_begins_with_the_first_statement_is_one() -> None:
    """As in `with connection:` of psycopg2, in autocommit mode."""
    database = sqlite3.connect(":memory:", isolation_level=None)

    class Beginning(Driven):
        def cursor(self) -> Cursor:
            if not database.in_transaction:
                database.execute("BEGIN")
            return super().cursor()

    inbox_of(database, "c")
    connection = Beginning(database, info=Libpq(database), autocommit=True)
    assert Inbox(connection, "c", paramstyle="qmark").take(STREAM, 0)
    database.close()


def test_a_driver_that_cannot_be_asked_is_believed(database: sqlite3.Connection) -> None:
    inbox_of(database, "c")
    connection = Driven(database, autocommit=True)
    assert Inbox(connection, "c", paramstyle="qmark").take(STREAM, 0)


def test_a_driver_that_does_not_count_rows_is_refused(
    database: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Cursor, "rowcount", -1)
    monkeypatch.setattr(Driven, "__module__", "uncounted.connections")
    inbox_of(database, "c")
    inbox = Inbox(Driven(database), "c", paramstyle="qmark")
    for take in (partial(inbox.take, STREAM, 0), partial(inbox.take_id, "queue/q", "m")):
        with pytest.raises(RowcountUnknown, match=r"the driver uncounted .* rowcount"):
            take()
        database.rollback()


# -- ids that databases take for one


@pytest.fixture
def careless(database: sqlite3.Connection) -> Inbox:
    """An inbox in a database that compares without case."""
    inbox = Inbox(database, "c")
    for statement in inbox.statements():
        database.execute(statement.replace(") NOT NULL", ") COLLATE NOCASE NOT NULL"))
    return inbox


def test_ids_differ_however_the_database_compares(
    database: sqlite3.Connection, careless: Inbox
) -> None:
    ids = ["ab", "aB", "Ab", "AB", "é", "É", "e", "a ", "a", "a\0b", "", "x" * 253, "X" * 253]
    for _ in range(2):
        assert [careless.take_id("queue/q", each) for each in ids] == [_ == 0] * len(ids)
    stored = [text for (text,) in database.execute("SELECT message_id FROM cogwork_inbox_ids")]
    assert all(re.fullmatch(r"[a-z0-9:]{2,255}", text) for text in stored)
    assert {"s:ab", "s:e", "s:a", "s:"} < set(stored)
    with pytest.raises(ValueError, match="characters"):
        careless.take_id("queue/q", "X" * 254)


@pytest.mark.parametrize("message_id", ["Order-7", "order-7", "é", b"A", 7, uuid.UUID(int=10)])
def test_ids_stored_by_earlier_versions_are_known(
    database: sqlite3.Connection, careless: Inbox, message_id: Any
) -> None:
    text = _id_text(message_id)
    database.execute("INSERT INTO cogwork_inbox_ids VALUES ('c', 'queue/q', ?, 0)", (text,))
    assert not careless.take_id("queue/q", message_id)
    if isinstance(message_id, str):
        other = message_id.swapcase()
        assert careless.take_id("queue/q", other) == (other != message_id)


# -- transactions that do not see what others have committed


class Snapshot:
    """A cursor as of a database that changes the newest rows, and selects older ones."""

    def __init__(self, cursor: sqlite3.Cursor, seen: int) -> None:
        self._cursor = cursor
        self._row: tuple[int] | None = None
        self._seen = seen

    @property
    def rowcount(self) -> int:
        return self._cursor.rowcount

    def execute(self, operation: str, parameters: Any = (), /) -> None:
        if operation.startswith("SELECT position"):
            self._row = (self._seen,)
        else:
            self._cursor.execute(operation, parameters)

    def fetchone(self) -> tuple[int] | None:
        return self._row

    def close(self) -> None:
        self._cursor.close()


class SnapshotConnection:
    """A transaction that began when a position was another one."""

    def __init__(self, database: sqlite3.Connection, seen: int) -> None:
        self._database = database
        self._seen = seen

    def cursor(self) -> Snapshot:
        return Snapshot(self._database.cursor(), self._seen)


def test_who_never_sees_how_far_another_process_is_is_told(database: sqlite3.Connection) -> None:
    other = inbox_of(database)
    other.take(STREAM, 4)
    overtaken = Inbox(SnapshotConnection(database, 4), "billing", paramstyle="qmark")
    with pytest.raises(Overtaken, match="roll back"):
        overtaken.take(STREAM, 4)
    assert other.position(STREAM) == 5
