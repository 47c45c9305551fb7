"""Effects that happen once: which messages were processed, kept where the effects are kept.

    inbox = Inbox(database, "billing")
    inbox.create()
    stream = client.stream("orders")
    async for record in stream.read(start=await inbox.resume(stream)):
        with database:  # the application's own transaction
            if inbox.take_record("stream/orders", record):
                database.execute("UPDATE account SET ...")

Theory of operation. A consumer that dies between its effect and the note that it has had it does it
again, or never. So the note goes into the same transaction: both are there, or none. What comes in
order needs one row: the position that is next. What comes in any order needs a row for each
message. Nothing is committed here: when the transaction ends is the application's. Where two
processes are one consumer at the same time, the database has one of them wait or fail.

A position is worth something in the stream that it was taken in, and in none that begins again
under the same name: there, other records would count as done. So besides a position there can be a
seam: which record the last one was. Whoever goes on sees whether it is still there.
"""

from __future__ import annotations

import hashlib
import re
import time
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from cogwork.amqp.errors import CogworkError, Condition, DecodeError
from cogwork.inbox_database import (
    Connection,
    Cursor,
    Database,
    NoTransaction,
    ParamStyle,
    RowcountUnknown,
)
from cogwork.plugin.engine.contract import FromOffset, Origin

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cogwork.client.streams.stream import Stream
    from cogwork.dataplane.client.stream_records import Record
    from cogwork.plugin.engine.contract import Start

__all__ = (
    "AnotherStream",
    "Connection",
    "Cursor",
    "Inbox",
    "NoTransaction",
    "Overtaken",
    "ParamStyle",
    "RowcountUnknown",
)

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,40}(\.[A-Za-z_][A-Za-z0-9_]{0,40})?")
LENGTH_MAX = 255

TRIES_MAX = 10
"""So often a position is read again that has changed: a transaction may never see how."""

PLAIN = re.compile(r"[a-z0-9_./:-]*")
"""Texts that a database tells from each other, however it compares: in others case may not count,
or accents, or spaces at the end; and not each database takes all of them."""


class AnotherStream(CogworkError):
    """A stream is not the one that a consumer's position was taken in.

    Attributes:
        consumer: Whose position it is.
        stream: The stream's address.
        offset: Of the record that is another one.
    """

    def __init__(self, consumer: str, stream: str, offset: int) -> None:
        super().__init__(
            f"{stream} is not the stream that the consumer {consumer!r} has read: its record "
            f"{offset} is another one, or none, as after a restart of a container that had it in "
            "memory, or where it was deleted and made anew; begin under another consumer's name, "
            "or have the inbox forget the position"
        )
        self.consumer = consumer
        self.stream = stream
        self.offset = offset


class Overtaken(CogworkError):
    """Another process is the same consumer, and has gone on; roll back, and read on from there."""

    def __init__(self, consumer: str, source: str) -> None:
        super().__init__(
            f"another process has processed {source} as the consumer {consumer!r} since this "
            "transaction began, which does not see how far: roll back, and begin another"
        )


class Inbox:
    """Which messages one consumer has processed, in tables of the application's database."""

    def __init__(
        self,
        connection: Connection,
        consumer: str,
        *,
        table: str = "cogwork_inbox",
        paramstyle: ParamStyle | None = None,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        """Touch nothing yet.

        Args:
            connection: To the application's database; the one that its effects go through.
            consumer: Who processes: each consumer does everything once. At most 255 characters.
            table: The table of positions; that of single messages has `_ids` after it, and that
                of seams `_seams`.
            paramstyle: How the driver wants parameters; if None, what the driver's module says.
            now_s: The wall clock, in seconds since 1970 (UTC).

        Raises:
            ValueError: A name or the style is wrong.
        """
        if not NAME.fullmatch(table):
            raise ValueError(f"{table!r:.80} is no name of a table")
        if not 0 < len(consumer) <= LENGTH_MAX:
            raise ValueError(f"a consumer has a name of 1 to {LENGTH_MAX} characters")
        self._database = Database(connection, paramstyle)
        self._consumer = consumer
        self._table = table
        self._now_s = now_s

    def create(self) -> None:
        """Make the tables, where they are not there yet; to be committed as anything else."""
        for statement in self.statements():
            self._database.define(statement)

    def statements(self) -> tuple[str, ...]:
        """Return what `create` executes, for those who keep their tables elsewhere."""
        return (
            f"CREATE TABLE IF NOT EXISTS {self._table} ("
            f"consumer VARCHAR({LENGTH_MAX}) NOT NULL, source VARCHAR({LENGTH_MAX}) NOT NULL, "
            "position BIGINT NOT NULL, PRIMARY KEY (consumer, source))",
            f"CREATE TABLE IF NOT EXISTS {self._table}_ids ("
            f"consumer VARCHAR({LENGTH_MAX}) NOT NULL, source VARCHAR({LENGTH_MAX}) NOT NULL, "
            f"message_id VARCHAR({LENGTH_MAX}) NOT NULL, taken_s BIGINT NOT NULL, "
            "PRIMARY KEY (consumer, source, message_id))",
            f"CREATE TABLE IF NOT EXISTS {self._table}_seams ("
            f"consumer VARCHAR({LENGTH_MAX}) NOT NULL, source VARCHAR({LENGTH_MAX}) NOT NULL, "
            "position BIGINT NOT NULL, seam VARCHAR(64) NOT NULL, PRIMARY KEY (consumer, source))",
        )

    # -- what comes in order

    def start(self, stream: str, default: Start = Origin.FIRST) -> Start:
        """Return where to go on reading, in a stream that outlives its container.

        It is not seen here whether the stream is still the one: `resume` sees it. Where that is not
        used, take another consumer's name for a stream that was deleted and made anew, or `forget`.

        Args:
            stream: The stream's address.
            default: Where to start the first time.
        """
        position = self.position(stream)
        return default if position is None else FromOffset(position)

    async def resume(self, stream: Stream, default: Start = Origin.FIRST) -> Start:
        """Return where to go on reading, once it is seen that the stream is still the one.

        For that, it reads the last record that `take_record` has taken. One that retention has
        given up cannot be compared; a stream that is not that long is another one.

        Args:
            stream: The stream, of a mesh that is connected.
            default: Where to start the first time.

        Raises:
            AnotherStream: It is not.
        """
        if self.position(stream.address) is None:
            return default
        seam = self._seam(stream.address)
        if seam is not None:
            last = seam[0] - 1
            is_there, record = await _record_at(stream, last)
            if not is_there:
                raise AnotherStream(self._consumer, stream.address, last)
            if record is not None:
                self._check(stream.address, record)
        return self.start(stream.address, default)

    def position(self, source: str) -> int | None:
        """Return the offset, or sequence, that is next; None where nothing was processed yet."""
        row = self._fetch(
            "SELECT position FROM {table} WHERE consumer = :consumer AND source = :source",
            source=source,
        )
        return None if row is None else int(row[0])

    def take(self, stream: str, offset: int) -> bool:
        """Note that a stream's record is being processed, and all before it.

        Args:
            stream: The stream's address.
            offset: The record's.

        Returns:
            Whether to process it; False where that has been done.

        Raises:
            NoTransaction: None is open.
        """
        return self._advance(stream, offset, 1) == 0

    def take_record(self, stream: str, record: Record) -> bool:
        """Note that a stream's record is being processed, and which one it is.

        As `take`, and `resume` then sees whether the stream is still the one.

        Args:
            stream: The stream's address.
            record: The record.

        Returns:
            Whether to process it; False where that has been done.

        Raises:
            AnotherStream: It has the offset of the last one that was processed, and is another.
            NoTransaction: None is open.
        """
        if not self.take(stream, record.offset):
            self._check(stream, record)
            return False
        self._sew(stream, record.offset + 1, _seam_of(record))
        return True

    def take_batch(self, stream: str, first_offset: int, count: int) -> int:
        """Note that a row of records is being processed.

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
        """Note that a producer's message is being processed, where they come in their order.

        Args:
            producer: Whose.
            sequence: The message's number.

        Returns:
            Whether to process it; False where that has been done.

        Raises:
            NoTransaction: None is open.
        """
        return self._advance(f"producer:{producer.hex()}", sequence, 1) == 0

    def forget(self, source: str) -> None:
        """Forget how far a source was processed; what comes next is the first.

        Args:
            source: A stream's address.

        Raises:
            NoTransaction: None is open.
        """
        for table in ("{table}", "{table}_seams"):
            self._execute(
                f"DELETE FROM {table} WHERE consumer = :consumer AND source = :source",
                source=source,
            )

    def _seam(self, source: str) -> tuple[int, str] | None:
        """Return the position after the last record that is known, and which one that was."""
        row = self._fetch(
            "SELECT position, seam FROM {table}_seams "
            "WHERE consumer = :consumer AND source = :source",
            source=source,
        )
        return None if row is None else (int(row[0]), str(row[1]))

    def _sew(self, source: str, position: int, seam: str) -> None:
        values = {"source": source, "position": position, "seam": seam}
        changed = self._execute(
            "UPDATE {table}_seams SET position = :position, seam = :seam "
            "WHERE consumer = :consumer AND source = :source",
            **values,
        )
        if not changed:
            self._execute(
                "INSERT INTO {table}_seams (consumer, source, position, seam) "
                "VALUES (:consumer, :source, :position, :seam)",
                **values,
            )

    def _check(self, source: str, record: Record) -> None:
        seam = self._seam(source)
        if seam is not None and seam[0] == record.offset + 1 and seam[1] != _seam_of(record):
            raise AnotherStream(self._consumer, source, record.offset)

    def _advance(self, source: str, first: int, count: int) -> int:
        """Move a position forward; return how much of the way it had gone before.

        Raises:
            Overtaken: Another process does so, and this transaction does not see how far.
        """
        for _ in range(TRIES_MAX):
            gone = self._step(source, first, count)
            if gone is not None:
                return gone
        raise Overtaken(self._consumer, source)

    def _step(self, source: str, first: int, count: int) -> int | None:
        """Try to move a position; None where it has changed since it was read."""
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
                return None
        return min(position - first, count)

    # -- what comes in any order

    def take_id(self, source: str, message_id: str | bytes | int | uuid.UUID | None) -> bool:
        """Note that a message is being processed; for queues, whose messages come in any order.

        Args:
            source: Where its id is unique: an address, or a producer.
            message_id: Its id; one without cannot be told from others, and is refused.

        Returns:
            Whether to process it; False where that has been done.

        Raises:
            NoTransaction: None is open.
            ValueError: The message has no id, or a name is too long.
        """
        text = _checked(_id_text(message_id))
        values = {"source": _checked(source), "id": _stored(text)}
        if any(self._has_id(source, each) for each in {values["id"], *_stored_before(text)}):
            return False
        # Another process that takes it at the same time has one of the two insertions fail.
        self._execute(
            "INSERT INTO {table}_ids (consumer, source, message_id, taken_s) "
            "VALUES (:consumer, :source, :id, :now_s)",
            now_s=int(self._now_s()),
            **values,
        )
        return True

    def _has_id(self, source: str, stored: str) -> bool:
        found = self._fetch(
            "SELECT message_id FROM {table}_ids "
            "WHERE consumer = :consumer AND source = :source AND message_id = :id",
            source=source,
            id=stored,
        )
        return found is not None and found[0] == stored  # to the database, another may be equal

    def forget_ids(self, age_s: float) -> int:
        """Forget ids taken longer ago than this; return how many.

        Args:
            age_s: Longer than any message can be on its way.
        """
        return self._execute(
            "DELETE FROM {table}_ids WHERE consumer = :consumer AND taken_s < :before_s",
            before_s=int(self._now_s() - age_s),
        )

    # -- statements

    def _execute(self, statement: str, **values: object) -> int:
        """Execute a change within the application's transaction; return the rows changed."""
        return self._database.change(
            statement.replace("{table}", self._table),
            {"consumer": self._consumer, **values},
            probe=f"SELECT position FROM {self._table} WHERE consumer = :consumer",
        )

    def _fetch(self, statement: str, **values: object) -> Sequence[Any] | None:
        return self._database.fetch(
            statement.replace("{table}", self._table), {"consumer": self._consumer, **values}
        )


async def _record_at(stream: Stream, offset: int) -> tuple[bool, Record | None]:
    """Return whether a stream has, or had, a record at an offset; and it, where it is left."""
    from cogwork.client import errors  # noqa: PLC0415  # whoever has a stream has loaded it

    try:
        async with stream.read(FromOffset(offset), credit=1) as reader:
            found = await reader.drain()
    except errors.StreamTruncated:
        return True, None
    except errors.LinkDetached as error:
        if error.condition == Condition.INVALID_FIELD:  # it is above the end
            return False, None
        raise
    return bool(found), found[0] if found else None


def _checked(text: str) -> str:
    if not 0 < len(text) <= LENGTH_MAX:
        raise ValueError(f"{text!r:.80} does not have 1 to {LENGTH_MAX} characters")
    return text


def _id_text(message_id: object) -> str:
    """Write an id so that ids of different types differ (AMQP 1.0 §3.2.11 to §3.2.14)."""
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


def _stored(id_text: str) -> str:
    """Write an id so that no database takes it for another one, or refuse it."""
    if PLAIN.fullmatch(id_text):
        return id_text
    return f"h:{hashlib.blake2b(id_text.encode(), digest_size=32).hexdigest()}"


def _stored_before(id_text: str) -> tuple[str, ...]:
    """Return how earlier versions stored an id: as it is, where the database took it."""
    return () if "\0" in id_text else (id_text,)


def _seam_of(record: Record) -> str:
    """Tell a record from all others that are, or will be, at its offset.

    It was appended at another time; a clock may have been set back, so octets and texts count, too.
    """
    body: object = None
    with suppress(DecodeError):  # one that cannot be read may have to be passed over
        body = record.body
    if isinstance(body, str):
        body = body.encode(errors="replace")
    octets = body if isinstance(body, bytes) else b""
    return f"{record.time_ms}-{hashlib.blake2b(octets, digest_size=8).hexdigest()}"
