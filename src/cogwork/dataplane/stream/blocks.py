"""A stream's records on their way to receivers: encoded once, sent to any number of links.

Theory of operation. A block is a row of chunks that follow each other. When its first record is to
be sent it makes messages of all of them, in one buffer: each gets `x-opt-offset`, `x-opt-time` and,
where the record has them, `x-opt-producer` and `x-opt-sequence`, before the annotations of its own.
A link then gets as many as its credit and its connection take, in runs, straight from that buffer.
Where there is but one receiver, they are written into its output at once, without the buffer.

The token of a delivery is its record's offset.
"""

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import (
    load_u32,
    octets_of,
    store_u32,
    store_u64,
)
from cython.cimports.cogwork.dataplane.stream.records import (
    FINE,
    PRODUCER_SIZE_MAX,
    Record,
    read_record,
    write_pairs,
)
from cython.cimports.cogwork.dataplane.transport.consumer_end import is_picky, must_wait
from cython.cimports.cogwork.dataplane.transport.sending import (
    TEMPLATE_MAX_BYTES,
    frame_room,
    put_header,
)
from cython.cimports.cogwork.dataplane.transport.shipment import RUN_MAX, Piece, fill_shipment
from cython.cimports.cpython.bytes import PyBytes_GET_SIZE
from cython.cimports.libc.stdlib import free, malloc, realloc
from cython.cimports.libc.string import memcpy, memset

__all__ = ("SOURCE_HASH", "Block")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

OFFSET_PLACE = cython.declare(uint32_t, 15)
"""Where the number stands in the pairs of a stamp: after a symbol of twelve octets and a code."""

SEQUENCE_PLACE = cython.declare(uint32_t, 61)
"""The same for the sequence, which comes after the time."""

HEAD_SIZE = cython.declare(int64_t, 12)
"""Descriptor and constructor of the annotations, at most."""

STAMP_SIZE_MAX = cython.declare(int64_t, 151)
"""The pairs of a stamp with a producer id of the largest size."""

SIZE_MIN = cython.declare(int64_t, 4)


class Block:
    """Chunks that follow each other, on their way out.

    Attributes:
        offset: Of the first record.
        next_offset: After the last one.
        size_bytes: Of the records.
        is_closed: Whether it has been sent from, and takes no more chunks.
        is_encoded: Whether its messages have been made.
    """

    def __init__(self, offset: int):
        """Start without a chunk.

        Args:
            offset: Of the first record to come.
        """
        self.offset = self.next_offset = offset
        self.chunks = []

    def __dealloc__(self):
        free(self.data)
        free(self.ends)

    def add(self, time_ms: int, producer: bytes, sequence: int, count: int, payload: bytes) -> None:
        """Add the chunk that follows.

        Args:
            time_ms: When it was appended.
            producer: Who made it; empty where nobody says.
            sequence: The first record's.
            count: How many records.
            payload: The records, packed.

        Raises:
            ValueError: The block has been sent from already.
        """
        if self.is_closed:
            raise ValueError("a block that is sent gets no more")
        self.chunks.append((time_ms, producer, sequence, count, payload))
        self.next_offset += count
        self.size_bytes += PyBytes_GET_SIZE(payload)

    def send(
        self, link: ConsumerEnd, feed: Feed, offset: int, is_alone: cython.bint = False
    ) -> int:
        """Send records from one on, as many as a link takes.

        Args:
            link: Where to.
            feed: Hears what becomes of them.
            offset: Of the first record to send.
            is_alone: Whether no other link is going to be sent these records, as far as is known.

        Returns:
            The offset after the last one that was sent, or left out by the link's selector.

        Raises:
            ValueError: The records are damaged.
        """
        s: Shipment
        pieces: Piece[RUN_MAX]
        first: uint32_t
        index: uint32_t
        at: uint32_t
        count: uint32_t
        start: int64_t
        taken: int64_t
        index = cython.cast(uint32_t, cython.cast(uint64_t, offset) - self.offset)
        self.is_closed = True
        if not self.is_encoded:
            if (
                is_alone
                and link.presettles
                and not is_picky(link)
                and isinstance(link, OutgoingLink)
            ):
                index = self.send_straight(link, index)
                if self.offset + index == self.next_offset or not link.is_ready():
                    return self.offset + index
            self.encode()
        fill_shipment(cython.address(s), cython.NULL, 0)
        s.settled = link.presettles
        s.source_index = feed.index
        s.source_generation = feed.generation
        if is_picky(link):
            return self.offset + self.send_picky(link, cython.address(s), index)
        while index < self.count:
            first = index
            count = min(self.count - index, cython.cast(uint32_t, RUN_MAX))
            if not link.is_ready():
                break
            count = min(count, link.credit)
            start = self.ends[index - 1] if index else 0
            for at in range(count):
                pieces[at].data = self.data + start
                pieces[at].size = cython.cast(uint32_t, self.ends[index + at] - start)
                pieces[at].token = self.offset + index + at
                start = self.ends[index + at]
            s.data = pieces[0].data
            s.size = pieces[0].size
            s.token = pieces[0].token
            taken = link.take_run(cython.address(s), pieces, count)
            index += cython.cast(uint32_t, taken)
            if index == first:
                break
        return self.offset + index

    def send_straight(self, link, index):
        """Write records into a link's output; return the index after the last one.

        It stops where one is too large for a frame, too.
        """
        chunk: tuple
        count: uint32_t
        self.seek(index)
        while self.place.chunk < len(self.chunks) and link.is_ready():
            chunk = self.chunks[self.place.chunk]
            count = cython.cast(uint32_t, chunk[3]) - self.place.number
            if count == 0:
                self.place.chunk += 1
                self.place.number = 0
                self.place.at = 0
            elif (
                self.write_run(
                    link, chunk, link.run_limit(min(count, cython.cast(uint32_t, RUN_MAX)))
                )
                == 0
            ):
                break
        return self.place.index

    def seek(self, index):
        """Go to a record."""
        chunk: tuple
        payload: bytes
        if index < self.place.index:
            memset(cython.address(self.place), 0, cython.sizeof(Place))
        while self.place.index < index:
            chunk = self.chunks[self.place.chunk]
            payload = chunk[4]
            if self.place.number == cython.cast(uint32_t, chunk[3]):
                self.place.chunk += 1
                self.place.number = 0
                self.place.at = 0
                continue
            self.place.at = record_end(payload, self.place.at)
            self.place.number += 1
            self.place.index += 1
        return 0

    def write_run(self, link, chunk, count):
        """Write settled deliveries of one frame each from the place on; return how many."""
        stamp: Stamp
        r: Record
        header: uint8_t[TEMPLATE_MAX_BYTES]
        header_size: uint32_t = link.template_size
        payload: bytes = chunk[4]
        data: octets = octets_of(payload)
        session: Session = link.session
        room: int64_t = frame_room(link)
        at: int64_t = self.place.at
        end: int64_t = at
        size: uint32_t
        index: uint32_t
        base: cython.pointer(uint8_t)
        p: cython.pointer(uint8_t)
        frame: cython.pointer(uint8_t)
        make_stamp(cython.address(stamp), chunk[0], chunk[1])
        room -= HEAD_SIZE + stamp.size
        for index in range(count):
            size = cython.cast(uint32_t, record_end(payload, end) - end - SIZE_MIN)
            if size > room:
                count = index
                break
            end += SIZE_MIN + size
        if count == 0:
            return 0
        memcpy(header, link.template, TEMPLATE_MAX_BYTES)
        base = session.wire.reserve(
            cython.cast(
                uint32_t,
                end - at + count * (header_size + HEAD_SIZE + stamp.size) + TEMPLATE_MAX_BYTES,
            )
        )
        frame = base
        for index in range(count):
            size = load_u32(data + at)
            at += SIZE_MIN
            if read_record(data + at, size, cython.address(r)) != FINE:
                raise ValueError("a record is no message")
            store_u64(stamp.pairs + OFFSET_PLACE, self.offset + self.place.index + index)
            if stamp.count > 4:
                store_u64(
                    stamp.pairs + SEQUENCE_PLACE,
                    cython.cast(uint64_t, chunk[2]) + self.place.number + index,
                )
            p = put_header(
                frame,
                header,
                header_size,
                session.next_delivery_id + index,
                cython.cast(uint32_t, link.next_tag + index),
            )
            p = put_message(p, size, cython.address(r), cython.address(stamp))
            store_u32(frame, cython.cast(uint32_t, p - frame))
            frame = p
            at += size
        self.place.index += count
        self.place.number += count
        self.place.at = at
        link.count_run(
            count,
            (frame - base) - count * header_size,
            cython.cast(uint32_t, frame - base),
        )
        return count

    def send_picky(self, link, s, index):
        """Send one by one what a link's selector wants; return the index after the last one."""
        start: int64_t
        while index < self.count and link.is_ready():
            if must_wait(link):
                link.core.postpone(link)
                break
            start = self.ends[index - 1] if index else 0
            s.data = self.data + start
            s.size = cython.cast(uint32_t, self.ends[index] - start)
            s.token = self.offset + index
            if not link.refuses(s):
                link.take(s)
            index += 1
        return index

    def encode(self):
        """Make messages of all records."""
        count: uint64_t = self.next_offset - self.offset
        at: uint64_t = self.offset
        size: int64_t = self.size_bytes
        chunk: tuple
        self.ends = cython.cast(cython.pointer(End), malloc((count + 1) * cython.sizeof(End)))
        if self.ends == cython.NULL:
            raise MemoryError("no room for a block of a stream")
        # As much as is needed, so that nothing is copied for want of room, but for what records of
        # several kinds of annotations take more.
        for chunk in self.chunks:
            size += cython.cast(int64_t, chunk[3]) * (
                HEAD_SIZE + STAMP_SIZE_MAX - PRODUCER_SIZE_MAX + len(cython.cast(bytes, chunk[1]))
            )
        self.reserve(size)
        for chunk in self.chunks:
            self.encode_chunk(at, chunk)
            at += cython.cast(uint64_t, chunk[3])
        self.chunks = None
        self.is_encoded = True
        return 0

    def encode_chunk(self, offset, chunk):
        stamp: Stamp
        producer: bytes = chunk[1]
        payload: bytes = chunk[4]
        data: octets = octets_of(payload)
        at: int64_t = 0
        size: uint32_t
        count: uint32_t = chunk[3]
        sequence: uint64_t = chunk[2]
        index: uint32_t
        make_stamp(cython.address(stamp), chunk[0], producer)
        for index in range(count):
            size = cython.cast(uint32_t, record_end(payload, at) - at - SIZE_MIN)
            at += SIZE_MIN
            store_u64(stamp.pairs + OFFSET_PLACE, offset + index)
            if stamp.count > 4:
                store_u64(stamp.pairs + SEQUENCE_PLACE, sequence + index)
            self.put(data + at, size, cython.address(stamp))
            at += size
        return 0

    def put(self, record, size, stamp):
        """Write one message."""
        r: Record
        if read_record(record, size, cython.address(r)) != FINE:
            raise ValueError("a record is no message")
        self.reserve(self.size + size + stamp.size + HEAD_SIZE + r.kept_size)
        self.size = put_message(self.data + self.size, size, cython.address(r), stamp) - self.data
        self.ends[self.count] = self.size
        self.count += 1
        return 0

    def reserve(self, size):
        """Make room for so much in all."""
        capacity: int64_t
        grown: cython.pointer(uint8_t)
        if size > self.capacity:
            capacity = max(size, self.capacity + self.capacity // 2)
            grown = cython.cast(cython.pointer(uint8_t), realloc(self.data, capacity))
            if grown == cython.NULL:
                raise MemoryError("no room for a block of a stream")
            self.data = grown
            self.capacity = capacity
        return 0


@cython.cfunc
@cython.exceptval(-1)
def make_stamp(stamp: cython.pointer(Stamp), time_ms: int64_t, producer: bytes) -> cython.int:
    """Write the pairs that all records of a chunk have, with room for what changes."""
    p: cython.pointer(uint8_t) = stamp.pairs
    size: uint32_t = cython.cast(uint32_t, PyBytes_GET_SIZE(producer))
    memcpy(p, b"\xa3\x0cx-opt-offset\x80", 15)
    store_u64(p + 15, 0)
    memcpy(p + 23, b"\xa3\x0ax-opt-time\x83", 13)
    store_u64(p + 36, cython.cast(uint64_t, time_ms))
    stamp.size = 44
    stamp.count = 4
    if size == 0:
        return 0
    if size > 64:
        raise ValueError("a producer id has at most 64 octets")
    memcpy(p + 44, b"\xa3\x0ex-opt-sequence\x80", 17)
    store_u64(p + 61, 0)
    memcpy(p + 69, b"\xa3\x0ex-opt-producer\xa0", 17)
    p[86] = cython.cast(uint8_t, size)
    memcpy(p + 87, octets_of(producer), size)
    stamp.size = 87 + size
    stamp.count = 8
    return 0


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def put_message(
    p: cython.pointer(uint8_t),
    size: uint32_t,
    r: cython.pointer(Record),
    stamp: cython.pointer(cython.const[Stamp]),
) -> cython.pointer(uint8_t):
    """Write a record with what the stream says of it; return where it ends."""
    section: int64_t = stamp.size + r.kept_size
    memcpy(p, r.data, r.head_end)
    p += r.head_end
    p[0] = 0x00
    p[1] = 0x53
    p[2] = 0x72
    if section < 0xFF and stamp.count + 2 * r.kept <= 0xFF:
        p[3] = 0xC1
        p[4] = cython.cast(uint8_t, section + 1)
        p[5] = cython.cast(uint8_t, stamp.count + 2 * r.kept)
        p += 6
    else:
        p[3] = 0xD1
        store_u32(p + 4, cython.cast(uint32_t, section + 4))
        store_u32(p + 8, stamp.count + 2 * r.kept)
        p += HEAD_SIZE
    memcpy(p, stamp.pairs, stamp.size)
    p += stamp.size
    if r.kept:
        p = write_pairs(p, r)
    memcpy(p, r.data + r.rest, size - r.rest)
    return p + (size - r.rest)


@cython.cfunc
@cython.exceptval(-1)
def record_end(payload: bytes, at: int64_t) -> int64_t:
    """Return where the packed record at a place ends."""
    end: int64_t = PyBytes_GET_SIZE(payload)
    if at + SIZE_MIN > end:
        raise ValueError("a batch has fewer records than it says")
    at += SIZE_MIN + load_u32(octets_of(payload) + at)
    if at > end:
        raise ValueError("a batch ends in the middle of a record")
    return at
