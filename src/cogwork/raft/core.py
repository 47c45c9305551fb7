"""What all parts of a group share: the state of figure 2 of the Raft paper, time, effects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cogwork.raft.entries import Entry, Kind
from cogwork.raft.leader_priority import LeaderChanges
from cogwork.raft.log import Log
from cogwork.raft.membership import Membership
from cogwork.raft.outbox import Outbox
from cogwork.raft.ready import (
    HardState,
    LeaderChanged,
    MembershipChanged,
    Reported,
    RoleChanged,
)
from cogwork.raft.roles import Cause, Role, next_role
from cogwork.raft.snapshot import Chunk, Snapshot
from cogwork.raft.storage import NoStorage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.raft.chance import Chance
    from cogwork.raft.leadership import Leadership
    from cogwork.raft.pace import Pace
    from cogwork.raft.ready import Event
    from cogwork.raft.settings import Settings
    from cogwork.raft.storage import Storage

__all__ = ("Core", "Recovered")

BARRED_SHARE = 4.0
"""By so much of the election time who is barred from leading waits longer: all others have then had
more than one try."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """What a member finds of itself when it starts; nothing at all for a new one.

    Attributes:
        hard_state: The last one that was written.
        snapshot: The last one that was made or installed; of a new group index 0, term 0 and the
            first membership, the same for all first members; of a member that joins later, none.
        entries: All that follow the snapshot, or the newest of them where the storage has the rest.
        applied: So far the application's own state has come; 0 for the snapshot's index.
        storage: Has older entries, and snapshots to send.
        floor: Term and index of an entry that this member had, or was told of, in a membership
            that it has left since, giving everything up: it never helps anybody who lacks it.
    """

    hard_state: HardState = field(default_factory=HardState)
    snapshot: Snapshot = field(default_factory=Snapshot)
    entries: Sequence[Entry] = ()
    applied: int = 0
    storage: Storage | None = None
    floor: tuple[int, int] = (0, 0)


class Core:
    """State of one member of one group; each part of the group changes what is its own.

    Attributes:
        own: This member.
        settings: How long it waits and how much it holds.
        pace: How quick its disk is.
        random: For time-outs.
        barred: Who is not to lead, but for as long as others need to get what it alone has. It is
            known here, and nothing that Raft decides depends on it.
        storage: Older entries, and snapshots.
        log: The entries.
        floor: Term and index of an entry that whoever leads has for sure.
        outbox: What leaves the group.
        term: The current one.
        vote: Whom it has voted for in this term.
        role: What it does in this term.
        leader: Who leads in this term, where that is known.
        leadership: What there is only in a leader.
        commit: The highest index known to be committed.
        applied: The highest index that was handed out to be applied.
        membership: The latest in the log, committed or not (Raft §6).
        membership_index: Of its entry.
        now_s: The time of the event that is handled.
        heard_s: When the leader was heard, or an election begun, or a vote given.
        timeout_s: So long after that this member stands for election.
        election_s: The shortest such time.
        is_quiescent: No timers run: the group is idle, and the leader's container watched over.
        chunks: Of a snapshot on its way, to be handed out.
        received: A snapshot that is complete, to be handed out.
        restore: A snapshot that was accepted, to be handed out.
        reads: Index and token of reads that wait to be applied.
        events: To be handed out.
        leader_changes: When leaders changed.
        candidacies: How often this member has stood for election since it knew a leader.
        hardening_s: When term or vote was last handed to the disk.
    """

    def __init__(
        self,
        own: str,
        recovered: Recovered,
        settings: Settings,
        random: Chance,
        now_s: float,
        *,
        pace: Pace,
    ) -> None:
        snapshot = recovered.snapshot
        self.own = own
        self.settings = settings
        self.pace = pace
        self.random = random
        self.storage: Storage = recovered.storage or NoStorage()
        self.term, self.vote, commit = recovered.hard_state
        self.log = Log(snapshot.index, snapshot.term, recovered.entries, self.storage)
        last = self.log.last_index
        self.outbox = Outbox(last, settings, commit)
        self.role = Role.FOLLOWER
        self.leader: str | None = None
        self.leadership: Leadership | None = None
        self.applied = min(max(snapshot.index, recovered.applied), last)
        self.commit = max(self.applied, min(commit, last))
        first = (snapshot.index, snapshot.membership)
        self._follow([first, *_memberships(recovered.entries)])
        self.now_s = self.heard_s = now_s
        self.election_s = settings.election_s
        self.timeout_s = 0.0
        self.is_quiescent = False
        self.chunks: list[Chunk] = []
        self.received: Snapshot | None = None
        self.restore: Snapshot | None = None
        self.reads: list[tuple[int, object]] = []
        self.events: list[Event] = []
        self.leader_changes = LeaderChanges()
        self.candidacies = 0
        self.hardening_s = now_s
        self.floor = recovered.floor
        self.barred: frozenset[str] = frozenset()
        if self.floor[0] > self.term:
            # What it did in earlier terms it has forgotten: it takes no part in them any more.
            self.term, self.vote = self.floor[0], None
            self.outbox.harden()
        self.draw_timeout()

    # Membership. It is in effect from the moment its entry is in the log, and taken back with it.

    def _follow(self, memberships: list[tuple[int, Membership]]) -> None:
        """Go by these from now on: what is not compacted of them, the latest at the end."""
        self._memberships = memberships
        self.membership_index, self.membership = memberships[-1]

    @property
    def is_below_floor(self) -> bool:
        """Whether the log does not have what this member had, or was told of, before it left."""
        return (self.log.last_term, self.log.last_index) < self.floor

    @property
    def is_voter(self) -> bool:
        """Whether this member may stand for election.

        One that the latest membership leaves out may be the only one that has it: until it knows
        that the others do, it is needed (dissertation §4.2.2). The one before it is committed, as
        there is but one change at a time. A log that ends below the floor may call this member a
        voter as it was one before it left.
        """
        if self.is_below_floor:
            return False
        if self.own in self.membership.all_voters:
            return True
        if self.membership_index <= self.commit:
            return False
        return self.own in self._memberships[-2][1].all_voters

    def membership_at(self, index: int) -> Membership:
        """Return the membership in effect at an entry that is not compacted."""
        return next(each for at, each in reversed(self._memberships) if at <= index)

    # Term, role and leader.

    def enter_term(self, term: int, vote: str | None = None) -> None:
        """Begin a term; nobody is known to lead in it, so nobody sleeps."""
        assert term > self.term, "terms only grow"
        self.term = term
        self.set_leader(None)
        if self.is_quiescent:
            self.is_quiescent = False
            self.restart_timer()
        self.cast(vote)

    def cast(self, vote: str | None) -> None:
        """Vote in this term, once."""
        self.vote = vote
        self.hardening_s = self.now_s
        self.outbox.harden()

    def become(self, cause: Cause) -> None:
        """Take the role that follows."""
        role = next_role(self.role, cause)
        if role is self.role:
            return
        leadership, self.leadership = self.leadership, None
        self.role = role
        self.is_quiescent = False
        self.events.append(RoleChanged(role, self.term))
        if leadership is not None:
            leadership.end(has_new_term=cause is Cause.HIGHER_TERM)
            self.set_leader(None)
            self.restart_timer()

    def set_leader(self, leader: str | None) -> None:
        """Know who leads."""
        if leader != self.leader:
            self.leader = leader
            self.events.append(LeaderChanged(leader, self.term))
            if leader is not None:
                self.candidacies = 0
                self.leader_changes.note(self.now_s)

    def report(self, text: str) -> None:
        """Have the container log something."""
        self.events.append(Reported(text))

    # Time.

    def advance(self, now_s: float) -> None:
        """Take the time of an event; it never goes back."""
        self.now_s = now_s if now_s > self.now_s else self.now_s

    def restart_timer(self) -> None:
        """Wait anew, for another time."""
        self.heard_s = self.now_s
        self.draw_timeout()

    def draw_timeout(self) -> None:
        """Draw how long to wait: longer for lower leader priority, never the same for two.

        It is drawn anew with the membership: a voter must not wait as long as the learner it was.
        """
        rank = self.membership.rank(self.own)
        share = 1 + self.settings.rank_share * rank + self.random.random() / 2
        if self.own in self.barred:
            share += BARRED_SHARE
        if not self.is_voter:
            share *= self.settings.learner_share
        self.timeout_s = self.election_s * share

    @property
    def heartbeat_s(self) -> float:
        """Between two heartbeats."""
        return self.election_s / self.settings.heartbeats

    # The log.

    def append(self, kind: Kind, payload: bytes) -> int:
        """Append an entry of this term, as a leader; return its index."""
        entry = Entry(self.log.last_index + 1, self.term, kind, payload)
        self.log.append(entry)
        if kind == Kind.MEMBERS:
            self._follow([*self._memberships, *_memberships((entry,))])
        return entry.index

    def replace(self, entries: Sequence[Entry]) -> None:
        """Append entries of a leader, instead of those from the first one's index on.

        Raises:
            Malformed: One of them should be a membership, and is none; nothing has changed.
        """
        memberships = _memberships(entries)
        before = self.membership
        was_below = self.is_below_floor
        if entries[0].index <= self.log.last_index:
            self._cut(entries[0].index)
        if memberships:
            self._follow([*self._memberships, *memberships])
        self.log.extend(entries)
        if self.membership is not before or (was_below and not self.is_below_floor):
            self.draw_timeout()  # else it would wait as long as a learner

    def commit_to(self, index: int) -> None:
        """Know that the entries up to an index are committed."""
        if index <= self.commit:
            return
        is_settled = self.commit < self.membership_index <= index
        self.commit = index
        if is_settled:
            self.draw_timeout()

    def _cut(self, index: int) -> None:
        """Drop entries from an index on, and the memberships that came with them."""
        assert index > self.commit, "what is committed stays"
        self.log.truncate(index)
        self.outbox.cut(index)
        if self.membership_index >= index:
            self._follow([each for each in self._memberships if each[0] < index])

    def compact(self, index: int) -> None:
        """Give up the entries up to an index."""
        at = self.membership_at(index)
        rest = [each for each in self._memberships if each[0] > index]
        self._follow([(index, at), *rest])
        self.log.compact(index)

    def install(self, snapshot: Snapshot) -> None:
        """Begin anew after a snapshot."""
        self.log.reset(snapshot.index, snapshot.term)
        self.outbox.restart(snapshot)
        self._follow([(snapshot.index, snapshot.membership)])
        self.commit = self.applied = snapshot.index
        self.restore = snapshot
        self.draw_timeout()

    @property
    def has_committed(self) -> bool:
        """Whether something is to be applied."""
        return self.commit > self.applied < self.outbox.durable_index

    def take_committed(self) -> Sequence[Entry]:
        """Return what is to be applied next, as far as it is durable here."""
        last = min(self.commit, self.outbox.durable_index)
        if last <= self.applied:
            return ()
        bytes_max = self.settings.ready_bytes
        entries = self.log.between(self.applied + 1, last, bytes_max, last - self.applied)
        assert entries, "what is not applied is not given up"
        self.applied = entries[-1].index
        for entry in entries:
            if entry.kind == Kind.MEMBERS:
                membership = Membership.from_bytes(entry.payload)
                self.events.append(MembershipChanged(entry.index, membership))
        self._release()
        return entries

    def _release(self) -> None:
        """Let applied entries leave the memory: those that nobody is to be sent much earlier."""
        log, settings, index = self.log, self.settings, self.applied
        if log.size_bytes > settings.tail_bytes:
            log.release(index, settings.tail_bytes)
        spare_bytes = settings.spare_bytes
        if log.size_bytes > spare_bytes:
            if self.leadership is not None:
                index = min(index, self.leadership.known_index)
            log.release(index, spare_bytes - spare_bytes // 8)  # many at a time


def _memberships(entries: Sequence[Entry]) -> list[tuple[int, Membership]]:
    return [
        (entry.index, Membership.from_bytes(entry.payload))
        for entry in entries
        if entry.kind == Kind.MEMBERS
    ]
