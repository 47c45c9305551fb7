"""Messages to octets and back.

A frame is a version octet, and messages behind one another: each after its length (four octets,
what follows them), with its kind, its group and its term, and fields by kind. Numbers are
big-endian; `docs/internals/raft.md` has the tables. The octets of an entry are made once for all
members that it goes to.

Compiled: each entry passes here twice, and its answers and commits as often.
"""

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import bytes_from, load_u32, load_u64
from cython.cimports.cpython.buffer import (
    PyBUF_SIMPLE,
    PyBuffer_Release,
    PyObject_GetBuffer,
)

from cogwork.raft.entries import Entry, Kind
from cogwork.raft.errors import Malformed
from cogwork.raft.heartbeats import Beat
from cogwork.raft.membership import Membership
from cogwork.raft.messages import (
    Append,
    AppendReply,
    Commit,
    Heartbeat,
    HeartbeatReply,
    ReadIndex,
    ReadIndexReply,
    SnapshotPart,
    SnapshotReply,
    TimeoutNow,
    Vote,
    VoteReply,
)
from cogwork.raft.snapshot import Snapshot

__all__ = ("ENTRIES_MAX", "FRAME_BYTES_MAX", "SOURCE_HASH", "VERSION", "decode", "encode")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

VERSION = 1
FRAME_BYTES_MAX = 32 * 1024 * 1024
ENTRIES_MAX = 65_536

INDEX_MAX = cython.declare(uint64_t, 2**63 - 1)
MESSAGE_BYTES_MAX = cython.declare(int64_t, 2**32 - 1)
KIND_MAX = cython.declare(uint8_t, max(Kind))
APPEND_CODE = cython.declare(uint8_t, 3)
PART_CODE = cython.declare(uint8_t, 8)


def decode(data: object) -> object:
    """Yield the messages of a frame, with their groups.

    Raises:
        Malformed: What follows is none; what came before is good.
    """
    view = cython.declare(Py_buffer)
    found: list = []
    PyObject_GetBuffer(data, cython.address(view), PyBUF_SIMPLE)
    try:
        read_messages(cython.cast(octets, view.buf), view.len, found)
    except Malformed as error:
        return _ending(found, error)
    finally:
        PyBuffer_Release(cython.address(view))
    return iter(found)


def _ending(found, error):
    """Yield what is good, and then say what is not."""
    yield from found
    raise error


def read_messages(data, size, found):
    """Read all messages of a frame: every length is compared with what is there, first."""
    position: int64_t = 1
    start: int64_t
    length: int64_t
    group: uint32_t
    if size > FRAME_BYTES_MAX:
        raise Malformed(f"a frame has at most {FRAME_BYTES_MAX} octets, not {size}")
    if size < 1 or data[0] != VERSION:
        version = bytes_from(data, 1).hex() if size else "missing"
        raise Malformed(f"the version is {version}, not {VERSION:02x}")
    while position < size:
        if size - position < HEADER_BYTES:
            raise Malformed("the frame ends within a message's header")
        length = load_u32(data + position)
        start = position + HEADER_BYTES
        if length > size - position - LENGTH_BYTES or length < HEADER_BYTES - LENGTH_BYTES:
            raise Malformed("a message is longer than its frame, or shorter than its header")
        group = load_u32(data + position + 5)
        message = read_message(
            data[position + 4],
            load_u64(data + position + 9),
            data + start,
            length - (HEADER_BYTES - LENGTH_BYTES),
        )
        found.append((group, message))
        position += LENGTH_BYTES + length
    return 0


def read_message(code, term, data, size):
    """Read the fields of a message, which take so many octets."""
    shape: Shape
    if code == APPEND_CODE:
        return read_append(term, data, size)
    if code == PART_CODE:
        return read_part(term, data, size)
    if code >= len(_SHAPES) or _SHAPES[code] is None:
        raise Malformed(f"there is no message of kind {code}")
    shape = _SHAPES[code]
    return shape.decode(term, data, size)


def encode(group, message):
    """Encode a message, in parts."""
    shape: Shape
    if type(message) is Append:
        return encode_append(group, message)
    if type(message) is SnapshotPart:
        return encode_part(group, message)
    shape = _SHAPE_OF[type(message)]
    return [shape.encode(group, message)]


# Messages of fixed size.


class Shape:
    """A kind of message whose fields have one size."""

    def __init__(self, code, message, numbers, words=0, flags=0):
        self.code = code
        self.message = message
        self.names = message.__struct_fields__[1:]
        self.numbers = numbers
        self.words = words
        self.flags = flags
        self.size_bytes = 8 * numbers + 4 * words + (flags > 0)

    def encode(self, group, message):
        buffer = cython.declare(uint8_t[FIXED_BYTES_MAX])
        p: cython.pointer(uint8_t) = buffer
        place: cython.int
        octet: uint8_t = 0
        store_header(p, self.size_bytes, self.code, group, message.term)
        p += HEADER_BYTES
        for place in range(self.numbers):
            store_u64(p, getattr(message, self.names[place]))
            p += 8
        for place in range(self.numbers, self.numbers + self.words):
            store_u32(p, getattr(message, self.names[place]))
            p += 4
        for place in range(self.flags):
            if getattr(message, self.names[self.numbers + self.words + place]):
                octet |= 1 << place
        if self.flags:
            p[0] = octet
        return bytes_from(buffer, HEADER_BYTES + self.size_bytes)

    def decode(self, term, data, size):
        place: cython.int
        values: list = [term]
        if size != self.size_bytes:
            raise Malformed(f"a message's fields have {size} octets, not {self.size_bytes}")
        for place in range(self.numbers):
            values.append(load_u64(data))
            data += 8
        for place in range(self.words):
            values.append(load_u32(data))
            data += 4
        if self.flags:
            if data[0] >> self.flags:
                raise Malformed(f"unknown flags: {data[0]:#04x}")
            for place in range(self.flags):
                values.append(data[0] >> place & 1 == 1)
        return self.message(*values)


_SHAPE_OF = cython.declare(
    dict,
    {
        shape[1]: Shape(*shape)
        for shape in (
            (1, Vote, 2, 0, 2),
            (2, VoteReply, 0, 0, 2),
            (4, AppendReply, 4),
            (5, Commit, 2),
            (6, Heartbeat, 2, 0, 1),
            (7, HeartbeatReply, 1, 0, 1),
            (9, SnapshotReply, 2),
            (10, TimeoutNow, 0),
            (11, ReadIndex, 1),
            (12, ReadIndexReply, 2),
            (13, Beat, 3, 1),
        )
    },
)
_SHAPES = cython.declare(list, [None] * 14)


def _list_shapes():
    shape: Shape
    for shape in _SHAPE_OF.values():
        _SHAPES[shape.code] = shape


_list_shapes()


# Entries.


def encode_append(group, message):
    """Encode entries: what stands before the first payload is one part, each payload is itself."""
    first = cython.declare(uint8_t[FIRST_BYTES])
    head = cython.declare(uint8_t[ENTRY_BYTES])
    size: int64_t = APPEND_BYTES
    first_bytes: int64_t = HEADER_BYTES + APPEND_BYTES
    length: int64_t
    count: int64_t = 0
    parts: list = [None]
    for entry in message.entries:
        payload = entry.payload
        length = len(payload)
        if count == 0:
            store_entry(first + first_bytes, entry, length)
            first_bytes += ENTRY_BYTES
        else:
            store_entry(head, entry, length)
            parts.append(bytes_from(head, ENTRY_BYTES))
        parts.append(payload)
        size += ENTRY_BYTES + length
        count += 1
    if size > MESSAGE_BYTES_MAX - HEADER_BYTES:
        raise OverflowError(f"an append of {size} octets")
    store_header(first, size, APPEND_CODE, group, message.term)
    store_u64(first + HEADER_BYTES, message.prev_index)
    store_u64(first + HEADER_BYTES + 8, message.prev_term)
    store_u64(first + HEADER_BYTES + 16, message.commit)
    store_u64(first + HEADER_BYTES + 24, message.durable)
    store_u32(first + HEADER_BYTES + 32, cython.cast(uint32_t, count))
    parts[0] = bytes_from(first, first_bytes)
    return parts


def store_entry(p, entry, size):
    """Write what stands before an entry's payload."""
    kind: uint8_t = entry.kind
    store_u64(p, entry.term)
    p[8] = kind
    store_u32(p + 9, cython.cast(uint32_t, size))
    return 0


def read_append(term, data, size):
    prev_index: uint64_t
    prev_term: uint64_t
    last_term: uint64_t
    entry_term: uint64_t
    index: uint64_t
    count: uint32_t
    kind: uint8_t
    length: int64_t
    position: int64_t = APPEND_BYTES
    entries: list = []
    if size < APPEND_BYTES:
        raise Malformed("a message is too short for its fields")
    prev_index = index = load_u64(data)
    prev_term = last_term = load_u64(data + 8)
    count = load_u32(data + 32)
    if count > ENTRIES_MAX or prev_index > INDEX_MAX - count:
        raise Malformed(f"{count} entries after {prev_index} are too many")
    while count:
        if size - position < ENTRY_BYTES:
            raise Malformed("a message is too short for its fields")
        entry_term = load_u64(data + position)
        kind = data[position + 8]
        length = load_u32(data + position + 9)
        position += ENTRY_BYTES
        index += 1
        if length > size - position or entry_term < last_term or kind > KIND_MAX:
            raise Malformed(f"entry {index} is none, or its term is less than that before")
        entries.append(Entry(index, entry_term, kind, bytes_from(data + position, length)))
        position += length
        last_term = entry_term
        count -= 1
    if position != size or (entries and last_term > term):
        raise Malformed("the entries do not end with the message, or their term is none yet")
    return Append(term, prev_index, prev_term, load_u64(data + 16), entries, load_u64(data + 24))


# Snapshots.


def encode_part(group, message):
    head = cython.declare(uint8_t[PART_HEAD_BYTES])
    p: cython.pointer(uint8_t) = head
    snapshot = message.snapshot
    members: bytes = snapshot.membership.to_bytes()
    size: int64_t = PART_BYTES + len(members) + len(message.data)
    if size > MESSAGE_BYTES_MAX - HEADER_BYTES:
        raise OverflowError(f"a part of {size} octets")
    store_header(p, size, PART_CODE, group, message.term)
    p += HEADER_BYTES
    for number in (
        snapshot.index,
        snapshot.term,
        snapshot.size_bytes,
        snapshot.tag,
        message.offset,
    ):
        store_u64(p, number)
        p += 8
    store_u32(p, cython.cast(uint32_t, len(members)))
    return [bytes_from(head, PART_HEAD_BYTES), members, message.data]


def read_part(term, data, size):
    length: int64_t
    if size < PART_BYTES:
        raise Malformed("a message is too short for its fields")
    length = load_u32(data + 40)
    if length > size - PART_BYTES or load_u64(data) > INDEX_MAX:
        raise Malformed("the membership is longer than its message")
    membership = Membership.from_bytes(bytes_from(data + PART_BYTES, length))
    snapshot = Snapshot(
        load_u64(data), load_u64(data + 8), membership, load_u64(data + 16), load_u64(data + 24)
    )
    octets_of_part = bytes_from(data + PART_BYTES + length, size - PART_BYTES - length)
    return SnapshotPart(term, snapshot, load_u64(data + 32), octets_of_part)
