"""A client's end of a stream: records, how far they have come, and when they have caught up.

Theory of operation. Each record says its offset, so whoever attaches again knows where to go on.
The container sends a marker once it has sent the last record there was when the reader started:
a message with the one annotation `x-opt-caught-up`, which never gets to the application. The
application has caught up when it was handed all that came before the marker.
"""

from __future__ import annotations

import cython
from cython.cimports.cogwork.dataplane.contents import fill
from cython.cimports.cogwork.dataplane.inbox import Inbox
from cython.cimports.cogwork.dataplane.messages import Message, hide
from cython.cimports.cogwork.dataplane.octets import load_u64, octets, octets_of
from cython.cimports.cogwork.dataplane.records import read_number
from cython.cimports.cogwork.dataplane.sections import MESSAGE_ANNOTATIONS_RANK
from cython.cimports.cogwork.dataplane.source_hash import COGWORK_SOURCE_HASH
from cython.cimports.cogwork.dataplane.values import map_header, skip_value
from cython.cimports.libc.stdint import int64_t, uint64_t
from cython.cimports.libc.string import memcmp

from cogwork.amqp.types import Symbol

__all__ = ("CAUGHT_UP_PREFIX", "SOURCE_HASH", "Record", "StreamInbox")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

CAUGHT_UP_PREFIX = b"\x00\x53\x72\xc1\x1b\x02\xa3\x0fx-opt-caught-up\x80"
"""How a marker begins; the next offset follows, in eight octets."""

PREFIX = cython.declare(bytes, CAUGHT_UP_PREFIX)
PREFIX_SIZE = cython.declare(int64_t, len(CAUGHT_UP_PREFIX))

PRODUCER = Symbol("x-opt-producer")
SNAPSHOT = Symbol("x-opt-snapshot")

ABSENT = cython.declare(int64_t, -1)


class Record(Message):
    """A message of a stream, with its place there.

    Attributes:
        offset: Its number; of a snapshot, that of the first record which is not in it.
        time_ms: When it was appended, in milliseconds since 1970 (UTC).
        producer: Who appended it; None where nobody said.
        producer_sequence: Its number among the producer's; None as well.
        is_snapshot: Whether it is no record but the application's snapshot, its body the data.
    """

    @property
    def offset(self) -> int:
        found: int64_t = self.own_number(b"x-opt-offset", 12)
        if found == ABSENT:
            found = self.own_number(b"x-opt-snapshot", 14)
        return found

    @property
    def time_ms(self) -> int:
        """When it was appended, in milliseconds since 1970 (UTC)."""
        return self.own_number(b"x-opt-time", 10)

    @property
    def time(self) -> object:
        """When it was appended."""
        return self.annotations.get("x-opt-time")

    @property
    def producer(self) -> object:
        """Who appended it; None where nobody said."""
        return self.annotations.get(PRODUCER)

    @property
    def producer_sequence(self) -> object:
        """Its number among the producer's; None where nobody said."""
        found: int64_t = self.own_number(b"x-opt-sequence", 14)
        return None if found == ABSENT else found

    @property
    def is_snapshot(self) -> bool:
        """Whether it is no record but the application's snapshot."""
        return self.own_number(b"x-opt-snapshot", 14) != ABSENT

    def own_number(self, key, size):
        """Finds an annotation that the stream made; ABSENT where there is none."""
        data: octets = octets_of(self._raw)
        at: int64_t = self._layout.sections[MESSAGE_ANNOTATIONS_RANK].start
        end: int64_t = 0
        value: int64_t
        number: uint64_t = 0
        if at < 0:
            return ABSENT
        at = self._layout.sections[MESSAGE_ANNOTATIONS_RANK].value
        at = map_header(
            data, at, self._layout.sections[MESSAGE_ANNOTATIONS_RANK].end, cython.address(end)
        )
        while 0 <= at < end:
            value = skip_value(data, at, end)
            if value < 0:
                return ABSENT
            if value == at + 2 + size and memcmp(data + at + 2, key, size) == 0:
                if read_number(data, value, end, cython.address(number)) < 0:
                    return ABSENT
                return cython.cast(int64_t, number)
            at = skip_value(data, value, end)
        return ABSENT


class StreamInbox(Inbox):
    """Records on their way to the application.

    Attributes:
        on_caught_up: Called without arguments when the application has caught up; once.
    """

    def admit(self, s):
        record: Record
        data: bytes = self.payload(s)
        p: octets = octets_of(data)
        if not s.settled:
            self.accept(s.token)
        if s.size >= PREFIX_SIZE + 8 and memcmp(p, octets_of(PREFIX), PREFIX_SIZE) == 0:
            self.told_offset = load_u64(p + PREFIX_SIZE)
            if not self.is_told:
                self.is_told = True
                self.caught_up_after = self.arrived
                self.look()
            self.top_up()
            return None
        record = Record.__new__(Record)
        fill(record, data)
        hide(record)
        self.arrived += 1
        self.last_arrived = record
        return record

    def accept(self, token: int) -> None:
        """Accepts a delivery."""
        self.reply(token, 0x24, None)

    def hand(self, message):
        self.handed += 1
        if self.is_told and self.on_caught_up is not None:
            self.look()
        return 0

    def look(self):
        """Tells the application that it has caught up, once it has."""
        if self.handed >= self.caught_up_after and self.on_caught_up is not None:
            told, self.on_caught_up = self.on_caught_up, None
            told()
        return 0

    @property
    def is_caught_up(self) -> bool:
        """Whether the application was handed all that was there when the reader started."""
        return self.is_told and self.handed >= self.caught_up_after

    @property
    def next_offset(self) -> object:
        """Where to go on after what has arrived; None where nobody has said yet."""
        record: Record = self.last_arrived
        following: object = None
        if record is not None:
            following = record.offset if record.is_snapshot else record.offset + 1
        if self.told_offset is not None and (following is None or self.told_offset > following):
            following = self.told_offset
        return following
