"""Records of a stream as the columns of one Arrow batch, without an object for each message.

Theory of operation. A record is a message as it was encoded (`records.py`). Where it is kept, records
stand packed in a chunk, each behind its length, and the chunk says the first one's offset, the time,
and who made them. `Columns` goes through chunks and writes, for the columns that are wanted, what
Arrow needs. It takes records from one offset to before another, as long as they do not exceed a size
in all: what counts there is the record without its annotations, which is the same however it came.

A record that is no message yields nulls, and its octets as the body. Nothing here reads beyond what
it was given, whatever that holds.
"""

import cython
from cython.cimports.cogwork.dataplane.encoding.numbers import read_number
from cython.cimports.cogwork.dataplane.encoding.octets import load_u32, load_u64, octets_of
from cython.cimports.cogwork.dataplane.encoding.values import (
    read_binary,
    read_key,
    skip_short,
    skip_value,
)
from cython.cimports.cogwork.dataplane.message.sections import (
    BODY_RANK,
    DATA,
    VALUE,
    Section,
    next_section,
)
from cython.cimports.cogwork.dataplane.stream.records import (
    FINE,
    Record,
    read_record,
)
from cython.cimports.cogwork.dataplane.tables.column import (
    end_value,
    expect,
    note,
    put,
    put_end,
    put_hex,
    put_null,
    put_number,
    put_part,
    write_ends,
)
from cython.cimports.cogwork.dataplane.tables.parsed import parse, size_without_annotations
from cython.cimports.cogwork.dataplane.tables.value_text import is_ascii, put_value
from cython.cimports.cpython.bytes import PyBytes_GET_SIZE
from cython.cimports.libc.string import memcmp
from google_crc32c import value as crc32c

__all__ = ("SOURCE_HASH", "Columns")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

LENGTH_SIZE = cython.declare(int64_t, 4)
CHUNK_HEAD_SIZE = cython.declare(int64_t, 37)
"""Offset, epoch, time, count, sequence, length of the producer's id."""
BLOCK_HEAD_SIZE = cython.declare(int64_t, 28)
"""Checksum, length, offset, count, time: before each chunk in a segment."""
COUNT_MAX = cython.declare(int64_t, 0x7FFFFFFF)


class Columns:
    """The columns of one batch.

    Attributes:
        start: The offset of the first row.
        next: The offset after the last row.
        limit: Where the batch ends at the latest.
        held_bytes: What its records hold besides their annotations.
        malformed: How many of them are no messages.
        is_full: Whether it takes no more.
    """

    def __init__(self, names, start: int, limit: int, size_max: int, own_mark: bytes):
        """Start with no rows yet.

        Args:
            names: The columns that are wanted.
            start: The offset of the first row.
            limit: Where the batch ends at the latest.
            size_max: What its records may hold besides their annotations, but for the first one.
            own_mark: How ids of producers begin that are no application's.
        """
        self.start = self.next = start
        self.limit = limit
        self.size_max = size_max
        self.own_mark = own_mark
        self.is_full = start >= limit
        self.mark_chunk = -1
        wanted = frozenset(names)
        self.offset = Column() if "offset" in wanted else None
        self.time = Column() if "time" in wanted else None
        self.producer = Column() if "producer" in wanted else None
        self.sequence = Column() if "sequence" in wanted else None
        self.address = Column() if "address" in wanted else None
        self.subject = Column() if "subject" in wanted else None
        self.message_id = Column() if "message_id" in wanted else None
        self.correlation_id = Column() if "correlation_id" in wanted else None
        self.reply_to = Column() if "reply_to" in wanted else None
        self.content_type = Column() if "content_type" in wanted else None
        self.body = Column() if "body" in wanted else None
        if "properties" in wanted:
            self.properties = Column()
            self.keys = Column()
            self.values = Column()
            write_ends(cython.address(self.properties.values))

    def go_on(self, before: Columns) -> None:
        """Remember where the batch before has stopped, and how much room it took."""
        self.mark_chunk = before.mark_chunk
        self.mark_next = before.mark_next
        self.mark_at = before.mark_at
        expect(self.body, before.body)
        expect(self.keys, before.keys)
        expect(self.values, before.values)
        expect(self.address, before.address)
        expect(self.subject, before.subject)
        expect(self.message_id, before.message_id)

    # -- where records come from

    def add_chunk(self, data: cython.const[uint8_t][::1], at: int = 0, end: int = -1) -> bool:
        """Add the records of a chunk from `next` on, as many as the batch takes.

        Args:
            data: Holds it.
            at: Where it begins.
            end: Where it ends; -1 is the end of the data.

        Returns:
            Whether the batch is full.

        Raises:
            ValueError: It is no chunk, or does not follow.
        """
        stop: int64_t = data.shape[0] if end < 0 else end
        if not 0 <= at <= stop <= data.shape[0]:
            raise ValueError("a chunk lies in its data")
        if stop - at >= CHUNK_HEAD_SIZE:
            self.add_chunk_at(cython.address(data[0]), at, stop)
            return self.is_full
        raise ValueError("a chunk is cut short")

    def add_blocks(self, data: cython.const[uint8_t][::1], at: int, end: int) -> int:
        """Add the records of the blocks of a segment, until the batch is full or they end.

        Args:
            data: The segment.
            at: Where a block begins that does not lie behind `next`.
            end: Where the blocks end.

        Returns:
            Where the block begins that holds `next`, or the end.

        Raises:
            ValueError: A block is damaged, or does not follow.
        """
        p: octets
        place: int64_t = at
        stop: int64_t = end
        size: int64_t
        if not 0 <= place < stop <= data.shape[0]:
            raise ValueError("blocks lie in their segment")
        p = cython.address(data[0])
        while place < stop and not self.is_full:
            if place + BLOCK_HEAD_SIZE > stop:
                raise ValueError("a block is cut short")
            size = BLOCK_HEAD_SIZE + cython.cast(int64_t, load_u32(p + place + 4))
            if place + size > stop or size < BLOCK_HEAD_SIZE + CHUNK_HEAD_SIZE:
                raise ValueError("a block is cut short")
            if not self.is_before(p, place):
                if load_u32(p + place) != crc32c(data[place + 4 : place + size]):
                    raise ValueError("a block's checksum is wrong")
                if self.add_chunk_at(p, place + BLOCK_HEAD_SIZE, place + size) > self.next:
                    return place
            place += size
        return place

    def is_before(self, p, at):
        """Return whether a block ends before the next row."""
        offset: uint64_t = load_u64(p + at + 8)
        count: uint64_t = load_u32(p + at + 16)
        return offset + count <= cython.cast(uint64_t, self.next)

    def add_received(self, p, size):
        """Add a record as a stream sends it to receivers, unless the batch is full."""
        place = cython.declare(Place)
        record = cython.declare(Record)
        number: uint64_t = 0
        place.time_ms = 0
        place.producer = cython.NULL
        place.producer_size = 0
        place.has_sequence = False
        place.sequence = 0
        if self.is_full:
            return False
        if read_record(p, size, cython.address(record)) == FINE:
            if find_annotation(cython.address(record), b"x-opt-time", 10, cython.address(number)):
                place.time_ms = cython.cast(int64_t, number)
            place.producer = record.producer
            place.producer_size = record.producer_size
            place.has_sequence = record.has_sequence
            place.sequence = cython.cast(int64_t, record.sequence)
        return self.add_record(p, size, cython.address(place))

    def add_records(self, records: Records, at: int) -> int:
        """Add records that a receiver got, from one on.

        Args:
            records: What was received.
            at: The index of the first one.

        Returns:
            The index of the first one that was not taken.
        """
        index: cython.Py_ssize_t = at
        place: cython.Py_ssize_t
        buffer: RecordBuffer = records.buffer
        while index < records.length:
            place = records.place(index)
            if not self.add_received(
                buffer.data + buffer.start_of(place), buffer.ends[place] - buffer.start_of(place)
            ):
                break
            index += 1
        return index

    def add_chunk_at(self, p, at, end):
        """Add the records of a chunk; return the offset after its last one."""
        place = cython.declare(Place)
        offset: uint64_t = load_u64(p + at)
        count: uint32_t = load_u32(p + at + 24)
        size: uint32_t = p[at + 36]
        mark_size: int64_t = PyBytes_GET_SIZE(self.own_mark)
        if at + CHUNK_HEAD_SIZE + size > end:
            raise ValueError("a chunk is cut short")
        if offset > cython.cast(uint64_t, self.next) or count > COUNT_MAX:
            raise ValueError("a chunk does not follow")
        place.time_ms = cython.cast(int64_t, load_u64(p + at + 16))
        place.sequence = cython.cast(int64_t, load_u64(p + at + 28))
        place.producer = p + at + CHUNK_HEAD_SIZE
        place.producer_size = size
        if (
            size >= mark_size > 0
            and memcmp(place.producer, octets_of(self.own_mark), mark_size) == 0
        ):
            place.producer_size = 0
        place.has_sequence = place.producer_size > 0
        if place.producer_size == 0:
            place.producer = cython.NULL
        at += CHUNK_HEAD_SIZE + size
        self.add_packed(p, at, end, cython.cast(int64_t, offset), count, cython.address(place))
        return cython.cast(int64_t, offset) + count

    def add_packed(self, p, at, end, offset, count, place):
        """Add the packed records from `next` on; a length that is wrong leaves nothing behind it."""
        index: uint32_t = 0
        size: int64_t
        start: int64_t = at
        first: int64_t = place.sequence
        if self.mark_chunk == offset and self.mark_next <= self.next:
            if 0 <= self.mark_next - offset <= count and 0 <= self.mark_at <= end - at:
                index = cython.cast(uint32_t, self.mark_next - offset)
                at += self.mark_at
        while index < count and not self.is_full:
            size = 0
            self.mark_at = at - start
            if at + LENGTH_SIZE <= end:
                size = load_u32(p + at)
                at += LENGTH_SIZE
                size = min(size, end - at)
            else:
                at = end
            if offset + index >= self.next:
                place.sequence = cython.cast(int64_t, cython.cast(uint64_t, first) + index)
                if not self.add_record(p + at, size, place):
                    break
            at += size
            index += 1
            self.mark_at = at - start
        self.mark_chunk = offset
        self.mark_next = offset + index
        return 0

    # -- a row

    def add_record(self, p, size, place):
        """Add a row; return whether it was taken."""
        parsed = cython.declare(Parsed)
        measure: int64_t
        parse(p, size, cython.address(parsed))
        measure = size_without_annotations(size, cython.address(parsed))
        if self.next > self.start and self.held_bytes + measure > self.size_max:
            self.is_full = True
            return False
        self.held_bytes += measure
        self.malformed += not parsed.is_whole
        if self.offset is not None:
            put_number(cython.address(self.offset.values), self.next)
        if self.time is not None:
            put_number(
                cython.address(self.time.values),
                cython.cast(int64_t, cython.cast(uint64_t, place.time_ms) * 1000),
            )
        if self.producer is not None:
            if place.producer == cython.NULL:
                put_null(cython.address(self.producer.values))
            else:
                put(cython.address(self.producer.values), place.producer, place.producer_size)
        if self.sequence is not None:
            put_number(
                cython.address(self.sequence.values), place.sequence if place.has_sequence else 0
            )
            note(cython.address(self.sequence.values), place.has_sequence)
        self.put_fields(p, cython.address(parsed))
        if self.properties is not None:
            self.put_properties(p, cython.address(parsed))
        if self.body is not None:
            self.put_body(p, size, cython.address(parsed))
        self.next += 1
        self.is_full = self.next >= self.limit
        return True

    def put_fields(self, p, parsed):
        if self.message_id is not None:
            put_field(cython.address(self.message_id.values), p, parsed, 0)
        if self.address is not None:
            put_field(cython.address(self.address.values), p, parsed, 2)
        if self.subject is not None:
            put_field(cython.address(self.subject.values), p, parsed, 3)
        if self.reply_to is not None:
            put_field(cython.address(self.reply_to.values), p, parsed, 4)
        if self.correlation_id is not None:
            put_field(cython.address(self.correlation_id.values), p, parsed, 5)
        if self.content_type is not None:
            put_field(cython.address(self.content_type.values), p, parsed, 6)
        return 0

    def put_properties(self, p, parsed):
        at: int64_t = parsed.pairs
        value: int64_t
        following: int64_t
        while parsed.is_whole and 0 <= at < parsed.pairs_end:
            value = skip_short(p, at, parsed.pairs_end)
            following = skip_short(p, value, parsed.pairs_end)
            if p[at] == 0x40:  # no key of a map in Arrow is null
                put_hex(cython.address(self.keys.values), p + at, 1)
            else:
                put_text(cython.address(self.keys.values), p, at, value)
            put_text(cython.address(self.values.values), p, value, following)
            at = following
        put_end(cython.address(self.properties.values), self.keys.values.count)
        return note(cython.address(self.properties.values), parsed.is_whole)

    def put_body(self, p, size, parsed):
        values: cython.pointer(Values) = cython.address(self.body.values)
        section: cython.pointer(cython.const[Section])
        code: uint8_t
        head: int64_t
        if not parsed.is_whole:
            return put(values, p, size)
        section = cython.address(parsed.layout.sections[BODY_RANK])
        if section.start < 0:
            return put_null(values)
        if parsed.layout.body_code == DATA:
            if parsed.layout.body_sections > 1 or p[section.value] & 0xEF != 0xA0:
                return self.put_sections(p, parsed)
            head = 2 if p[section.value] == 0xA0 else 5
            return put(values, p + section.value + head, section.end - section.value - head)
        if parsed.layout.body_code == VALUE:
            code = p[section.value]
            if code == 0x40:
                return put_null(values)
            if code == 0xA0 or code == 0xA1:
                return put(values, p + section.value + 2, section.end - section.value - 2)
            if code == 0xB0 or code == 0xB1:
                return put(values, p + section.value + 5, section.end - section.value - 5)
        return put(values, p + section.start, section.end - section.start)

    def put_sections(self, p, parsed):
        """Join the data sections, which have been looked at."""
        values: cython.pointer(Values) = cython.address(self.body.values)
        section = cython.declare(Section)
        data: octets = cython.NULL
        size: uint32_t = 0
        end: int64_t = parsed.layout.sections[BODY_RANK].end
        at: int64_t = parsed.layout.sections[BODY_RANK].start
        while at < end:
            next_section(p, end, at, cython.address(section))
            read_binary(p, section.value, section.end, cython.address(data), cython.address(size))
            put_part(values, data, size)
            at = section.end
        return end_value(values)


@cython.cfunc
@cython.inline
@cython.exceptval(-1)
def put_field(
    values: cython.pointer(Values),
    p: octets,
    parsed: cython.pointer(cython.const[Parsed]),
    field: cython.int,
) -> cython.int:
    if not parsed.is_whole or parsed.start[field] < 0:
        return put_null(values)
    return put_text(values, p, parsed.start[field], parsed.end[field])


@cython.cfunc
@cython.exceptval(-1)
def put_text(values: cython.pointer(Values), p: octets, at: int64_t, end: int64_t) -> cython.int:
    """Add the text of an encoded value; the commonest ones are short strings of ASCII, or null."""
    code: uint8_t = p[at]
    if code == 0x40:
        return put_null(values)
    if (code == 0xA1 or code == 0xA3) and is_ascii(p + at + 2, end - at - 2):
        return put(values, p + at + 2, end - at - 2)
    return put_value(values, p, at, end)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def find_annotation(
    record: cython.pointer(Record),
    key: cython.p_const_char,
    size: int64_t,
    number: cython.pointer(uint64_t),
) -> cython.bint:
    """Read a whole number that the stream has put among the annotations."""
    at: int64_t = record.pairs
    value: int64_t
    found: octets
    found_size: uint32_t = 0
    while at < record.pairs_end:
        value = skip_value(record.data, at, record.pairs_end)
        if value < 0:
            return False
        found = read_key(record.data, at, value, cython.address(found_size))
        if found_size == size and memcmp(found, key, size) == 0:
            return read_number(record.data, value, record.pairs_end, number) >= 0
        at = skip_value(record.data, value, record.pairs_end)
        if at < 0:
            return False
    return False
