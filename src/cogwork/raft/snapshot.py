"""What a snapshot stands for; its content is the application's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from cogwork.raft.membership import Membership

__all__ = ("Chunk", "Snapshot")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Replaces all entries up to one (Raft §7).

    Attributes:
        index: Of the last entry that it replaces.
        term: Of that entry.
        membership: In effect at that entry.
        size_bytes: Of the content.
        tag: Names the content: where index, term, size and tag are the same, the octets are, so
            that a transfer can be resumed from another leader. A checksum does.
    """

    index: int = 0
    term: int = 0
    membership: Membership = field(default_factory=Membership)
    size_bytes: int = 0
    tag: int = 0


class Chunk(NamedTuple):
    """A part of a snapshot's content that has come, in order.

    Attributes:
        snapshot: Of which.
        offset: Where in the content; 0 begins anew, and what was there before is void.
        data: The octets.
    """

    snapshot: Snapshot
    offset: int
    data: bytes
