"""All groups of a container: one turn, one wheel of timers, one heartbeat for each neighbour.

Theory of operation. Groups that have something to do are looked at once at the end of a turn. What
they have for one neighbour goes there in one frame; what they want written is one write. A group
that is idle, with everything everywhere, falls asleep: it has no timers and no messages, and is
watched over by the heartbeats between containers. It wakes by a proposal, by a message, and when
the container of its leader (or, at the leader, of a member) is missing or has started anew.

What the container does, with its own clock as `now_s`:

- it makes the `RaftHost`, and calls `open` for each group with what it has kept of it;
- `receive` with each frame that a carrier brings; `tick` at `wake_s`, read after each turn; `lost`
  when it learns that a container is gone;
- `propose`, `read_index` and so on, with the number of the group;
- `ready` at the end of each turn, and does what it says: writes and frames, then the rest;
  `persisted` when a write is durable, in order, at once or late.

A group that fails, whatever it is given to do, is at fault from then on: it does nothing any more,
`ready` tells of it once, and it is to be closed. The others never notice.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import msgspec

from cogwork.plugin.engine.errors import Busy
from cogwork.raft.budget import Share
from cogwork.raft.errors import Violation
from cogwork.raft.frames import Frames
from cogwork.raft.group import Group
from cogwork.raft.heartbeats import Beat
from cogwork.raft.messages import Append, AppendReply, Commit
from cogwork.raft.neighbours import Neighbours
from cogwork.raft.pace import Pace
from cogwork.raft.settings import Settings
from cogwork.raft.unpersisted import Unpersisted, size_bytes_of
from cogwork.raft.wheel import Wheel
from cogwork.raft.wire import decode
from cogwork.router.mesh.clock import SteadyClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from collections.abc import Set as AbstractSet

    from cogwork.raft.budget import Budget
    from cogwork.raft.chance import Chance
    from cogwork.raft.core import Recovered
    from cogwork.raft.membership import Membership
    from cogwork.raft.messages import Message
    from cogwork.raft.neighbours import Neighbour
    from cogwork.raft.ready import Ready
    from cogwork.raft.snapshot import Snapshot
    from cogwork.raft.unpersisted import GroupWrite

__all__ = ("HostReady", "RaftHost")

ROUNDING_S = 1e-6
"""A tick comes this much after it is due: clocks with different zeros round differently."""

SLOTS = 20
"""Slots of the wheel in an election time."""

REPORTS_MAX = 64
"""In one turn."""

_QUIET = frozenset({AppendReply, Commit})
"""Messages that often need nothing done."""


class HostReady(msgspec.Struct):
    """What all groups of a turn want done.

    Attributes:
        number: For `persisted`, once the writes of all groups are durable; 0 where there are none.
        groups: What is to be done, by group, but for the messages.
        faults: Groups that have failed, and why: they are to be closed.
        frames: To be sent, in parts, with receivers; none of them needs the writes to be durable.
        reports: For the container's log.
        strangers: Groups that others speak of and that are not open here, with who does.
    """

    number: int = 0
    groups: Sequence[tuple[int, Ready]] = ()
    faults: Sequence[tuple[int, Exception]] = ()
    frames: Sequence[tuple[str, list[bytes]]] = ()
    reports: Sequence[str] = ()
    strangers: AbstractSet[tuple[str, int]] = frozenset()

    def __bool__(self) -> bool:
        is_told = self.reports or self.strangers or self.faults
        return bool(self.groups or self.frames or is_told)


class RaftHost:
    """The groups of one container."""

    def __init__(
        self,
        own: str,
        incarnation: int,
        random: Chance,
        now_s: float,
        settings: Settings | None = None,
        *,
        pace: Pace | None = None,
    ) -> None:
        """Make a host without groups.

        Args:
            own: The container's id.
            incarnation: Higher after each start.
            random: For time-outs.
            now_s: The time.
            settings: For groups that have none of their own.
            pace: How quick the disk is; whoever writes to it says so.
        """
        assert incarnation > 0
        self.own = own
        self._pace = pace or Pace()
        self._incarnation = incarnation
        self._random = random
        self._settings = settings or Settings(quiesce_s=0.25)
        self._election_s = self._settings.election_s
        self._clock = SteadyClock(now_s, self._election_s / 4)
        self._groups: dict[int, Group] = {}
        self._members: dict[int, Membership] = {}
        self._touched: dict[int, None] = {}
        self._failed: set[int] = set()
        self._faults: list[tuple[int, Exception]] = []
        self._wheel = Wheel(self._election_s / SLOTS)
        self._neighbours = Neighbours(own, self._settings)
        self._frames = Frames()
        self._now_s = self._beat_s = now_s
        self._wake_s = inf
        self._unpersisted = Unpersisted()
        self._reports: list[str] = []
        self._strangers: set[tuple[str, int]] = set()
        self._barred: dict[int, frozenset[str]] = {}

    # Groups.

    def open(
        self, number: int, recovered: Recovered, now_s: float, settings: Settings | None = None
    ) -> Group:
        """Make a member of a group; what it is told goes through the host."""
        assert number > 0, "frames have 0 for the container itself"
        assert number not in self._groups
        now_s = self._read(now_s)
        group = Group(
            self.own,
            recovered,
            self._random,
            now_s,
            settings=settings or self._settings,
            pace=self._pace,
            share_of=lambda container: self._share(container, number),
        )
        group.set_election_s(self._election_s)
        group.bar(self._barred.get(number, frozenset()), now_s)
        self._groups[number] = group
        self._touched[number] = None
        self._follow_members(number, group)
        return group

    def bar(self, number: int, members: frozenset[str], now_s: float) -> None:
        """Have members of a group not lead, whether or not it is open here: `Group.bar`."""
        self._barred[number] = members
        if number in self._groups:
            self._touch(number).bar(members, self._read(now_s))

    def close(self, number: int) -> None:
        """Forget a group; a write of it may still be on its way."""
        group = self._groups.pop(number)
        self._touched.pop(number, None)
        self._failed.discard(number)
        self._wheel.remove(number)
        self._neighbours.follow(self._members.pop(number), None, self._now_s)
        self._look_when_to_wake()
        group.retire()

    def group(self, number: int) -> Group:
        """Return a group, to look at.

        Raises:
            KeyError: It is not open here.
        """
        return self._groups[number]

    @property
    def election_s(self) -> float:
        """The shortest time without a leader, as round trips demand."""
        return self._election_s

    @property
    def may_lead(self) -> bool:
        """Whether groups may be handed over to this container."""
        return self._pace.may_lead

    def _share(self, container: str, number: int) -> Share:
        return Share(self._neighbours.at(container, self._now_s).budget, number)

    def _follow_members(self, number: int, group: Group) -> None:
        membership = group.membership
        before = self._members.get(number)
        if membership is not before:
            self._members[number] = membership
            self._neighbours.follow(before, membership, self._now_s)
            self._look_when_to_wake()

    # Events.

    @property
    def wake_s(self) -> float:
        """When `tick` is needed next, by the container's clock."""
        return self._clock.to_container(self._wake_s) + ROUNDING_S

    def _look_when_to_wake(self) -> None:
        wake_s = self._wheel.wake_s
        self._wake_s = min(wake_s, self._beat_s) if self._neighbours else wake_s

    def _read(self, now_s: float) -> float:
        """Return the time as the groups live it: a container that was stopped deposes nobody."""
        self._now_s = self._clock.read(now_s, self._wake_s)
        return self._now_s

    def tick(self, now_s: float) -> None:
        """Let time pass."""
        now_s = self._read(now_s)
        if now_s >= self._beat_s:
            self._beat_s = now_s + self._election_s / self._settings.heartbeats
            self._watch(now_s)
        absent: frozenset[str] | None = None
        for number in self._wheel.due(now_s):
            self._touched[number] = None
            group = self._groups[number]
            try:
                group.tick(now_s)
                if group.leadership is not None:
                    absent = self._neighbours.absent() if absent is None else absent
                    group.rest(absent, now_s)
            except Exception as error:  # the time of the others goes on
                self._blame(number, error)
        self._look_when_to_wake()

    def _blame(self, number: int, error: Exception) -> None:
        """Have a group that failed do nothing any more; `ready` tells of it."""
        self._failed.add(number)
        self._faults.append((number, error))
        self._wheel.remove(number)

    def receive(self, container: str, data: bytes | memoryview, now_s: float) -> None:
        """Take a frame that came from a container.

        Raises:
            Malformed: It is none, or ends in something that is none.
        """
        self._now_s = now_s = self._clock.read(now_s, self._wake_s)
        known = self._neighbours.get(container)
        if known is not None:
            self._hear(container, known, now_s)
        for number, message in decode(data):
            if isinstance(message, Beat):
                self._on_beat(container, message, now_s)
            elif number in self._groups:
                has_entries = type(message) is Append and message.entries
                if not (has_entries and self._unpersisted.is_full):
                    self._step(number, container, message, now_s)
            elif len(self._strangers) < REPORTS_MAX:
                self._strangers.add((container, number))
        if known is not None and known.budget.waiting:
            self._touch_waiting(known.budget)

    def _step(self, number: int, container: str, message: Message, now_s: float) -> None:
        if number in self._failed:
            return
        group = self._groups[number]
        # An answer that only repeats what is known already, as each one after the majority's, and
        # one that finds nothing more to send, and news of what is not durable here: that is no
        # reason for a turn.
        is_quiet = type(message) in _QUIET and not group.is_quiescent
        try:
            group.step(container, message, now_s)
        except Violation as error:
            self._report(f"group {number}: {error}")
        except Exception as error:  # what else is in the frame is for others
            self._blame(number, error)
            return
        if not is_quiet or (number not in self._touched and group.has_news):
            self._touched[number] = None

    def _report(self, text: str) -> None:
        if len(self._reports) < REPORTS_MAX:
            self._reports.append(text)

    def lost(self, container: str, now_s: float) -> None:
        """Take note that a container is gone: groups that it leads need not wait."""
        now_s = self._read(now_s)
        known = self._neighbours.get(container)
        if known is not None and not known.is_absent:
            self._miss(container, now_s)

    # Neighbours.

    def _watch(self, now_s: float) -> None:
        """Send heartbeats, and look who is gone."""
        measured_s = self._neighbours.measured_s()
        for container, known in list(self._neighbours):
            silence_s = self._neighbours.silence_s(container, self._election_s)
            if not known.is_absent and now_s > known.heard_s + silence_s:
                self._miss(container, now_s)
            self._touch_waiting(known.budget)
            pause_s = self._neighbours.pause_s(container, self._election_s)
            if known.is_beat_due(now_s, pause_s):
                self._frames.add(container, 0, known.beat(self._incarnation, measured_s, now_s))
        election_s = self._neighbours.election_s(self._election_s)
        if election_s != self._election_s:
            self._election_s = election_s
            self._have(self._groups, lambda group: group.set_election_s(election_s))

    def _hear(self, container: str, known: Neighbour, now_s: float) -> None:
        known.heard_s = now_s
        if known.is_absent:
            known.is_absent = False
            self._tell(container, lambda group: group.greet(container, now_s))

    def _on_beat(self, container: str, beat: Beat, now_s: float) -> None:
        known = self._neighbours.get(container)
        if known is None:
            if self._groups and beat.stamp_us:
                # It has a group with this container, which does not know yet, and may sleep
                # because nobody seems to be here.
                self._frames.add(container, 0, Beat(self._incarnation, 0, beat.stamp_us))
        elif known.hear(beat, now_s):
            self._tell(container, lambda group: group.greet(container, now_s, is_new=True))

    def _miss(self, container: str, now_s: float) -> None:
        known = self._neighbours.get(container)
        assert known is not None
        known.is_absent = True
        self._tell(container, lambda group: group.suspect(container, now_s))

    def _tell(self, container: str, what: Callable[[Group], None]) -> None:
        concerned = [
            number
            for number, membership in self._members.items()
            if container in membership.everyone
        ]
        self._have(concerned, what)
        self._touched.update(dict.fromkeys(concerned))

    def _have(self, numbers: Iterable[int], what: Callable[[Group], None]) -> None:
        """Have groups do something, each for itself."""
        for number in numbers:
            if number not in self._failed:
                try:
                    what(self._groups[number])
                except Exception as error:  # the others are still to do it
                    self._blame(number, error)

    # What is asked of a group.

    def propose(self, number: int, payload: bytes, now_s: float) -> tuple[int, int]:
        """Append a command: `Group.propose`."""
        if self._unpersisted.is_full:
            raise Busy("the disk is behind")
        return self._touch(number).propose(payload, self._read(now_s))

    def read_index(self, number: int, token: object, now_s: float) -> None:
        """Ask for a current read: `Group.read_index`."""
        self._touch(number).read_index(token, self._read(now_s))

    def transfer(self, number: int, to: str | None, now_s: float) -> None:
        """Hand the leadership over: `Group.transfer`."""
        self._touch(number).transfer(to, self._read(now_s))

    def change(self, number: int, membership: Membership, now_s: float) -> None:
        """Change the members: `Group.change`."""
        self._touch(number).change(membership, self._read(now_s))

    def accept_snapshot(self, number: int, snapshot: Snapshot) -> bool:
        """Take a snapshot instead of the log: `Group.accept_snapshot`."""
        return self._touch(number).accept_snapshot(snapshot)

    def refuse_snapshot(self, number: int, snapshot: Snapshot) -> None:
        """Let a snapshot come once more: `Group.refuse_snapshot`."""
        self._touch(number).refuse_snapshot(snapshot)

    def compact(self, number: int, index: int) -> None:
        """Give up entries: `Group.compact`."""
        self._groups[number].compact(index)

    def _touch(self, number: int) -> Group:
        self._touched[number] = None
        return self._groups[number]

    # The end of a turn.

    def ready(self) -> HostReady:
        """Return what is to be done, and expect that it is."""
        ready = HostReady()
        groups: list[tuple[int, Ready]] = []
        writes: list[GroupWrite] = []
        written_bytes = 0
        is_wheel_changed = False
        touched, self._touched = self._touched, {}
        for number in touched:
            if number in self._failed:
                continue
            group = self._groups[number]
            try:
                each = group.ready()
                if each:
                    written_bytes += self._take(number, group, each, groups, writes)
                is_wheel_changed |= self._wheel.put(number, group.wake_s)
            except Exception as error:  # what the others want done is not to be lost
                self._blame(number, error)
        if writes:
            ready.number = self._unpersisted.add(writes, written_bytes)
        if is_wheel_changed:
            self._look_when_to_wake()
        ready.groups = groups
        if self._faults:
            ready.faults, self._faults = self._faults, []
        ready.frames = self._frames.take()
        if self._reports or self._strangers:
            ready.reports, self._reports = self._reports, []
            ready.strangers, self._strangers = self._strangers, set()
        return ready

    def _take(
        self,
        number: int,
        group: Group,
        each: Ready,
        groups: list[tuple[int, Ready]],
        writes: list[GroupWrite],
    ) -> int:
        """Take what one group wants done; return how many octets it writes."""
        for to, message in each.messages:
            self._frames.add(to, number, message)
        each.messages = ()
        if each.committed and group.has_more:
            self._touched[number] = None
        if each:
            groups.append((number, each))
        if each.write is None:
            return 0
        self._follow_members(number, group)  # they stand in the log
        writes.append((number, group, each.write.number))
        return size_bytes_of(each.write)

    def _touch_waiting(self, budget: Budget) -> None:
        """Look again at groups that waited for room on the way to a neighbour."""
        if budget.waiting and budget.has_room:
            waiting, budget.waiting = budget.waiting, set()
            self._touched.update(dict.fromkeys(sorted(waiting & self._groups.keys())))

    @property
    def has_more(self) -> bool:
        """Whether `ready` has something to say."""
        is_told = self._reports or self._strangers or self._faults
        return bool(self._touched or self._frames or is_told)

    @property
    def unpersisted_bytes(self) -> int:
        """How much is on its way to the disk."""
        return self._unpersisted.size_bytes

    def persisted(self, number: int, now_s: float) -> None:
        """Take note that the writes of all turns up to one are durable."""
        self._now_s = self._clock.read(now_s, self._wake_s)
        for group, opened, write in self._unpersisted.take(number):
            if self._groups.get(group) is opened and group not in self._failed:
                self._persist(group, opened, write)

    def _persist(self, number: int, group: Group, write: int) -> None:
        try:
            group.persisted(write, self._now_s)
            if number not in self._touched and group.has_news:
                self._touched[number] = None
        except Exception as error:  # what is durable of the others is to be told
            self._blame(number, error)
