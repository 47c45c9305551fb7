"""The records of a group in the write-ahead log: their kinds, and what they carry."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from cogwork.raft.entries import Entry
from cogwork.raft.membership import Membership
from cogwork.raft.snapshot import Snapshot

if TYPE_CHECKING:
    from cogwork.log.record import Record

__all__ = (
    "COMPACTED",
    "ENTRY",
    "ENTRY_AGAIN",
    "GIVEN_UP",
    "HARD_STATE",
    "INSTALLED",
    "entry_of",
    "kind_of",
    "snapshot_octets",
    "snapshot_of",
    "vote_octets",
    "vote_of",
)

HARD_STATE, INSTALLED, COMPACTED, GIVEN_UP = 1, 2, 3, 4
ENTRY, ENTRY_AGAIN = 16, 32
"""Kinds of records; that of an entry is this and the entry's own, below 16."""

_SNAPSHOT = struct.Struct(">QQ")
_NOBODY = b"\x00"
_SOMEBODY = b"\x01"


def kind_of(record: Record) -> int:
    """Return an entry's own kind."""
    return record.kind % ENTRY


def entry_of(record: Record) -> Entry:
    """Return the entry of a record that is one."""
    return Entry(record.index, record.term, kind_of(record), record.payload)


def vote_octets(vote: str | None) -> bytes:
    """Return what a hard state carries."""
    return _NOBODY if vote is None else _SOMEBODY + vote.encode()


def vote_of(record: Record) -> str | None:
    """Return whom a hard state has voted for."""
    return record.payload[1:].decode() if record.payload[:1] == _SOMEBODY else None


def snapshot_octets(snapshot: Snapshot) -> bytes:
    """Return what a snapshot's record carries."""
    return _SNAPSHOT.pack(snapshot.size_bytes, snapshot.tag) + snapshot.membership.to_bytes()


def snapshot_of(record: Record) -> Snapshot:
    """Return the snapshot of a record that is one."""
    size_bytes, tag = _SNAPSHOT.unpack_from(record.payload)
    membership = Membership.from_bytes(record.payload[_SNAPSHOT.size :])
    return Snapshot(record.index, record.term, membership, size_bytes, tag)
