"""Records that a reader of a stream gets: as octets first, and as objects when they are looked at.

Theory of operation. What arrives is copied into a buffer, one message after the other. The
application is handed a view of it, which makes a `Record` each time that one is looked at. So
whoever counts, looks at some, or hands octets on pays for no others; whoever goes through all has
one object at a time in place of thousands. A message of several frames comes as an object, and stays
one: it may be some megabytes.
"""

from __future__ import annotations

from collections.abc import Sequence

import cython
from cython.cimports.cogwork.dataplane.encoding.numbers import read_number
from cython.cimports.cogwork.dataplane.encoding.octets import bytes_from, octets, octets_of
from cython.cimports.cogwork.dataplane.encoding.values import map_header, read_key, skip_value
from cython.cimports.cogwork.dataplane.message.contents import fill
from cython.cimports.cogwork.dataplane.message.messages import Message, hide
from cython.cimports.cogwork.dataplane.message.sections import (
    FOUND,
    MESSAGE_ANNOTATIONS_RANK,
    Layout,
    locate,
)
from cython.cimports.cogwork.dataplane.source_hash import COGWORK_SOURCE_HASH
from cython.cimports.libc.stdint import int64_t, uint8_t, uint32_t, uint64_t
from cython.cimports.libc.stdlib import free, realloc
from cython.cimports.libc.string import memcmp, memmove

from cogwork.amqp.types import Symbol

__all__ = ("SOURCE_HASH", "Record", "Records")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

PRODUCER = Symbol("x-opt-producer")

SIZE_MIN = cython.declare(int64_t, 4096)
COUNT_MIN = cython.declare(cython.Py_ssize_t, 16)


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
        found: int64_t = self.number(b"x-opt-offset", 12)
        if found == ABSENT_NUMBER:
            found = self.number(b"x-opt-snapshot", 14)
        return found

    @property
    def time_ms(self) -> int:
        """When it was appended, in milliseconds since 1970 (UTC)."""
        return self.number(b"x-opt-time", 10)

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
        found: int64_t = self.number(b"x-opt-sequence", 14)
        return None if found == ABSENT_NUMBER else found

    @property
    def is_snapshot(self) -> bool:
        """Whether it is no record but the application's snapshot."""
        return self.number(b"x-opt-snapshot", 14) != ABSENT_NUMBER

    def number(self, key, size):
        return own_number(octets_of(self._raw), cython.address(self._layout), key, size)


def own_number(data, layout, key, size):
    """Find an annotation that the stream made; ABSENT_NUMBER where there is none."""
    at: int64_t = layout.sections[MESSAGE_ANNOTATIONS_RANK].start
    end: int64_t = 0
    value: int64_t
    number: uint64_t = 0
    found: octets
    found_size: uint32_t = 0
    if at < 0:
        return ABSENT_NUMBER
    at = layout.sections[MESSAGE_ANNOTATIONS_RANK].value
    at = map_header(data, at, layout.sections[MESSAGE_ANNOTATIONS_RANK].end, cython.address(end))
    while 0 <= at < end:
        value = skip_value(data, at, end)
        if value < 0:
            return ABSENT_NUMBER
        found = read_key(data, at, value, cython.address(found_size))
        if found_size == size and memcmp(found, key, size) == 0:
            if read_number(data, value, end, cython.address(number)) < 0:
                return ABSENT_NUMBER
            return cython.cast(int64_t, number)
        at = skip_value(data, value, end)
    return ABSENT_NUMBER


def offset_after(data, size):
    """Return the offset to go on with after a message; ABSENT_NUMBER where it says none.

    A snapshot names it, for its own is that of the first record which is not in it.
    """
    layout = cython.declare(Layout)
    found: int64_t
    if locate(data, size, cython.address(layout)) != FOUND:
        return ABSENT_NUMBER
    found = own_number(data, cython.address(layout), b"x-opt-snapshot", 14)
    if found != ABSENT_NUMBER:
        return found
    found = own_number(data, cython.address(layout), b"x-opt-offset", 12)
    return ABSENT_NUMBER if found == ABSENT_NUMBER else found + 1


class RecordBuffer:
    """Messages, one after the other; each has been found to be one."""

    def __dealloc__(self):
        free(self.data)
        free(self.ends)

    def grow(self, size):
        """Make room for one more message."""
        capacity: int64_t = max(self.size + size, 2 * self.capacity, SIZE_MIN)
        count_max: cython.Py_ssize_t = max(2 * self.count_max, COUNT_MIN)
        data: cython.pointer(uint8_t)
        ends: cython.pointer(int64_t)
        if self.size + size > self.capacity:
            data = cython.cast(cython.pointer(uint8_t), realloc(self.data, capacity))
            if data == cython.NULL:
                raise MemoryError("no room for records that arrive")
            self.data = data
            self.capacity = capacity
        if self.count == self.count_max:
            ends = cython.cast(
                cython.pointer(int64_t), realloc(self.ends, count_max * cython.sizeof(int64_t))
            )
            if ends == cython.NULL:
                raise MemoryError("no room for records that arrive")
            self.ends = ends
            self.count_max = count_max
        return 0

    def drop(self, count):
        """Forget the first messages; nobody else may have a view of any."""
        index: cython.Py_ssize_t
        gone: int64_t = self.start_of(count)
        self.size -= gone
        self.count -= count
        memmove(self.data, self.data + gone, self.size)
        for index in range(self.count):
            self.ends[index] = self.ends[index + count] - gone
        if self.joined is not None:
            kept = {at - count: each for at, each in self.joined.items() if at >= count}
            self.joined = kept or None
        return 0

    def add_joined(self, message):
        """Add a message of several frames, which is an object already."""
        if self.count == self.count_max:
            self.grow(0)
        if self.joined is None:
            self.joined = {}
        self.joined[self.count] = message
        self.ends[self.count] = self.size
        self.count += 1
        return 0

    def add_from(self, other, index):
        """Add a message of another buffer."""
        start: int64_t = other.start_of(index)
        message: bytes = None if other.joined is None else other.joined.get(index)
        if message is not None:
            return self.add_joined(message)
        return self.add(other.data + start, other.ends[index] - start)

    def offset_after_last(self):
        """Return the offset to go on with after the last message; ABSENT_NUMBER if it says none."""
        start: int64_t
        message: bytes = None if self.joined is None else self.joined.get(self.count - 1)
        if message is not None:
            return offset_after(octets_of(message), len(message))
        start = self.start_of(self.count - 1)
        return offset_after(self.data + start, self.size - start)

    def record(self, index):
        start: int64_t = self.start_of(index)
        record: Record = Record.__new__(Record)
        message: bytes = None if self.joined is None else self.joined.get(index)
        if message is None:
            message = bytes_from(self.data + start, self.ends[index] - start)
        fill(record, message)
        hide(record)
        return record


def records_of(buffer, start, step, length):
    """Make a view of messages: from one on, each so many after the last one."""
    records: Records = Records.__new__(Records)
    buffer.is_shared = True
    records.buffer = buffer
    records.start = start
    records.step = step
    records.length = length
    return records


class Records:
    """Records in their order: a sequence that makes each of them when it is looked at.

    What is looked at twice is made twice: keep the one that is to be changed. A slice is such a
    sequence, too.
    """

    __hash__ = None

    index = Sequence.index
    count = Sequence.count

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: object) -> object:
        at: cython.Py_ssize_t
        if isinstance(index, slice):
            places = range(*index.indices(self.length))
            return records_of(
                self.buffer, self.place(places.start), self.step * places.step, len(places)
            )
        at = index
        if at < 0:
            at += self.length
        if not 0 <= at < self.length:
            raise IndexError(f"record {index} of {self.length}")
        return self.buffer.record(self.place(at))

    def __iter__(self):
        at: cython.Py_ssize_t
        for at in range(self.length):
            yield self.buffer.record(self.place(at))

    def __eq__(self, other: object) -> object:
        """Compare with records, or a list of messages, by their octets."""
        if not isinstance(other, (Records, list)):
            return NotImplemented
        return len(other) == self.length and all(
            isinstance(theirs, Message) and own.encode() == theirs.encode()
            for own, theirs in zip(self, other, strict=True)
        )

    def __repr__(self) -> str:
        """Return how many there are."""
        return f"<{self.length} records>"


Sequence.register(Records)
