"""What a group wants done: handed out at the end of a turn, in one piece.

The caller takes the write in hand (and tells `persisted` when it is durable, at once or later) and
sends the messages, in any order; then it keeps the chunks, applies the committed entries, answers
the reads. The group itself holds back every message that speaks of something that is not durable
yet, until `persisted` says so: what stands in `messages` may always go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.raft.entries import Entry
    from cogwork.raft.membership import Membership
    from cogwork.raft.messages import Message
    from cogwork.raft.roles import Role
    from cogwork.raft.snapshot import Chunk, Snapshot

__all__ = (
    "Event",
    "HardState",
    "LeaderChanged",
    "MembershipChanged",
    "Read",
    "ReadFailed",
    "Ready",
    "Reported",
    "RoleChanged",
    "TransferEnded",
    "Write",
)


class HardState(NamedTuple):
    """What a member must not forget (Raft figure 2).

    Attributes:
        term: The latest it knows.
        vote: Whom it voted for in that term.
        commit: So far it knew to be committed; it may be far behind, and is a hint only.
    """

    term: int = 0
    vote: str | None = None
    commit: int = 0


class Write(msgspec.Struct, frozen=True):
    """What is to be made durable, all or in order: hard state, snapshot, entries.

    Attributes:
        number: One more for each; `persisted(number)` speaks of all up to it.
        hard_state: Replaces the one before; None where term and vote are as they were written.
        snapshot: The log is void, and begins after this one, which was accepted before.
        entries: Replace whatever the log has from the first one's index on.
    """

    number: int
    hard_state: HardState | None
    snapshot: Snapshot | None = None
    entries: Sequence[Entry] = ()


@dataclass(frozen=True, slots=True)
class Read:
    """What has been applied by now is current for this read.

    Attributes:
        token: As given to `read_index`.
        index: The commit index that it stands on.
    """

    token: object
    index: int


class ReadFailed(NamedTuple):
    """The leader went away before it could answer: ask again.

    Attributes:
        token: As given to `read_index`.
    """

    token: object


class RoleChanged(NamedTuple):
    """This member has another role, or the same in another term.

    Attributes:
        role: The present one.
        term: The present one.
    """

    role: Role
    term: int


class LeaderChanged(NamedTuple):
    """Another leader is known, or none.

    Attributes:
        leader: Who; None while nobody is known.
        term: Of which term.
    """

    leader: str | None
    term: int


@dataclass(frozen=True, slots=True)
class MembershipChanged:
    """A membership has been committed.

    Attributes:
        index: Of its entry.
        membership: The members.
    """

    index: int
    membership: Membership


class TransferEnded(NamedTuple):
    """A transfer of leadership has ended on this side.

    Attributes:
        to: Who was to lead.
        is_done: Whether there is a new term; the new leader may still be another one.
    """

    to: str
    is_done: bool


class Reported(NamedTuple):
    """Something for the log of the container.

    Attributes:
        text: What.
    """

    text: str


Event = RoleChanged | LeaderChanged | MembershipChanged | TransferEnded | ReadFailed | Reported


class Ready(msgspec.Struct):
    """What is to be done.

    Attributes:
        write: To be made durable; None for nothing.
        messages: To be sent, with receivers; all may go at once.
        chunks: Of a snapshot on its way, to be kept.
        received: A snapshot whose content is complete: `accept_snapshot` or `refuse_snapshot`.
        restore: A snapshot that was accepted: the application's state is its content from now on.
        committed: To be applied, in order, after `restore`; all are durable here.
        reads: That may be answered once `committed` has been applied.
        events: What has happened.
    """

    write: Write | None = None
    messages: Sequence[tuple[str, Message]] = ()
    chunks: Sequence[Chunk] = ()
    received: Snapshot | None = None
    restore: Snapshot | None = None
    committed: Sequence[Entry] = ()
    reads: Sequence[Read] = ()
    events: Sequence[Event] = ()

    def __bool__(self) -> bool:
        return bool(
            self.write
            or self.messages
            or self.committed
            or self.events
            or self.reads
            or self.chunks
            or self.received
            or self.restore
        )
