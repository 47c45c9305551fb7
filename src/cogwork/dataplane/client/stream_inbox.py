"""A client's end of a stream: records, how far they have come, and when they have caught up.

Theory of operation. Records wait as octets, in a buffer, until the application looks at them
(`cogwork.dataplane.client.stream_records`); here each is only seen to be a message. The last one of a run
says its offset, so whoever attaches again knows where to go on. The container sends a marker once
it has sent the last record there was when the reader started: a message with the one annotation
`x-opt-caught-up`, which never gets to the application. The application has caught up when it was
handed all that came before the marker.
"""

from __future__ import annotations

import cython
from cython.cimports.cogwork.dataplane.client.inbox import UNDECODABLE_STATE, Inbox
from cython.cimports.cogwork.dataplane.client.stream_records import (
    ABSENT_NUMBER,
    RecordBuffer,
    records_of,
)
from cython.cimports.cogwork.dataplane.encoding.octets import load_u64, octets_of
from cython.cimports.cogwork.dataplane.message.sections import FOUND, Layout, locate
from cython.cimports.cogwork.dataplane.source_hash import COGWORK_SOURCE_HASH
from cython.cimports.cogwork.dataplane.transport.shipment import ACCEPTED, REJECTED, Piece
from cython.cimports.cpython.ref import Py_REFCNT
from cython.cimports.libc.stdint import int64_t, uint32_t
from cython.cimports.libc.string import memcmp

__all__ = ("CAUGHT_UP_PREFIX", "SOURCE_HASH", "StreamInbox")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

CAUGHT_UP_PREFIX = b"\x00\x53\x72\xc1\x1b\x02\xa3\x0fx-opt-caught-up\x80"
"""How a marker begins; the next offset follows, in eight octets."""

PREFIX = cython.declare(bytes, CAUGHT_UP_PREFIX)
PREFIX_SIZE = cython.declare(int64_t, len(CAUGHT_UP_PREFIX))

KEPT_SIZE_MAX = cython.declare(int64_t, 1024 * 1024)
"""Room that is kept for what arrives next."""

SPARES_MAX = cython.declare(cython.Py_ssize_t, 2)
"""One that the application still has when it asks for the next, and one before that."""

SPARE_REFERENCES = cython.declare(cython.Py_ssize_t, 2)
"""Those of the list, and of who counts."""

KEPT_MIN = cython.declare(cython.Py_ssize_t, 64)
"""Records that were handed over one by one are forgotten so many at a time, or more; those of several
frames at once, where there are few: some may be megabytes."""


class StreamInbox(Inbox):
    """Records on their way to the application.

    Attributes:
        on_caught_up: Called without arguments when the application has caught up; once.
        on_placed: Called without arguments when the stream has said where the reader stands; once.
    """

    def __cinit__(self):
        self.buffer = RecordBuffer()
        self.spares = []
        self.following = ABSENT_NUMBER

    # -- what the data plane does

    def take(self, s):
        piece: Piece
        piece.data = s.data
        piece.size = s.size
        piece.token = s.token
        self.take_run(s, cython.address(piece), 1)
        return 0

    def take_run(self, s, pieces, count):
        index: uint32_t
        last: int64_t
        before: cython.Py_ssize_t = self.buffer.count
        for index in range(count):
            if s.settled and is_common_record(pieces[index].data, pieces[index].size):
                self.buffer.add(pieces[index].data, pieces[index].size)
                self.arrived += 1
            else:
                self.receive(cython.address(pieces[index]), s.settled)
        if self.buffer.count == before:
            return count
        last = self.buffer.offset_after_last()
        if last != ABSENT_NUMBER:
            self.following = last
        if self.waiters or self.listener is not None or self.draining is not None:
            self.wakeup.mark_dirty()
        return count

    def receive(self, piece, settled):
        """Take what may be any message, or none."""
        layout = cython.declare(Layout)
        token: uint32_t = cython.cast(uint32_t, piece.token)
        if locate(piece.data, piece.size, cython.address(layout)) != FOUND:
            self.undecodable += 1
            if not settled:
                self.reply(token, REJECTED, UNDECODABLE_STATE)
            return self.top_up()
        if not settled:
            self.reply(token, ACCEPTED, None)
        if (
            piece.size >= PREFIX_SIZE + 8
            and memcmp(piece.data, octets_of(PREFIX), PREFIX_SIZE) == 0
        ):
            return self.note_marker(piece.data)
        self.arrived += 1
        joined: bytes = None if self.link is None else self.link.joined
        if joined is not None and octets_of(joined) == piece.data and len(joined) == piece.size:
            return self.buffer.add_joined(joined)
        return self.buffer.add(piece.data, piece.size)

    def note_marker(self, data):
        self.told_offset = load_u64(data + PREFIX_SIZE)
        if not self.is_told:
            self.is_told = True
            self.caught_up_after = self.arrived
            if self.on_placed is not None:
                self.on_placed()
            self.look()
        return self.top_up()

    # -- handing over

    def count_waiting(self):
        return cython.cast(uint32_t, self.buffer.count - self.taken)

    def refill(self):
        return self.taken < self.buffer.count

    def next_waiting(self):
        record = self.buffer.record(self.taken)
        self.taken += 1
        self.handed += 1
        self.clear()
        self.look()
        if self.top_up():
            self.flusher.now()
        return record

    def pick(self, limit):
        count: cython.Py_ssize_t = min(limit, self.buffer.count - self.taken)
        records = records_of(self.buffer, self.taken, 1, count)
        self.taken += count
        self.handed += count
        self.clear()
        self.look()
        return records

    def take_now(self) -> object:
        """Hand over what has arrived, which counts as held until `let_go`."""
        self.held += self.count_waiting()
        return self.pick(self.buffer.count)

    def clear(self):
        """Give room back once all, or most, of what arrived was handed over."""
        rest: cython.Py_ssize_t = self.buffer.count - self.taken
        index: cython.Py_ssize_t
        buffer: RecordBuffer = self.buffer
        is_large: cython.bint = buffer.joined is not None and rest <= KEPT_MIN
        if rest > 0 and self.taken < max(rest, KEPT_MIN) and not is_large:
            return 0
        if not buffer.is_shared and buffer.capacity <= KEPT_SIZE_MAX:
            buffer.drop(self.taken)
        else:
            self.buffer = self.fresh_buffer()
            for index in range(self.taken, buffer.count):
                self.buffer.add_from(buffer, index)
        self.taken = 0
        return 0

    def fresh_buffer(self):
        """Return one of the last two sheaves, where nobody has a view of it any more, or a new one.

        Room that is used again need not be given by the system, page by page.
        """
        buffer: RecordBuffer
        spares: list = self.spares
        found: RecordBuffer = None
        for buffer in spares:
            if Py_REFCNT(buffer) == SPARE_REFERENCES:
                found = buffer
        if found is not None:
            spares.remove(found)
            found.drop(found.count)
            found.is_shared = False
        if self.buffer.capacity <= KEPT_SIZE_MAX and self.buffer.joined is None:
            spares.append(self.buffer)
            if len(spares) > SPARES_MAX:
                del spares[0]
        return RecordBuffer() if found is None else found

    # -- the end

    def drop_waiting(self):
        """Keep it, and a failure waits: nobody sends a record again that has arrived."""
        return 0

    def forget(self) -> None:
        """Hand over nothing of what waits: the application has gone."""
        self.buffer = RecordBuffer()
        self.spares = []
        self.taken = 0

    def forget_from(self, end: int) -> None:
        """Hand over nothing of what waits from an offset on: it is not in the stream any more."""
        count: cython.Py_ssize_t = self.buffer.count
        index: cython.Py_ssize_t
        kept: RecordBuffer = RecordBuffer()
        while count > self.taken and self.buffer.record(count - 1).offset >= end:
            count -= 1
        for index in range(self.taken, count):
            kept.add_from(self.buffer, index)
        self.buffer = kept
        self.taken = 0
        self.following = min(self.following, end)
        if self.told_offset is not None:
            self.told_offset = min(self.told_offset, end)

    # -- how far it is

    def look(self):
        """Tell the application that it has caught up, once it has."""
        if self.is_told and self.on_caught_up is not None and self.handed >= self.caught_up_after:
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
        following: object = None if self.following == ABSENT_NUMBER else self.following
        if self.told_offset is not None and (following is None or self.told_offset > following):
            following = self.told_offset
        return following
