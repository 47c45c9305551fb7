"""What was processed is known, in the application's transaction, whatever the driver's style."""

import re
import sqlite3
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inboxes import inbox_of

from cogwork.inbox import Inbox, NoTransaction, ParamStyle
from cogwork.plugin.engine.contract import FromOffset, Origin

STREAM = "stream/orders"


def test_what_was_committed_is_not_processed_again(database: sqlite3.Connection) -> None:
    inbox = inbox_of(database)
    assert inbox.start(STREAM) is Origin.FIRST
    assert inbox.start(STREAM, Origin.NEXT) is Origin.NEXT
    with database:
        assert inbox.take(STREAM, 5)
        assert not inbox.take(STREAM, 5)
    assert not inbox.take(STREAM, 4)
    assert inbox.take(STREAM, 7)
    assert inbox.start(STREAM) == FromOffset(8)


def test_what_was_rolled_back_is_processed_again(database: sqlite3.Connection) -> None:
    inbox = inbox_of(database)
    with database:
        inbox.take(STREAM, 0)
    assert inbox.take(STREAM, 1)
    assert inbox.take_sequence(b"p", 0)
    assert inbox.take_id("queue/q", "m")
    database.rollback()
    assert inbox.position(STREAM) == 1
    assert inbox.take(STREAM, 1)
    assert inbox.take_sequence(b"p", 0)
    assert inbox.take_id("queue/q", "m")


def test_effects_are_committed_with_the_note_or_not_at_all(database: sqlite3.Connection) -> None:
    inbox = inbox_of(database)
    database.execute("CREATE TABLE effect (number INTEGER)")

    def process(offset: int, fails: bool) -> None:
        with database:
            if inbox.take(STREAM, offset):
                database.execute("INSERT INTO effect VALUES (?)", (offset,))
                if fails:
                    raise KeyError

    for offset in (0, 1, 2):
        with pytest.raises(KeyError):
            process(offset, fails=True)
        process(offset, fails=False)
        process(offset, fails=False)
    assert database.execute("SELECT number FROM effect").fetchall() == [(0,), (1,), (2,)]


def test_consumers_and_sources_count_for_themselves(database: sqlite3.Connection) -> None:
    one, other = inbox_of(database), inbox_of(database, "shipping")
    assert one.take(STREAM, 0)
    assert other.take(STREAM, 0)
    assert one.take("stream/prices", 0)
    assert one.take_sequence(b"a", 0)
    assert one.take_sequence(b"b", 0)
    assert not one.take_sequence(b"a", 0)
    assert one.position("stream/prices") == 1


def test_a_batch_is_one_note(database: sqlite3.Connection) -> None:
    inbox = inbox_of(database)
    assert inbox.take_batch(STREAM, 0, 10) == 0
    assert inbox.take_batch(STREAM, 0, 10) == 10
    assert inbox.take_batch(STREAM, 2, 3) == 3
    assert inbox.take_batch(STREAM, 5, 10) == 5
    assert inbox.position(STREAM) == 15
    assert inbox.take_batch(STREAM, 20, 5) == 0
    assert inbox.position(STREAM) == 25


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 8)), max_size=20))
def test_no_record_of_a_row_is_processed_twice(batches: list[tuple[int, int]]) -> None:
    database = sqlite3.connect(":memory:")
    inbox = inbox_of(database)
    done: list[int] = []
    for first, count in batches:
        dropped = inbox.take_batch(STREAM, first, count)
        assert 0 <= dropped <= count
        done += range(first + dropped, first + count)
    assert done == sorted(set(done))
    database.close()


@pytest.mark.parametrize("ids", [["a", b"a", 7, "7", uuid.UUID(int=7), str(uuid.UUID(int=7))]])
def test_ids_of_different_types_differ(database: sqlite3.Connection, ids: list[Any]) -> None:
    inbox = inbox_of(database)
    for _ in range(2):
        assert [inbox.take_id("queue/q", each) for each in ids] == [_ == 0] * len(ids)
    assert inbox.take_id("queue/other", "a")


def test_old_ids_can_be_forgotten(database: sqlite3.Connection) -> None:
    now_s = 1000.0
    inbox = Inbox(database, "billing", now_s=lambda: now_s)
    inbox.create()
    inbox.take_id("q", 1)
    now_s = 2000.0
    inbox.take_id("q", 2)
    assert inbox.forget_ids(age_s=500) == 1
    assert inbox.take_id("q", 1)
    assert not inbox.take_id("q", 2)


def test_without_a_transaction_it_refuses() -> None:
    database = sqlite3.connect(":memory:", isolation_level=None)
    inbox = inbox_of(database)
    takes: list[Callable[[], bool]] = [
        partial(inbox.take, STREAM, 0),
        partial(inbox.take, STREAM, 1),
        partial(inbox.take_id, "queue/q", "m"),
    ]
    for take in takes:
        with pytest.raises(NoTransaction), database:  # which begins none in this mode
            take()
        database.execute("BEGIN")
        assert take(), "the refusal has left a note"
        database.execute("COMMIT")
    database.close()


@pytest.mark.parametrize("message_id", [None, 1.5, True, ("a",)])
def test_a_message_without_an_id_is_refused(database: sqlite3.Connection, message_id: Any) -> None:
    inbox = inbox_of(database)
    with pytest.raises(ValueError, match="message-id"):
        inbox.take_id("queue/q", message_id)


def test_names_are_checked(database: sqlite3.Connection) -> None:
    for table in ("a b", "x; DROP TABLE y", "", "1a", "a.b.c"):
        with pytest.raises(ValueError, match="no name of a table"):
            Inbox(database, "c", table=table)
    for consumer in ("", "x" * 256):
        with pytest.raises(ValueError, match="characters"):
            Inbox(database, consumer)
    inbox = Inbox(database, "it's", table="main.mine")
    inbox.create()
    assert inbox.take("o'clock", 0)
    with pytest.raises(ValueError, match="characters"):
        inbox.take("x" * 256, 0)
    assert database.execute("SELECT consumer, source FROM mine").fetchall() == [("it's", "o'clock")]


STYLES = {
    "qmark": (r"\?", "?"),
    "numeric": (r":(\d+)", r"?\1"),
    "named": (r":([a-z_]+)", r":\1"),
    "format": (r"%s", "?"),
    "pyformat": (r"%\((\w+)\)s", r":\1"),
}


class StyledCursor:
    """Takes one style only, and gives SQLite what it means."""

    def __init__(self, cursor: sqlite3.Cursor, style: str) -> None:
        self._cursor = cursor
        self._style = style

    @property
    def rowcount(self) -> int:
        return self._cursor.rowcount

    def execute(
        self, operation: str, parameters: dict[str, object] | Sequence[object] = (), /
    ) -> object:
        pattern, meant = STYLES[self._style]
        expected = dict if self._style in ("named", "pyformat") else list
        assert not parameters or isinstance(parameters, expected)
        assert len(re.findall(pattern, operation)) == len(parameters)
        return self._cursor.execute(re.sub(pattern, meant, operation), parameters)

    def fetchone(self) -> Sequence[object] | None:
        found: Sequence[object] | None = self._cursor.fetchone()
        return found

    def close(self) -> None:
        self._cursor.close()


class StyledConnection:
    def __init__(self, database: sqlite3.Connection, style: str) -> None:
        self._database = database
        self._style = style

    def cursor(self) -> StyledCursor:
        return StyledCursor(self._database.cursor(), self._style)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("is_said", [True, False])
def test_parameters_are_in_the_drivers_style(
    database: sqlite3.Connection, style: ParamStyle, is_said: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = StyledConnection(database, style)
    if is_said:
        inbox = Inbox(connection, "c", paramstyle=style)
    else:
        driver = ModuleType("driver")
        driver.paramstyle = style  # type: ignore[attr-defined]  # a module made here
        monkeypatch.setitem(__import__("sys").modules, "driver", driver)
        monkeypatch.setattr(StyledConnection, "__module__", "driver.connections")
        inbox = Inbox(connection, "c")
    inbox.create()
    assert [inbox.take(STREAM, offset) for offset in (0, 1, 1, 3)] == [True, True, False, True]
    assert inbox.take_batch(STREAM, 2, 4) == 2
    assert [inbox.take_id("q", each) for each in ("a", "a")] == [True, False]
    assert inbox.forget_ids(-10) == 1
    assert inbox.position(STREAM) == 6


def test_an_unknown_style_is_told(database: sqlite3.Connection) -> None:
    with pytest.raises(ValueError, match="no paramstyle"):
        Inbox(database, "c", paramstyle="dollar")  # type: ignore[arg-type]  # what is wrong
    with pytest.raises(ValueError, match="does not say"):
        Inbox(StyledConnection(database, "qmark"), "c")
