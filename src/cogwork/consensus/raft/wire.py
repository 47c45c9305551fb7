"""Messages to octets and back.

A frame is a version octet, and messages behind one another: each after its length (four octets,
what follows them), with its kind, its group and its term, and fields by kind. Numbers are
big-endian; `docs/internals/raft.md` has the tables. The octets of an entry are made once for all
members that it goes to.
"""

from __future__ import annotations

from struct import Struct, error
from typing import TYPE_CHECKING

from cogwork.consensus.raft.entries import Entry, Kind
from cogwork.consensus.raft.errors import Malformed
from cogwork.consensus.raft.heartbeats import Beat
from cogwork.consensus.raft.membership import Membership
from cogwork.consensus.raft.messages import (
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
from cogwork.consensus.raft.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cogwork.consensus.raft.messages import Message

__all__ = ("ENTRIES_MAX", "FRAME_BYTES_MAX", "VERSION", "decode", "encode")

VERSION = 1

FRAME_BYTES_MAX = 32 * 1024 * 1024
"""One entry of the largest size fits, with what may come before it."""

ENTRIES_MAX = 65_536
"""In one message."""

INDEX_MAX = 2**63 - 1

Octets = bytes | memoryview
"""What is read: only what is kept of it is copied."""

_LENGTH = Struct(">I")
_HEADER = Struct(">IBIQ")
_HEADER_BYTES = _HEADER.size - _LENGTH.size
_ENTRY = Struct(">QBI")

_VOTE = Struct(">QQB")
_FLAGS = Struct(">B")
_APPEND = Struct(">QQQI")
_APPEND_REPLY = Struct(">QQQQ")
_ONE = Struct(">Q")
_TWO = Struct(">QQ")
_HEARTBEAT = Struct(">QQB")
_HEARTBEAT_REPLY = Struct(">QB")
_PART = Struct(">QQQQQI")
_BEAT = Struct(">QQQI")
_KINDS = frozenset(int(kind) for kind in Kind)


def encode(group: int, message: Message | Beat) -> list[bytes]:
    """Encodes a message, in parts."""
    code, body = _ENCODERS[type(message)]
    parts = body(message)
    length = _HEADER_BYTES + sum(map(len, parts))
    return [_HEADER.pack(length, code, group, message.term), *parts]


def decode(data: Octets) -> Iterator[tuple[int, Message | Beat]]:
    """Yields the messages of a frame, with their groups.

    Raises:
        Malformed: What follows is none; what came before is good.
    """
    if len(data) > FRAME_BYTES_MAX:
        raise Malformed(f"a frame has at most {FRAME_BYTES_MAX} octets, not {len(data)}")
    if not data or data[0] != VERSION:
        raise Malformed(f"the version is {data[:1].hex() or 'missing'}, not {VERSION:02x}")
    position = 1
    while position < len(data):
        try:
            length, code, group, term = _HEADER.unpack_from(data, position)
        except error:
            raise Malformed("the frame ends within a message's header") from None
        start = position + _HEADER.size
        position += _LENGTH.size + length
        if position > len(data) or length < _HEADER_BYTES:
            raise Malformed("a message is longer than its frame, or shorter than its header")
        decoder = _DECODERS.get(code)
        if decoder is None:
            raise Malformed(f"there is no message of kind {code}")
        try:
            yield group, decoder(term, data, start, position)
        except error:
            raise Malformed("a message is too short for its fields") from None


def _exactly(fields: Struct, data: Octets, start: int, end: int) -> tuple[int, ...]:
    """Unpacks the fields of a message that has nothing else."""
    if end - start != fields.size:
        raise Malformed(f"a message's fields have {end - start} octets, not {fields.size}")
    return fields.unpack_from(data, start)


def _flags(octet: int, count: int) -> tuple[bool, ...]:
    if octet >> count:
        raise Malformed(f"unknown flags: {octet:#04x}")
    return tuple(bool(octet >> bit & 1) for bit in range(count))


# Elections.


def _vote_body(vote: Vote) -> list[bytes]:
    return [_VOTE.pack(vote.last_index, vote.last_term, vote.is_pre | vote.is_transfer << 1)]


def _vote(term: int, data: Octets, start: int, end: int) -> Vote:
    index, last_term, flags = _exactly(_VOTE, data, start, end)
    return Vote(term, index, last_term, *_flags(flags, 2))


def _vote_reply_body(reply: VoteReply) -> list[bytes]:
    return [_FLAGS.pack(reply.is_granted | reply.is_pre << 1)]


def _vote_reply(term: int, data: Octets, start: int, end: int) -> VoteReply:
    (flags,) = _exactly(_FLAGS, data, start, end)
    return VoteReply(term, *_flags(flags, 2))


# Entries.


def _append_body(append: Append) -> list[bytes]:
    entries = append.entries
    parts = [_APPEND.pack(append.prev_index, append.prev_term, append.commit, len(entries))]
    pack = _ENTRY.pack
    for entry in entries:
        payload = entry.payload
        parts += (pack(entry.term, entry.kind, len(payload)), payload)
    return parts


def _append(term: int, data: Octets, start: int, end: int) -> Append:
    prev_index, prev_term, commit, count = _APPEND.unpack_from(data, start)
    if count > ENTRIES_MAX or prev_index + count > INDEX_MAX:
        raise Malformed(f"{count} entries after {prev_index} are too many")
    entries: list[Entry] = []
    position = start + _APPEND.size
    index, last_term = prev_index, prev_term
    header, unpack = _ENTRY.size, _ENTRY.unpack_from
    for _ in range(count):
        entry_term, kind, length = unpack(data, position)
        position += header
        payload = bytes(data[position : position + length])
        position += length
        index += 1
        if position > end or entry_term < last_term or kind not in _KINDS:
            raise Malformed(f"entry {index} is none, or its term is less than that before")
        last_term = entry_term
        entries.append(Entry(index, entry_term, kind, payload))
    if position != end or (entries and last_term > term):
        raise Malformed("the entries do not end with the message, or their term is none yet")
    return Append(term, prev_index, prev_term, commit, entries)


def _append_reply_body(reply: AppendReply) -> list[bytes]:
    return [_APPEND_REPLY.pack(reply.match, reply.rejected, reply.hint_index, reply.hint_term)]


def _append_reply(term: int, data: Octets, start: int, end: int) -> AppendReply:
    return AppendReply(term, *_exactly(_APPEND_REPLY, data, start, end))


def _commit_body(commit: Commit) -> list[bytes]:
    return [_TWO.pack(commit.commit, commit.durable)]


def _commit(term: int, data: Octets, start: int, end: int) -> Commit:
    return Commit(term, *_exactly(_TWO, data, start, end))


# Heartbeats.


def _heartbeat_body(beat: Heartbeat) -> list[bytes]:
    return [_HEARTBEAT.pack(beat.commit, beat.round, beat.is_quiescing)]


def _heartbeat(term: int, data: Octets, start: int, end: int) -> Heartbeat:
    commit, number, flags = _exactly(_HEARTBEAT, data, start, end)
    return Heartbeat(term, commit, number, *_flags(flags, 1))


def _heartbeat_reply_body(reply: HeartbeatReply) -> list[bytes]:
    return [_HEARTBEAT_REPLY.pack(reply.round, reply.is_behind)]


def _heartbeat_reply(term: int, data: Octets, start: int, end: int) -> HeartbeatReply:
    number, flags = _exactly(_HEARTBEAT_REPLY, data, start, end)
    return HeartbeatReply(term, number, *_flags(flags, 1))


def _beat_body(beat: Beat) -> list[bytes]:
    return [_BEAT.pack(beat.stamp_us, beat.echo_us, beat.held_us, beat.election_ms)]


def _beat(term: int, data: Octets, start: int, end: int) -> Beat:
    return Beat(term, *_exactly(_BEAT, data, start, end))


# Snapshots.


def _part_body(part: SnapshotPart) -> list[bytes]:
    snapshot = part.snapshot
    members = snapshot.membership.to_bytes()
    numbers = (snapshot.index, snapshot.term, snapshot.size_bytes, snapshot.tag, part.offset)
    return [_PART.pack(*numbers, len(members)), members, part.data]


def _part(term: int, data: Octets, start: int, end: int) -> SnapshotPart:
    index, last_term, size_bytes, tag, offset, length = _PART.unpack_from(data, start)
    position = start + _PART.size
    if position + length > end or index > INDEX_MAX:
        raise Malformed("the membership is longer than its message")
    membership = Membership.from_bytes(bytes(data[position : position + length]))
    snapshot = Snapshot(index, last_term, membership, size_bytes, tag)
    return SnapshotPart(term, snapshot, offset, bytes(data[position + length : end]))


def _snapshot_reply_body(reply: SnapshotReply) -> list[bytes]:
    return [_TWO.pack(reply.index, reply.offset)]


def _snapshot_reply(term: int, data: Octets, start: int, end: int) -> SnapshotReply:
    return SnapshotReply(term, *_exactly(_TWO, data, start, end))


# Handing over, and reads.


def _timeout_now_body(_message: TimeoutNow) -> list[bytes]:
    return []


def _timeout_now(term: int, _data: Octets, start: int, end: int) -> TimeoutNow:
    if start != end:
        raise Malformed("octets behind a message that has no fields")
    return TimeoutNow(term)


def _read_index_body(read: ReadIndex) -> list[bytes]:
    return [_ONE.pack(read.number)]


def _read_index(term: int, data: Octets, start: int, end: int) -> ReadIndex:
    return ReadIndex(term, *_exactly(_ONE, data, start, end))


def _read_index_reply_body(reply: ReadIndexReply) -> list[bytes]:
    return [_TWO.pack(reply.number, reply.index)]


def _read_index_reply(term: int, data: Octets, start: int, end: int) -> ReadIndexReply:
    return ReadIndexReply(term, *_exactly(_TWO, data, start, end))


_TABLE: tuple[tuple[int, type, Callable[..., list[bytes]], Callable[..., Message | Beat]], ...] = (
    (1, Vote, _vote_body, _vote),
    (2, VoteReply, _vote_reply_body, _vote_reply),
    (3, Append, _append_body, _append),
    (4, AppendReply, _append_reply_body, _append_reply),
    (5, Commit, _commit_body, _commit),
    (6, Heartbeat, _heartbeat_body, _heartbeat),
    (7, HeartbeatReply, _heartbeat_reply_body, _heartbeat_reply),
    (8, SnapshotPart, _part_body, _part),
    (9, SnapshotReply, _snapshot_reply_body, _snapshot_reply),
    (10, TimeoutNow, _timeout_now_body, _timeout_now),
    (11, ReadIndex, _read_index_body, _read_index),
    (12, ReadIndexReply, _read_index_reply_body, _read_index_reply),
    (13, Beat, _beat_body, _beat),
)

_ENCODERS = {kind: (code, body) for code, kind, body, _ in _TABLE}
_DECODERS = {code: decoder for code, _, _, decoder in _TABLE}
