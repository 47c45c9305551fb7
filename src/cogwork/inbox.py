"""Effects that happen once: which messages were processed, kept where the effects are kept.

    inbox = Inbox(database, "billing")
    inbox.create()
    async for message in mesh.stream("orders").read(start=inbox.start("stream/orders")):
        with database:  # the application's own transaction
            if inbox.take("stream/orders", message.offset):
                database.execute("UPDATE account SET ...")

Theory of operation. A consumer that dies between its effect and the note that it has had it does it
again, or never. So the note goes into the same transaction: both are there, or none. What comes in
order needs one row: the position that is next. What comes in any order needs a row for each
message. Nothing is committed here: when the transaction ends is the application's. Where two
processes are one consumer at the same time, the database has one of them wait or fail.
"""

from __future__ import annotations

import re
import sys
import time
import uuid
from typing import TYPE_CHECKING, Any, Literal, Protocol

from cogwork.amqp.errors import CogworkError
from cogwork.consensus.engine import FromOffset, Origin

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cogwork.consensus.engine import Start

__all__ = ("Connection", "Cursor", "Inbox", "NoTransaction", "ParamStyle")

ParamStyle = Literal["qmark", "numeric", "named", "format", "pyformat"]
"""How a driver wants parameters, as PEP 249 names it."""

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,40}(\.[A-Za-z_][A-Za-z0-9_]{0,40})?")
LENGTH_MAX = 255

_PARAMETER = re.compile(r":(\w+)")


class Cursor(Protocol):
    """What is needed of a cursor (PEP 249)."""

    @property
    def rowcount(self) -> int:
        """How many rows the last statement has changed."""

    def execute(self, operation: str, parameters: Any = ..., /) -> object:  # noqa: ANN401  # drivers differ
        """Executes a statement."""

    def fetchone(self) -> Sequence[Any] | None:
        """Returns the next row."""

    def close(self) -> None:
        """Ends it."""


class Connection(Protocol):
    """What is needed of a connection (PEP 249)."""

    def cursor(self) -> Cursor:
        """Makes a cursor."""


class NoTransaction(CogworkError):
    """No transaction is open: effect and note would not be one."""

    def __init__(self) -> None:
        super().__init__(
            "no transaction is open, so that the effect and the inbox would be committed apart: "
            "begin one first, or do not use the connection in autocommit mode"
        )


class Inbox:
    """Which messages one consumer has processed, in two tables of the application's database."""

    def __init__(
        self,
        connection: Connection,
        consumer: str,
        *,
        table: str = "cogwork_inbox",
        paramstyle: ParamStyle | None = None,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        """Touches nothing yet.

        Args:
            connection: To the application's database; the one that its effects go through.
            consumer: Who processes: each consumer does everything once. At most 255 characters.
            table: The table of positions; that of single messages has `_ids` after it.
            paramstyle: How the driver wants parameters; if None, what the driver's module says.
            now_s: The wall clock, in seconds since 1970 (UTC).

        Raises:
            ValueError: A name or the style is wrong.
        """
        if not NAME.fullmatch(table):
            raise ValueError(f"{table!r:.80} is no name of a table")
        if not 0 < len(consumer) <= LENGTH_MAX:
            raise ValueError(f"a consumer has a name of 1 to {LENGTH_MAX} characters")
        self._connection = connection
        self._consumer = consumer
        self._table = table
        self._style = _style_of(connection) if paramstyle is None else paramstyle
        if self._style not in _PLACEHOLDERS:
            raise ValueError(f"{self._style!r} is no paramstyle: {', '.join(_PLACEHOLDERS)}")
        self._now_s = now_s

    def create(self) -> None:
        """Makes the tables, where they are not there yet; to be committed as anything else."""
        for statement in self.statements():
            cursor = self._connection.cursor()
            try:
                cursor.execute(statement)
            finally:
                cursor.close()

    def statements(self) -> tuple[str, str]:
        """Returns what `create` executes, for those who keep their tables elsewhere."""
        return (
            f"CREATE TABLE IF NOT EXISTS {self._table} ("
            f"consumer VARCHAR({LENGTH_MAX}) NOT NULL, source VARCHAR({LENGTH_MAX}) NOT NULL, "
            "position BIGINT NOT NULL, PRIMARY KEY (consumer, source))",
            f"CREATE TABLE IF NOT EXISTS {self._table}_ids ("
            f"consumer VARCHAR({LENGTH_MAX}) NOT NULL, source VARCHAR({LENGTH_MAX}) NOT NULL, "
            f"message_id VARCHAR({LENGTH_MAX}) NOT NULL, taken_s BIGINT NOT NULL, "
            "PRIMARY KEY (consumer, source, message_id))",
        )

    # -- what comes in order

    def start(self, stream: str, default: Start = Origin.FIRST) -> Start:
        """Returns where to go on reading.

        Args:
            stream: The stream's address.
            default: Where to start the first time.
        """
        position = self.position(stream)
        return default if position is None else FromOffset(position)

    def position(self, source: str) -> int | None:
        """Returns the offset, or sequence, that is next; None where nothing was processed yet."""
        row = self._fetch(
            "SELECT position FROM {table} WHERE consumer = :consumer AND source = :source",
            source=source,
        )
        return None if row is None else int(row[0])

    def take(self, stream: str, offset: int) -> bool:
        """Notes that a stream's record is being processed, and all before it.

        Args:
            stream: The stream's address.
            offset: The record's.

        Returns:
            Whether to process it; False where that has been done.

        Raises:
            NoTransaction: None is open.
        """
        return self._advance(stream, offset, 1) == 0

    def take_batch(self, stream: str, first_offset: int, count: int) -> int:
        """Notes that a row of records is being processed.

        Args:
            stream: The stream's address.
            first_offset: The first record's.
            count: How many there are.

        Returns:
            How many of them, from the first on, have been processed before.

        Raises:
            NoTransaction: None is open.
        """
        return self._advance(stream, first_offset, count)

    def take_sequence(self, producer: bytes, sequence: int) -> bool:
        """Notes that a producer's message is being processed, where they come in their order.

        Args:
            producer: Whose.
            sequence: The message's number.

        Returns:
            Whether to process it; False where that has been done.

        Raises:
            NoTransaction: None is open.
        """
        return self._advance(f"producer:{producer.hex()}", sequence, 1) == 0

    def _advance(self, source: str, first: int, count: int) -> int:
        """Moves a position forward; returns how much of the way it had gone before."""
        values = {"source": _checked(source), "first": first, "next": first + count}
        changed = self._execute(
            "UPDATE {table} SET position = :next "
            "WHERE consumer = :consumer AND source = :source AND position <= :first",
            **values,
        )
        if changed:
            return 0
        position = self.position(source)
        if position is None:
            self._execute(
                "INSERT INTO {table} (consumer, source, position) "
                "VALUES (:consumer, :source, :next)",
                source=source,
                next=first + count,
            )
            return 0
        if position < first + count:
            changed = self._execute(
                "UPDATE {table} SET position = :next "
                "WHERE consumer = :consumer AND source = :source AND position = :position",
                source=source,
                next=first + count,
                position=position,
            )
            if not changed:
                return self._advance(source, first, count)
        return min(position - first, count)

    # -- what comes in any order

    def take_id(self, source: str, message_id: str | bytes | int | uuid.UUID | None) -> bool:
        """Notes that a message is being processed; for queues, whose messages come in any order.

        Args:
            source: Where its id is unique: an address, or a producer.
            message_id: Its id; one without cannot be told from others, and is refused.

        Returns:
            Whether to process it; False where that has been done.

        Raises:
            NoTransaction: None is open.
            ValueError: The message has no id, or a name is too long.
        """
        values = {"source": _checked(source), "id": _checked(_id_text(message_id))}
        found = self._fetch(
            "SELECT 1 FROM {table}_ids "
            "WHERE consumer = :consumer AND source = :source AND message_id = :id",
            **values,
        )
        if found is not None:
            return False
        # Another process that takes it at the same time has one of the two insertions fail.
        self._execute(
            "INSERT INTO {table}_ids (consumer, source, message_id, taken_s) "
            "VALUES (:consumer, :source, :id, :now_s)",
            now_s=int(self._now_s()),
            **values,
        )
        return True

    def forget_ids(self, age_s: float) -> int:
        """Forgets ids taken longer ago than this; returns how many.

        Args:
            age_s: Longer than any message can be on its way.
        """
        return self._execute(
            "DELETE FROM {table}_ids WHERE consumer = :consumer AND taken_s < :before_s",
            before_s=int(self._now_s() - age_s),
        )

    # -- statements

    def _execute(self, statement: str, **values: object) -> int:
        """Executes a change within the application's transaction; returns the rows changed."""
        if _commits_each(self._connection):  # before it has
            raise NoTransaction
        cursor = self._connection.cursor()
        try:
            cursor.execute(*self._prepared(statement, values))
            changed = cursor.rowcount
        finally:
            cursor.close()
        if not _is_in_transaction(self._connection):
            raise NoTransaction
        return changed

    def _fetch(self, statement: str, **values: object) -> Sequence[Any] | None:
        cursor = self._connection.cursor()
        try:
            cursor.execute(*self._prepared(statement, values))
            return cursor.fetchone()
        finally:
            cursor.close()

    def _prepared(
        self, statement: str, values: Mapping[str, object]
    ) -> tuple[str, dict[str, object] | list[object]]:
        """Puts a statement and its parameters into the driver's style."""
        everything = {"consumer": self._consumer, **values}
        text = statement.replace("{table}", self._table)
        names = _PARAMETER.findall(text)
        count = iter(range(1, len(names) + 1))
        placeholder = _PLACEHOLDERS[self._style]
        text = _PARAMETER.sub(lambda found: placeholder(found[1], next(count)), text)
        if self._style in ("named", "pyformat"):
            return text, {name: everything[name] for name in names}
        return text, [everything[name] for name in names]


_PLACEHOLDERS: dict[str, Callable[[str, int], str]] = {
    "qmark": lambda _, __: "?",
    "numeric": lambda _, number: f":{number}",
    "named": lambda name, _: f":{name}",
    "format": lambda _, __: "%s",
    "pyformat": lambda name, _: f"%({name})s",
}


def _style_of(connection: Connection) -> str:
    """Asks the driver's module, which PEP 249 has say it."""
    for kind in type(connection).__mro__:
        module = sys.modules.get(kind.__module__.partition(".")[0])
        style = getattr(module, "paramstyle", None)
        if isinstance(style, str):
            return style
    raise ValueError(
        f"the driver of {type(connection).__qualname__} does not say its paramstyle: name it"
    )


def _is_in_transaction(connection: Connection) -> bool:
    """Says so of SQLite; of other drivers it cannot be asked in one way."""
    return getattr(connection, "in_transaction", True) is not False


def _commits_each(connection: Connection) -> bool:
    """Says whether the next change would be committed by itself, in SQLite's autocommit mode.

    Else the driver begins a transaction before it.
    """
    is_in_autocommit = (
        getattr(connection, "autocommit", None) is True
        or getattr(connection, "isolation_level", "") is None
    )
    return is_in_autocommit and not _is_in_transaction(connection)


def _checked(text: str) -> str:
    if not 0 < len(text) <= LENGTH_MAX:
        raise ValueError(f"{text!r:.80} does not have 1 to {LENGTH_MAX} characters")
    return text


def _id_text(message_id: object) -> str:
    """Writes an id so that ids of different types differ (AMQP 1.0 §3.2.11 to §3.2.14)."""
    if isinstance(message_id, bytes):
        return f"b:{message_id.hex()}"
    if isinstance(message_id, str):
        return f"s:{message_id}"
    if isinstance(message_id, uuid.UUID):
        return f"i:{message_id}"
    if isinstance(message_id, int) and not isinstance(message_id, bool):
        return f"u:{message_id}"
    if message_id is None:
        raise ValueError(
            "the message has no message-id, by which it would be known when it comes again: "
            "have its sender set one"
        )
    raise ValueError(f"{message_id!r:.80} is no message-id: a text, octets, a number or a UUID")
