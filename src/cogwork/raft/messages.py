"""Messages between the members of a group.

Who sent one is told by whoever carried it, and which group it belongs to by the frame around it.
Every message has the sender's term (Raft §5.1).
"""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003  # msgspec reads the annotations

import msgspec

from cogwork.raft.entries import Entry  # noqa: TC001  # msgspec reads the annotations
from cogwork.raft.snapshot import Snapshot  # noqa: TC001  # the same

__all__ = (
    "Append",
    "AppendReply",
    "Commit",
    "Heartbeat",
    "HeartbeatReply",
    "Message",
    "ReadIndex",
    "ReadIndexReply",
    "SnapshotPart",
    "SnapshotReply",
    "TimeoutNow",
    "Vote",
    "VoteReply",
)


class Vote(msgspec.Struct, gc=False):
    """Asks for a vote (Raft §5.2), or whether there would be one (dissertation §9.6).

    Attributes:
        term: For which; where `is_pre`, the candidate's own is one less.
        last_index: Of the candidate's last entry.
        last_term: Of the candidate's last entry.
        is_pre: Nobody changes state yet.
        is_transfer: The leader itself has asked for the election (dissertation §3.10).
    """

    term: int
    last_index: int
    last_term: int
    is_pre: bool = False
    is_transfer: bool = False


class VoteReply(msgspec.Struct, gc=False):
    """Answers `Vote`.

    Attributes:
        term: The voter's; where a pre-vote is granted, the one that was asked for.
        is_granted: Whether the candidate has the vote.
        is_pre: As asked.
    """

    term: int
    is_granted: bool
    is_pre: bool = False


class Append(msgspec.Struct, gc=False):
    """Brings entries (Raft §5.3); without any it finds out what the follower has.

    Attributes:
        term: The leader's.
        prev_index: Of the entry before the first.
        prev_term: Of that entry.
        commit: The leader's commit index.
        entries: In order, without a gap.
        durable: As in `Commit`.
    """

    term: int
    prev_index: int
    prev_term: int
    commit: int
    entries: Sequence[Entry] = ()
    durable: int = 0


class AppendReply(msgspec.Struct, gc=False):
    """Answers `Append`, once what it speaks of is durable.

    Attributes:
        term: The follower's.
        match: Up to here the follower's log is durable and the leader's; 0 where it refuses.
        rejected: The `prev_index` that the follower does not have like this; 0 where it accepts.
        hint_index: Where it refuses: the last place where the logs might agree.
        hint_term: The term of the follower's entry there.
    """

    term: int
    match: int
    rejected: int = 0
    hint_index: int = 0
    hint_term: int = 0


class Commit(msgspec.Struct, gc=False):
    """Tells a follower at once how far it is committed, or may count by itself; nobody answers.

    Attributes:
        term: The leader's.
        commit: The leader's commit index; the follower goes as far as it knows its log to be the
            leader's.
        durable: So far the leader's own log is durable, where that and the follower's are a
            majority; else 0.
    """

    term: int
    commit: int
    durable: int = 0


class Heartbeat(msgspec.Struct, gc=False):
    """Says that the leader is there.

    Attributes:
        term: The leader's.
        commit: As in `Commit`.
        round: Comes back in the reply: who answers it followed the leader at that time (§6.4).
        is_quiescing: The group is idle, everybody has everything, and no more heartbeats come.
    """

    term: int
    commit: int
    round: int = 0
    is_quiescing: bool = False


class HeartbeatReply(msgspec.Struct, gc=False):
    """Answers `Heartbeat`.

    Attributes:
        term: The follower's.
        round: As asked.
        is_behind: More is committed than the follower knows to have as the leader has it (it has
            just started, or messages were lost), or it cannot sleep yet.
    """

    term: int
    round: int = 0
    is_behind: bool = False


class SnapshotPart(msgspec.Struct, gc=False):
    """Brings a part of a snapshot (Raft §7).

    Attributes:
        term: The leader's.
        snapshot: Of which.
        offset: Where in the content.
        data: The octets; the content is complete where they end at its size.
    """

    term: int
    snapshot: Snapshot
    offset: int
    data: bytes


class SnapshotReply(msgspec.Struct, gc=False):
    """Answers `SnapshotPart`; an `AppendReply` follows when the snapshot is installed.

    Attributes:
        term: The follower's.
        index: Of the snapshot.
        offset: What comes next; all before has come.
    """

    term: int
    index: int
    offset: int


class TimeoutNow(msgspec.Struct, gc=False):
    """Has a member stand for election at once (dissertation §3.10).

    Attributes:
        term: The leader's.
    """

    term: int


class ReadIndex(msgspec.Struct, gc=False):
    """A follower asks how far it must be to read what is current (dissertation §6.4).

    Attributes:
        term: The follower's.
        number: The follower's own.
    """

    term: int
    number: int


class ReadIndexReply(msgspec.Struct, gc=False):
    """Answers `ReadIndex`.

    Attributes:
        term: The leader's.
        number: As asked.
        index: So far the follower must have applied.
    """

    term: int
    number: int
    index: int


Message = (
    Vote
    | VoteReply
    | Append
    | AppendReply
    | Commit
    | Heartbeat
    | HeartbeatReply
    | SnapshotPart
    | SnapshotReply
    | TimeoutNow
    | ReadIndex
    | ReadIndexReply
)
