"""How long a group waits, and how much it holds at most."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

__all__ = ("Settings",)

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One for all groups of a container, or for a kind of them.

    Attributes:
        election_s: The shortest time without a leader before an election; measured round trips
            make it longer.
        election_max_s: The longest that they make it.
        heartbeats: In the shortest election time.
        learner_share: A learner gets one heartbeat of so many, and waits so much longer: it elects
            nobody.
        rank_share: By so much of the election time each rank of leader priority waits longer.
        priority_hold_s: So long a voter of higher priority is there and has everything before it is
            made leader; recent changes of leader make it longer.
        quiesce_s: So long a group is idle before its heartbeats end; needs a `RaftHost`.
        catch_up_s: So long a new voter may take to get all entries.
        append_bytes: Of entries in one message.
        append_entries: In one message.
        window_messages: On the way to one member.
        window_bytes: Of entries on the way to one member.
        chunk_bytes: Of a snapshot in one message.
        window_chunks: On the way to one member.
        uncommitted_bytes: Proposals beyond are refused; a single one always has room.
        uncommitted_entries: Likewise.
        piggyback_bytes: Of entries that are not committed: with more under way, the commit index
            goes to a member along with the next ones.
        unpersisted_bytes: Entries that come while so many wait for the disk are dropped, and come
            again.
        tail_bytes: Of entries in memory; older ones are read from the storage where it has them.
        spare_bytes: Likewise, of entries that every other member has, as far as this one knows.
        ready_bytes: Of committed entries in one `Ready`.
        entry_bytes: The largest payload.
        reads: That wait at a time.
        held_messages: That wait for the hard state; what is more is dropped, as a network does.
        hint_entries: The commit index is written again when it has grown by so many.
    """

    election_s: float = 0.3
    election_max_s: float = 3.0
    heartbeats: int = 5
    learner_share: int = 10
    rank_share: float = 0.25
    priority_hold_s: float = 10.0
    quiesce_s: float = inf
    catch_up_s: float = 60.0
    append_bytes: int = 512 * KIB
    append_entries: int = 4096
    window_messages: int = 64
    window_bytes: int = 8 * MIB
    chunk_bytes: int = 256 * KIB
    window_chunks: int = 4
    uncommitted_bytes: int = 64 * MIB
    uncommitted_entries: int = 100_000
    piggyback_bytes: int = 256 * KIB
    unpersisted_bytes: int = 64 * MIB
    tail_bytes: int = 16 * MIB
    spare_bytes: int = 64 * KIB
    ready_bytes: int = 4 * MIB
    entry_bytes: int = 16 * MIB
    reads: int = 4096
    held_messages: int = 1024
    hint_entries: int = 64
