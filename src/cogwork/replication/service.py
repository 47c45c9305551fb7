"""The engine `raft`: all replicas of a container, and the way to those of others.

Theory of operation. Streams are opened, replicas come and go, what others send and the disk reports
is taken in; what is to be done then happens in turns (`Scheduler`). Frames of consensus and calls
share a carrier; the first octet tells them apart.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from typing import TYPE_CHECKING, TypeVar

from cogwork.plugin.engine.errors import Malformed, Unavailable
from cogwork.plugin.engine.retention import Retention
from cogwork.raft.errors import Malformed as MalformedFrame
from cogwork.raft.host import RaftHost
from cogwork.raft.pace import Pace
from cogwork.replication import calls
from cogwork.replication.call_tracker import CALL, CallTracker
from cogwork.replication.calls import (
    AppliedIs,
    FloorIs,
    GetApplied,
    GetFloor,
    GetIdentity,
    GetRoom,
    IdentityIs,
)
from cogwork.replication.cluster import NoCluster
from cogwork.replication.compaction_scheduler import CompactionScheduler
from cogwork.replication.engine import CAPABILITIES, RaftEngine
from cogwork.replication.ready_queue import ReadyQueue
from cogwork.replication.replicas import Replicas
from cogwork.replication.request_handler import RequestHandler
from cogwork.replication.room import Room
from cogwork.replication.scheduler import FRAME, Scheduler
from cogwork.replication.steps import run
from cogwork.replication.stream import Stream, demand, group_of
from cogwork.replication.writing import Writing

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from cogwork.log.directory import Directory
    from cogwork.log.disk_queue import DiskQueue, Operation
    from cogwork.log.record import Record
    from cogwork.log.wal import Wal
    from cogwork.plugin.engine.capabilities import Capabilities
    from cogwork.plugin.engine.placement import Placement
    from cogwork.raft.membership import Membership
    from cogwork.raft.settings import Settings
    from cogwork.raft.snapshot import Snapshot
    from cogwork.replication.call_tracker import Carrier
    from cogwork.replication.calls import Answer, Call, Refused, StreamKey
    from cogwork.replication.cluster import StreamCluster
    from cogwork.replication.member import Member

__all__ = ("RaftService", "is_identity")

HAND_OVER_PAUSE_S = 0.01
"""Between two looks at whether others lead."""

A = TypeVar("A", bound="Answer")
T = TypeVar("T")


class RaftService:
    """The host of the engine `raft` in a container.

    Attributes:
        own: The container's id.
        streams: Those that are open here, by name.
        request_handler: Where calls to streams are carried out here.
        cluster: Says who holds which stream.
        compaction_scheduler: Has groups do without an old file of the write-ahead log that they
            hold.
        room: Says whether there can be one more replica here.
        has_lost_past: Tells whether a group may be older than this container's data directory.
        refused: Containers of other clusters: nothing is taken from them but which one that is.
        tell_identity: Tells other containers which cluster this one is in.
        when_applied: Has a call made once the declarations up to an offset are applied here.
        on_replica_changed: Called with a stream whose replica here has come or gone, or has another
            leader.
    """

    def __init__(
        self,
        own: str,
        incarnation: int,
        carrier: Carrier,
        *,
        wal: Wal | None,
        queue: DiskQueue | None,
        directory_of: Callable[[int], Directory],
        report: Callable[[str], None],
        settings: Settings | None = None,
    ) -> None:
        """Start with no replicas yet.

        Args:
            own: The container's id.
            incarnation: Higher after each start.
            carrier: The way to other containers.
            wal: The container's write-ahead log, recovered; `on_durable` is to call `durable`. None
                where nothing is kept, and no replica can be.
            queue: The way to the disk for all but the log.
            directory_of: Opens the directory of a group.
            report: Takes what the operator should know, a line at a time.
            settings: Of the groups.
        """
        self.own = own
        self.report = report
        self.streams: dict[str, Stream] = {}
        self.request_handler = RequestHandler(self.streams)
        self.cluster: StreamCluster = NoCluster(own)
        self.has_lost_past: Callable[[int], bool] = _has_lost_none
        self.refused: set[str] = set()
        self.tell_identity: Callable[[GetIdentity], IdentityIs] | None = None
        self.when_applied: Callable[[int, Callable[[int], object]], object] = _answer_nothing
        self.on_replica_changed: Callable[[str], object] = _ignore
        self._wal = wal
        self._queue = queue
        self._call_tracker = CallTracker(own, carrier, self._carry_out)
        chance = random.Random(secrets.randbits(64))
        self._pace = pace = Pace()
        self._host = RaftHost(own, incarnation, chance, self.now_s(), settings, pace=pace)
        self._replicas = Replicas(self, self._host, wal=wal, queue=queue, directory_of=directory_of)
        self._members = self._replicas.members
        self.room = Room(wal, self._members)
        self.compaction_scheduler = CompactionScheduler(
            wal, self._members, stop=self._replicas.stop, renew=self._replicas.renew
        )
        self._writing = Writing(wal, report, stop=self._replicas.stop, pace=pace)
        self._ready_queue = ReadyQueue(self._replicas.stop)
        self._scheduler = Scheduler(
            self,
            self._host,
            replicas=self._replicas,
            writing=self._writing,
            ready_queue=self._ready_queue,
            call_tracker=self._call_tracker,
            carrier=carrier,
        )

    # -- the clock

    now_s = staticmethod(time.monotonic)
    """Returns the time by a clock that never goes back."""

    @staticmethod
    def now_ms() -> int:
        """Return the wall clock's time, in milliseconds since 1970 (UTC)."""
        return time.time_ns() // 1_000_000

    # -- the contract of engines

    @property
    def capabilities(self) -> Capabilities:
        """What the engine declares."""
        return CAPABILITIES

    async def open(self, stream: str, options: Mapping[str, object]) -> RaftEngine:
        """Open a stream; make the replica here, where there is to be one.

        Args:
            stream: Its name.
            options: `group`, the number that the cluster gave it, `replicas`, who holds one, and
                how long records are kept, as in `Retention`.

        Raises:
            ValueError: An option is wrong.
        """
        found = self.streams.get(stream)
        if found is None:
            found = await self._open(stream, *group_of(options))
        found.retention = Retention.of(options)
        if found.member is not None:
            found.member.retention = found.retention
        found.users += 1
        return RaftEngine(found)

    async def _open(self, name: str, number: int, placement: Placement) -> Stream:
        stream = self.streams[name] = Stream(
            self, name, number, placement, self._call_tracker.next_number
        )
        try:
            await self._replicas.house(stream)
        except BaseException:
            if self.streams.get(name) is stream:
                del self.streams[name]
            stream.end("it could not be opened here")
            raise
        return stream

    def place(self, stream: str, group: int, placement: Placement) -> None:
        """Take note of who is to hold a stream: open the replica here, or give it up."""
        found = self.streams.get(stream)
        if found is not None and found.number == group:
            found.place(placement)
            self._replicas.house_soon(found)

    def keep_moving(self, stream: Stream) -> None:
        """Have a stream's replica see to the members, where they are not as they are to be."""
        self._ready_queue.note_moving(stream)
        self.turn_soon()

    async def delete(self, stream: str) -> None:
        """Give up a stream here, with its replica; the cluster has each container do so."""
        if stream in self.streams:
            self.remove(stream, self.streams[stream].number)

    def remove(self, stream: str, group: int) -> None:
        """Give up a stream here, open or not, with all that a replica of it has left."""
        found = self.streams.get(stream)
        if found is None or found.number != group:
            self.discard(group)
            return
        del self.streams[stream]
        found.is_deleted = True
        found.end("the stream was deleted")
        self._replicas.end(found)

    @property
    def unopened(self) -> list[int]:
        """The groups that the write-ahead log speaks of and nobody has opened."""
        return self._replicas.unopened

    def discard(self, group: int) -> None:
        """Remove what is left of a group; one that is open stays."""
        self._replicas.discard(group)

    async def close(self) -> None:
        """Let go of all streams."""
        self._scheduler.close()
        self.compaction_scheduler.close()
        self._replicas.close(self.streams.values())
        self._call_tracker.close()
        self.streams.clear()

    # -- what comes in

    def replay(self, record: Record) -> None:
        """Take what the write-ahead log holds of a group, before its stream is opened.

        Raises:
            Malformed: It is no record of a group.
        """
        self._replicas.replay(record)

    def durable(self, lsn: int) -> None:
        """Take note that the write-ahead log is durable up to a place."""
        if number := self._writing.durable(lsn):
            self._host.persisted(number, self.now_s())
        if self._writing.is_waiting:
            self._scheduler.soon()
        else:
            self._scheduler.soon_if_ready()

    def lost(self, container: str) -> None:
        """Take note that the connection to a container has broken: nobody waits for it."""
        now_s = self.now_s()
        self._host.lost(container, now_s)
        self._call_tracker.lost(container)
        for stream in self.streams.values():
            stream.lost(container)
            self._ready_queue.note_unsent(stream)
        self.turn_soon()

    def bar(self, group: int, members: frozenset[str]) -> None:
        """Have members of a group not lead: `RaftHost.bar`."""
        self._host.bar(group, members, self.now_s())
        self.turn_soon()

    def step_back(self) -> None:
        """Have others lead: the disk here takes nothing, or the container is about to stop."""
        self._replicas.step_back()
        self.turn_soon()

    async def hand_over(self, within_s: float) -> None:
        """Have others lead from now on, as the container is about to stop.

        Who is asked to first may stop, too, or be gone: then it is the next one's turn.

        Args:
            within_s: So long it is waited until they do.
        """
        self._pace.is_stopping = True
        deadline_s = self.now_s() + within_s
        self.step_back()
        while self.leads_any and self.now_s() < deadline_s:
            await asyncio.sleep(HAND_OVER_PAUSE_S)
            self.step_back()

    @property
    def leads_any(self) -> bool:
        """Whether a replica here leads others that could take over."""
        return any(
            member.group.leadership is not None and len(member.group.membership.voters) > 1
            for member in self._members.values()
        )

    def receive(self, origin: str, data: bytes | memoryview) -> None:
        """Take a datagram of another container."""
        view = memoryview(data)
        kind = view[0] if data else None
        try:
            if origin in self.refused and not is_identity(view):
                return
            if kind == FRAME[0]:
                self._host.receive(origin, view[1:], self.now_s())
            elif kind == CALL[0]:
                self._call_tracker.take(origin, calls.decode(view[1:]))
                self.turn_soon()
            else:
                raise Malformed("a datagram", "its first octet says nothing")
        except (Malformed, MalformedFrame) as error:
            self.report(f"container {origin} sent a malformed datagram: {error}")
        self._scheduler.soon_if_ready()

    def _carry_out(self, call: Call, answer: Callable[[Answer], object]) -> None:
        if isinstance(call, GetRoom):
            answer(self.room.tell(call, self.cluster))
        elif isinstance(call, GetIdentity):
            if self.tell_identity is not None:
                answer(self.tell_identity(call))
        elif isinstance(call, GetApplied):
            number = call.number
            self.when_applied(call.next, lambda at: answer(AppliedIs(number, at)))
        elif isinstance(call, GetFloor) and self._is_awaited(call.stream):
            answer(FloorIs(call.number, 0, 0, [], has_forgotten=True))
        else:
            self.request_handler.carry_out(call, answer)

    def _is_awaited(self, key: StreamKey) -> bool:
        """Tell whether a replica here is to begin again, and has not."""
        stream = self.streams.get(key.name)
        has_none = stream is None or stream.member is None
        return has_none and self.has_lost_past(key.group)

    # -- what goes out

    def next_number(self) -> int:
        """Return a number for a call."""
        return self._call_tracker.next_number()

    def send_call(
        self, to: str, call: Call, kind: type[A], answered: Callable[[A | Refused], None]
    ) -> bool:
        """Send a call, to be answered by such; return False where it is dropped."""
        return self._call_tracker.expect(to, call, kind, answered, self.now_s())

    async def ask(
        self,
        to: str,
        make: Callable[[int, StreamKey], Call],
        kind: type[A],
        stream: StreamKey,
        timeout_s: float,
    ) -> A:
        """Ask a container, which may be this one, and wait for such an answer.

        Raises:
            ConsensusError: It says why not, or something else, or nothing.
        """
        call = make(self._call_tracker.next_number(), stream)
        self.turn_soon()
        return demand(await self._call_tracker.ask(to, call, kind, timeout_s))

    def leader_of(self, stream: str) -> str | None:
        """Return who leads a stream's replicas, as far as it is known here."""
        if (found := self.streams.get(stream)) is None:
            return None
        return found.outbox.target if found.member is None else found.member.group.leader

    def term_of(self, stream: str) -> int:
        """Return the term that a stream's replica here is in; 0 where there is none."""
        found = self.streams.get(stream)
        return 0 if found is None or found.member is None else found.member.group.term

    def leads(self, stream: str) -> bool:
        """Return whether the replica here leads."""
        found = self.streams.get(stream)
        member = None if found is None else found.member
        return member is not None and member.group.leadership is not None

    # -- what members ask for

    @property
    def is_low(self) -> bool:
        """Whether there is no space for another file of the log."""
        return self._wal is not None and self._wal.is_low

    def propose(self, group: int, payload: bytes) -> tuple[int, int]:
        """Propose an entry: `RaftHost.propose`."""
        if self._wal is not None and self._wal.is_full:
            raise Unavailable("the disk is full")
        return self._host.propose(group, payload, self.now_s())

    def change(self, group: int, membership: Membership) -> None:
        """Have a group get other members: `RaftHost.change`."""
        self._host.change(group, membership, self.now_s())
        self.turn_soon()

    def read_index(self, group: int, token: object) -> None:
        """Ask for a current read: `RaftHost.read_index`."""
        self._host.read_index(group, token, self.now_s())

    def leader_changed(self, member: Member, leader: str | None) -> None:
        """Have the outbox ask the leader."""
        stream = self.streams.get(member.name)
        if stream is not None and leader is not None:
            stream.outbox.lead(leader)
            self.send_soon(stream)
        self.on_replica_changed(member.name)

    def compact(self, member: Member, snapshot: Snapshot) -> None:
        """Give up the entries that a snapshot replaces."""
        # The group first: it may ask the journal for the term of the last entry that goes.
        self._host.compact(member.number, snapshot.index)
        self._writing.compact(member.journal, snapshot)
        self.turn_soon()

    def end_installation(self, group: int, snapshot: Snapshot, *, is_good: bool) -> bool:
        """Take a leader's snapshot, whose records are here, or have it sent again.

        Returns:
            Whether it was taken: the log may have come further by itself meanwhile.
        """
        if group not in self._members:
            return False
        is_taken = is_good and self._host.accept_snapshot(group, snapshot)
        if not is_good:
            self._host.refuse_snapshot(group, snapshot)
        self.turn_soon()
        return is_taken

    def start(
        self,
        steps: Generator[Operation, None, T],
        done: Callable[[T], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """Have the disk thread do something, step by step."""
        assert self._queue is not None
        self._queue.start(steps, done, failed)

    async def run(self, steps: Generator[Operation, None, T]) -> T:
        """Have the disk thread do something, and wait for it; raise what it raises."""
        assert self._queue is not None
        return await run(self._queue, steps)

    # -- turns

    def send_soon(self, stream: Stream) -> None:
        """Have a stream's outbox sent in the next turn."""
        self._ready_queue.note_unsent(stream)
        self.turn_soon()

    def keep_time(self, member: Member) -> None:
        """Have a replica look now and then whether the time of a read is over."""
        self._ready_queue.note_awaited(member)

    def turn_soon(self) -> None:
        """Ask for a turn, once the readers of the event loop have brought what there is now."""
        self._scheduler.soon()


def _has_lost_none(_group: int) -> bool:
    return False


def is_identity(datagram: memoryview) -> bool:
    """Tell whether a datagram asks for a cluster's identity, or is the answer to that."""
    is_call = datagram[:1] == CALL
    return is_call and isinstance(calls.decode(datagram[1:]), GetIdentity | IdentityIs)


def _answer_nothing(_next: int, _call: Callable[[int], object]) -> None:
    """Follow no declarations."""


def _ignore(_stream: str) -> None:
    """Take notice of nothing."""
