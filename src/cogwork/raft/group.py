"""One member of one consensus group: events and the time go in, a `Ready` comes out.

Theory of operation. The group does nothing by itself. Its caller hands it messages, proposals and
the time, and at the end of each turn takes a `Ready`: what is to be written, sent and applied. All
that came in one turn is written and sent together. When a write is durable the caller says so, at
once or much later; meanwhile the group goes on, and holds back what must not be said before.

What its caller does, with its own clock as `now_s`:

- it makes the `Group` from what it has kept (`Recovered`), and a seeded random;
- `step` with each message from another member; `tick` at `wake_s`, which it reads after each event;
- `propose`, `read_index`, `transfer`, `change` as it wishes;
- `ready` after events, and does what it says; `persisted` when a write is durable;
- `compact` when its own snapshot replaces entries; `accept_snapshot` or `refuse_snapshot` when one
  has come from the leader.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from cogwork.plugin.engine.errors import InvalidAppend, NotLeader
from cogwork.raft.budget import Budget, Share
from cogwork.raft.core import Core, Recovered
from cogwork.raft.elections import Elections
from cogwork.raft.following import Following
from cogwork.raft.pace import Pace
from cogwork.raft.reads import FollowerReads
from cogwork.raft.ready import Read, Ready
from cogwork.raft.reception import Reception
from cogwork.raft.settings import Settings
from cogwork.raft.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from cogwork.raft.chance import Chance
    from cogwork.raft.entries import Entry
    from cogwork.raft.leadership import Leadership
    from cogwork.raft.membership import Membership
    from cogwork.raft.messages import Message
    from cogwork.raft.roles import Role

__all__ = ("Group",)

UNLIMITED_BYTES = 1 << 62


class Group:
    """One member of one group."""

    def __init__(
        self,
        own: str,
        recovered: Recovered,
        random: Chance,
        now_s: float,
        *,
        settings: Settings | None = None,
        pace: Pace | None = None,
        share_of: Callable[[str], Share] | None = None,
    ) -> None:
        """Make a member; it is a follower.

        Args:
            own: Its id.
            recovered: What it has kept.
            random: For time-outs; seeded, where the same should happen twice.
            now_s: The time.
            settings: How long it waits and how much it holds.
            pace: How quick its disk is, as whoever runs it sees that.
            share_of: What may be on the way to a container, where groups share that.
        """
        limits = settings or Settings()
        self._core = Core(own, recovered, limits, random, now_s, pace=pace or Pace())
        self._following = Following(self._core)
        self._elections = Elections(self._core, share_of or _no_limit)
        self._reads = FollowerReads(self._core)
        self._reception = Reception(self._core, self._following, self._elections, self._reads)

    # What it is.

    @property
    def own(self) -> str:
        """This member's id."""
        return self._core.own

    @property
    def term(self) -> int:
        """The current term."""
        return self._core.term

    @property
    def vote(self) -> str | None:
        """Whom it has voted for in this term."""
        return self._core.vote

    @property
    def role(self) -> Role:
        """What it does in this term."""
        return self._core.role

    @property
    def leader(self) -> str | None:
        """Who leads, where that is known."""
        return self._core.leader

    @property
    def commit(self) -> int:
        """The highest index that is known to be committed."""
        return self._core.commit

    @property
    def applied(self) -> int:
        """The highest index that was handed out to be applied."""
        return self._core.applied

    @property
    def durable_index(self) -> int:
        """So far the log is durable here."""
        return self._core.outbox.durable_index

    @property
    def last_index(self) -> int:
        """The index of the last entry."""
        return self._core.log.last_index

    @property
    def is_below_floor(self) -> bool:
        """Whether its log has not come to its floor yet: see `Recovered`."""
        return self._core.is_below_floor

    @property
    def compacted_index(self) -> int:
        """Up to here entries are given up."""
        return self._core.log.compacted_index

    @property
    def tail_bytes(self) -> int:
        """What the entries in memory count."""
        return self._core.log.size_bytes

    @property
    def membership(self) -> Membership:
        """The latest in the log, committed or not: it is in effect."""
        return self._core.membership

    @property
    def is_quiescent(self) -> bool:
        """Whether no timers run."""
        return self._core.is_quiescent

    @property
    def leadership(self) -> Leadership | None:
        """What there is only in a leader: to look at, not to touch."""
        return self._core.leadership

    def entries(self, first: int, last: int) -> Sequence[Entry]:
        """Return entries of the log, for those who look into it."""
        return self._core.log.between(first, last, UNLIMITED_BYTES, last - first + 1)

    @property
    def wake_s(self) -> float:
        """When `tick` is needed next."""
        core = self._core
        if core.leadership is not None:
            return core.leadership.wake_s
        due_s = inf if core.is_quiescent else core.heard_s + core.timeout_s
        return min(due_s, self._reads.wake_s) if self._reads.waiting else due_s

    # Events.

    def tick(self, now_s: float) -> None:
        """Let time pass."""
        core = self._core
        core.advance(now_s)
        if core.leadership is not None:
            core.leadership.tick()
        else:
            self._elections.tick()

    def step(self, sender: str, message: Message, now_s: float) -> None:
        """Take a message of another member.

        Raises:
            Violation: The message is what no member ever sends; it is passed over.
        """
        core = self._core
        core.now_s = max(core.now_s, now_s)
        self._reception.take(sender, message)

    def persisted(self, number: int, now_s: float) -> None:
        """Take note that all writes up to one are durable; it may come late, or twice."""
        core = self._core
        core.advance(now_s)
        was_durable = core.outbox.is_hard_durable
        core.outbox.persisted(number)
        if not was_durable and core.outbox.is_hard_durable:
            self._elections.on_hardened()
        if core.leadership is not None:
            core.leadership.persisted()
        else:
            self._following.count()

    def propose(self, payload: bytes, now_s: float) -> tuple[int, int]:
        """Append a command; return the term and the index that it will have, if it is committed.

        It is lost where another entry is committed at that index.

        Raises:
            Busy: As much is under way as is held at once.
            InvalidAppend: It is too large.
            NotLeader: Another member takes it.
        """
        core = self._core
        leadership = self._lead(now_s)
        if len(payload) > core.settings.entry_bytes:
            raise InvalidAppend(f"an entry has at most {core.settings.entry_bytes} octets")
        return core.term, leadership.propose(payload)

    def read_index(self, token: object, now_s: float) -> None:
        """Ask for the moment from which on a read of the applied state is current.

        A `Read` with the token comes in a `Ready`, or a `ReadFailed` among its events.

        Raises:
            Busy: Too many reads wait.
            NotLeader: Nobody is known to lead.
        """
        core = self._core
        core.advance(now_s)
        if core.leadership is not None:
            self._lead(now_s).reads.ask(core.own, token)
        else:
            self._reads.ask(token)

    def transfer(self, to: str | None, now_s: float) -> None:
        """Hand the leadership over; to whoever is there and most up to date where nobody is named.

        Raises:
            NotLeader: It is not this member's to hand over.
            ValueError: This is nobody that could lead.
        """
        self._lead(now_s).hand_over(to)

    def change(self, membership: Membership, now_s: float) -> None:
        """Change the members; a `MembershipChanged` with these tells that it is done.

        Args:
            membership: The voters in order of leader priority, and the learners.
            now_s: The time.

        Raises:
            Busy: The members are just being changed.
            NotLeader: Another member takes it.
            ValueError: There can be no such membership.
        """
        leadership = self._lead(now_s)
        if membership.is_joint:
            raise ValueError("a joint membership is made by the change itself")
        leadership.change(membership)

    def _lead(self, now_s: float) -> Leadership:
        core = self._core
        core.advance(now_s)
        if core.leadership is None:
            raise NotLeader(core.leader)
        if core.is_quiescent:
            core.leadership.wake()
        core.leadership.active_s = core.now_s
        return core.leadership

    # Snapshots.

    def snapshot_of(self, index: int, size_bytes: int, tag: int = 0) -> Snapshot:
        """Return what a snapshot at an applied entry is called.

        Args:
            index: Of the last entry that it replaces.
            size_bytes: Of its content.
            tag: Names the content.
        """
        core = self._core
        assert core.log.compacted_index <= index <= core.applied
        term = core.log.term(index)
        assert term is not None
        return Snapshot(index, term, core.membership_at(index), size_bytes, tag)

    def compact(self, index: int) -> None:
        """Give up the entries up to an applied one; a durable snapshot replaces them."""
        core = self._core
        assert index <= core.applied, "what is not applied is not given up"
        if index > core.log.compacted_index:
            core.compact(index)

    def accept_snapshot(self, snapshot: Snapshot) -> bool:
        """Take a snapshot that has come instead of the log; False where it is overtaken."""
        return self._following.accept(snapshot)

    def refuse_snapshot(self, snapshot: Snapshot) -> None:
        """Let a snapshot, whose content is not good, come once more."""
        self._following.refuse(snapshot)

    # What a host knows of containers.

    def set_election_s(self, election_s: float) -> None:
        """Set the shortest time without a leader, as round trips demand."""
        core = self._core
        if election_s != core.election_s:
            core.timeout_s *= election_s / core.election_s
            core.election_s = election_s

    def bar(self, members: frozenset[str], now_s: float) -> None:
        """Have members not lead, but for as long as others need to get what they alone have.

        Each member goes by what it was told; that need not be the same everywhere.
        """
        core = self._core
        core.advance(now_s)
        if members == core.barred:
            return
        core.barred = members
        if core.leadership is None:
            core.draw_timeout()
        elif core.is_quiescent:
            core.leadership.wake()

    def suspect(self, container: str, now_s: float) -> None:
        """Take note that a container seems to be gone: if it leads, another one soon stands."""
        core = self._core
        core.advance(now_s)
        if core.leadership is not None:
            if core.is_quiescent:
                core.leadership.wake()
        elif core.leader == container:
            core.is_quiescent = False
            core.set_leader(None)
            core.restart_timer()
            core.timeout_s -= core.election_s

    def greet(self, container: str, now_s: float, *, is_new: bool = False) -> None:
        """Take note that a container has started anew, or is back: it knows nothing of sleep."""
        core = self._core
        core.advance(now_s)
        if core.leadership is not None and is_new:
            core.leadership.look_anew(container)
        if core.leadership is not None and core.is_quiescent:
            core.leadership.wake()
        elif core.is_quiescent and core.leader == container:
            core.is_quiescent = False
            core.restart_timer()

    def rest(self, absent: Container[str], now_s: float) -> bool:
        """Have an idle group sleep, where this member leads; tell whether it does."""
        core = self._core
        core.advance(now_s)
        leadership = core.leadership
        if leadership is not None and not core.is_quiescent and leadership.may_quiesce(absent):
            leadership.quiesce(absent)
        return core.is_quiescent

    def retire(self) -> None:
        """Give back what it shares with other groups; it is not used any more."""
        if self._core.leadership is not None:
            self._core.leadership.end(has_new_term=False)

    # The end of a turn.

    @property
    def has_more(self) -> bool:
        """Whether `ready` has more to hand out at once: it comes in bounded parts."""
        return self._core.has_committed

    @property
    def has_news(self) -> bool:
        """Whether `ready` may have something to say after an answer, or a write that is durable."""
        core = self._core
        return (
            core.outbox.has_news(core.log.last_index)
            or core.has_committed
            or bool(core.events or core.reads or self._reads.waiting)
            or (core.leadership or self._following).has_news
        )

    def ready(self) -> Ready:
        """Return what is to be done, and expect that it is; false where there is nothing."""
        core = self._core
        if self._reads.waiting:
            self._reads.expire()
        if core.leadership is not None:
            core.leadership.flush()
        write = core.outbox.take_write(core.log, core.term, core.vote, core.commit)
        if core.leadership is None:
            self._following.flush()
        committed = core.take_committed()
        ready = Ready(write, core.outbox.take_messages(), committed=committed)
        if core.chunks or core.received or core.restore:
            ready.chunks, core.chunks = core.chunks, []
            ready.received, core.received = core.received, None
            ready.restore, core.restore = core.restore, None
        if core.reads:
            ready.reads = [Read(token, at) for at, token in core.reads if at <= core.applied]
            core.reads = [each for each in core.reads if each[0] > core.applied]
        if core.events:
            ready.events, core.events = core.events, []
        return ready


def _no_limit(_container: str) -> Share:
    return Share(Budget(UNLIMITED_BYTES))
