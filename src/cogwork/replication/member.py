"""One replica at work: its part of the group, its journal, its files, and who waits for it.

Theory of operation. The container's turn gives the member what its group wants done. Commands that
others proposed here are answered once their entry is applied; reads that wait for something new,
once there is some. When the tail has grown enough, it is sealed by the disk thread, and the entries
before are given up. Where the leader has given up entries that this replica needs, its snapshot
says which records are missing: they are read from another replica, sealed here, and only then is
the snapshot taken.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from cogwork.log.errors import LogError
from cogwork.plugin.engine.chunks import encode_chunk
from cogwork.plugin.engine.contract import Members
from cogwork.plugin.engine.errors import BeyondEnd, ConsensusError, NotLeader, Unavailable
from cogwork.plugin.engine.retention import Retention
from cogwork.plugin.engine.sequencer import Sequencer, Trim, encode
from cogwork.raft.entries import Kind
from cogwork.raft.ready import LeaderChanged, MembershipChanged, ReadFailed, Reported
from cogwork.replication.calls import (
    Bounded,
    FindTime,
    FloorIs,
    GetBounds,
    GetFloor,
    GetMembers,
    GetMove,
    GetSnapshot,
    MembersAre,
    MoveIs,
    Proposal,
    Read,
    Records,
    Refused,
    Results,
    SnapshotIs,
    TimeIs,
    failure_of,
)
from cogwork.replication.entry import encode_entry
from cogwork.replication.files import KeptState, tag_of
from cogwork.replication.followers import Followers
from cogwork.replication.install import Installation
from cogwork.replication.journal import LITTLE_BYTES
from cogwork.replication.moving import Moving

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from cogwork.log.disk_queue import Operation
    from cogwork.plugin.engine.batch import Chunk
    from cogwork.raft.entries import Entry
    from cogwork.raft.group import Group
    from cogwork.raft.ready import Event, Ready
    from cogwork.raft.ready import Read as CurrentRead
    from cogwork.raft.snapshot import Snapshot
    from cogwork.replication.calls import Answer, Call
    from cogwork.replication.files import ReplicaFiles
    from cogwork.replication.journal import Journal
    from cogwork.replication.replica import Replica, Sealing
    from cogwork.replication.service import RaftService
    from cogwork.replication.stream import Stream

__all__ = ("Member",)

SEAL_BYTES = 8 << 20
"""So much in memory is sealed by the first of the replicas; it takes others as much time."""

SEAL_LATER = 0.25
"""By so much of it the next one is later: they would all be slow at the same time."""

LET_GO_CHUNKS = 128
"""So many of what was sealed are given up at a time; then others have their turn."""

SEAL_ENTRIES = 20_000
"""So many entries are replaced by a snapshot, however small they are."""

SEAL_PAUSE_S = 5.0
"""So long it is waited where a segment could not be written: an attempt encodes the whole tail."""

FOREVER = Retention()

READS_MAX = 10_000
"""Reads that wait for something new; what is more is answered at once."""


class _Proposed(NamedTuple):
    term: int
    answer: Callable[[Answer], object]
    number: int


class _Waiting(NamedTuple):
    due_s: float
    call: Read
    answer: Callable[[Answer], object]


class Member:
    """One replica.

    Attributes:
        stream: The stream, as this container has it.
        group: This member's part of the group.
        journal: What it keeps in the write-ahead log.
        replica: The stream's state here.
        files: What it keeps beside the write-ahead log.
        retention: How long records are kept; the leader has what is too old given up.
        moving: Sees to the members of the group.
        followers: Those in this container who wait for more.
        is_closed: Whether nothing is to be done any more.
    """

    def __init__(
        self,
        service: RaftService,
        stream: Stream,
        *,
        group: Group,
        journal: Journal,
        replica: Replica,
        files: ReplicaFiles,
    ) -> None:
        self.stream = stream
        self.group = group
        self.journal = journal
        self.replica = replica
        self.files = files
        self.retention = Retention()
        self.moving = Moving(self, service)
        self.followers = Followers(self._report)
        self._service = service
        self._proposed: dict[int, _Proposed] = {}
        self._waiting: list[_Waiting] = []
        self._current: dict[object, Callable[[], object]] = {}
        self._token = 0
        self._installation = Installation(self, service)
        self._seal_after_s = 0.0
        self._has_failed_to_seal = False
        self.is_closed = False

    @property
    def name(self) -> str:
        """The stream's."""
        return self.stream.name

    @property
    def number(self) -> int:
        """The group's."""
        return self.stream.number

    @property
    def is_current(self) -> bool:
        """Whether it has about what others have: it is a member, and has been one for a while.

        The log of one that joins has older memberships at first, which may have had it, too.
        """
        is_member = self._service.own in self.group.membership.everyone
        return is_member and self.replica.applied >= self.stream.placement.index

    def _report(self, text: str) -> None:
        self._service.report(f"stream {self.name}: {text}")

    # -- what the group wants done

    def take(self, ready: Ready) -> None:
        """Do what is to be done, but for what the journal and the carrier do."""
        for chunk in ready.chunks:
            self._installation.take(chunk)
        if ready.received is not None:
            self._installation.complete(ready.received)
        if ready.restore is not None:
            self._restore(ready.restore)
        for entry in ready.committed:
            self._apply(entry)
        for read in ready.reads:
            self._answer_current(read)
        for event in ready.events:
            self._hear(event)
        if ready.committed:
            self.wake_readers()
            self.look_whether_to_seal()

    def _apply(self, entry: Entry) -> None:
        proposed = self._proposed.pop(entry.index, None)
        if entry.kind != Kind.COMMAND:
            self.replica.skip(entry.index)
            results = None
        else:
            results = self.replica.apply(entry.index, entry.payload)
        if proposed is None:
            return
        if results is None or proposed.term != entry.term:
            error = failure_of(NotLeader(self.group.leader))
            proposed.answer(Refused(proposed.number, error))
        else:
            proposed.answer(Results(proposed.number, results))

    def _answer_current(self, read: CurrentRead) -> None:
        then = self._current.pop(read.token, None)
        if then is not None:
            then()

    def _hear(self, event: Event) -> None:
        if isinstance(event, LeaderChanged):
            self._service.leader_changed(self, event.leader)
            self.followers.wake()  # who shows the stream shows whether anybody leads
            if event.leader != self.group.own:
                self._give_up_proposals()
        elif isinstance(event, ReadFailed):
            self._current.pop(event.token, None)
        elif isinstance(event, MembershipChanged) and not self.is_current:
            self.followers.send_away()
        elif isinstance(event, Reported):
            self._report(event.text)

    def _give_up_proposals(self) -> None:
        """Have those who proposed here ask the next leader: nothing is appended twice by that."""
        proposed, self._proposed = self._proposed, {}
        for each in proposed.values():
            each.answer(Refused(each.number, failure_of(NotLeader(self.group.leader)), True))

    # -- calls

    def call(self, call: Call, answer: Callable[[Answer], object]) -> None:
        """Carry out a call; the answer may come later, or never."""
        try:
            self._call(call, answer)
        except ConsensusError as error:
            answer(Refused(call.number, failure_of(error)))

    def _call(self, call: Call, answer: Callable[[Answer], object]) -> None:
        replica = self.replica
        if isinstance(call, Proposal):
            self._propose(call, answer)
            return
        if isinstance(call, GetMove):
            answer(MoveIs(call.number, self.stream.placement.move))
            return
        if isinstance(call, GetFloor):
            answer(self._floor(call.number))
            return
        if not self.is_current:
            raise Unavailable("this replica does not have what the others have")
        match call:
            case Read():
                self._read(call, answer)
            case GetBounds():
                self._once_current(call, answer, lambda: self._bounds(call.number))
            case FindTime():
                self._once_current(
                    call, answer, lambda: TimeIs(call.number, replica.offset_at(call.time_ms))
                )
            case GetSnapshot():
                self._once_current(call, answer, lambda: self._snapshot(call.number))
            case GetMembers():
                answer(self._members(call.number))

    def _floor(self, number: int) -> FloorIs:
        group = self.group
        voters = sorted(group.membership.all_voters)
        return FloorIs(number, group.term, group.last_index, voters, group.is_below_floor)

    def _once_current(
        self, call: Call, answer: Callable[[Answer], object], make: Callable[[], Answer]
    ) -> None:
        def reply() -> None:
            try:
                answer(make())
            except ConsensusError as error:
                answer(Refused(call.number, failure_of(error)))

        self.when_current(reply)

    def _propose(self, call: Proposal, answer: Callable[[Answer], object]) -> None:
        payload = encode_entry(call.commands, self._service.now_ms())
        term, index = self._service.propose(self.number, payload)
        self._proposed[index] = _Proposed(term, answer, call.number)

    def _read(self, call: Read, answer: Callable[[Answer], object]) -> None:
        chunks = self.chunks(call.offset, call.max_bytes)
        if chunks or not call.wait_ms or len(self._waiting) >= READS_MAX:
            encoded = [encode_chunk(chunk) for chunk in chunks]
            answer(Records(call.number, encoded, self.replica.state.next_offset))
        else:
            due_s = self._service.now_s() + call.wait_ms / 1000
            self._waiting.append(_Waiting(due_s, call, answer))
            self._service.keep_time(self)

    def chunks(self, offset: int, max_bytes: int) -> Sequence[Chunk]:
        """Return what is here from `offset` on, as `Replica.read`; none where it is to come."""
        try:
            return self.replica.read(offset, max_bytes)
        except BeyondEnd:
            return ()

    def when_current(self, then: Callable[[], object]) -> None:
        """Call once this replica has all that anybody can have been told of."""
        self._token += 1
        self._current[self._token] = then
        try:
            self._service.read_index(self.number, self._token)
        except ConsensusError:
            del self._current[self._token]
            raise

    def _bounds(self, number: int) -> Bounded:
        bounds = self.replica.state.bounds
        return Bounded(number, bounds.first, bounds.next, self.replica.size_bytes)

    def _snapshot(self, number: int) -> SnapshotIs:
        snapshot = self.replica.state.snapshot
        if snapshot is None:
            return SnapshotIs(number, -1, b"")
        return SnapshotIs(number, snapshot.offset, snapshot.data)

    @property
    def members(self) -> Members:
        """Who holds replicas; while the voters are changed all of both halves count."""
        membership = self.group.membership
        voters = dict.fromkeys((*membership.voters, *membership.old_voters))
        learners = tuple(each for each in membership.learners if each not in voters)
        return Members(tuple(voters), learners, self.group.leader)

    def _members(self, number: int) -> MembersAre:
        members = self.members
        return MembersAre(number, list(members.voters), list(members.learners), members.leader)

    @property
    def is_awaited(self) -> bool:
        """Whether a read from elsewhere waits."""
        return bool(self._waiting)

    def wake_readers(self, now_s: float | None = None) -> None:
        """Answer the reads that waited: where there is something, and where the time is over."""
        if now_s is None:
            self.followers.wake()
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        end = self.replica.state.next_offset
        for each in waiting:
            if each.call.offset < end or (now_s is not None and each.due_s <= now_s):
                self.call(msgspec.structs.replace(each.call, wait_ms=0), each.answer)
            else:
                self._waiting.append(each)

    def look_to_trim(self) -> None:
        """Have all replicas give up what is too old, where this one leads."""
        self.replica.trim_again()
        if self.group.leadership is None or self.retention == FOREVER:
            return
        now_ms = self._service.now_ms()
        with suppress(ConsensusError):
            before = self.replica.expired_before(self.retention, now_ms)
            if before > self.replica.state.first_offset:
                self._service.propose(self.number, encode_entry([encode(Trim(before))], now_ms))

    # -- sealing

    def look_whether_to_seal(self) -> None:
        """Have the tail sealed, where it has grown enough.

        What space there is the log's next file gets first, for without it everything stands. Who
        holds up the log's oldest file is asked to seal nevertheless.
        """
        replica, group = self.replica, self.group
        tail_bytes, grown = replica.tail.size_bytes, replica.applied - group.compacted_index
        if (tail_bytes < SEAL_BYTES and grown < SEAL_ENTRIES) or self._service.is_low:
            return
        share = 1 + SEAL_LATER * group.membership.rank(group.own)
        if tail_bytes >= SEAL_BYTES * share or grown >= SEAL_ENTRIES * share:
            self.seal()

    def seal(self) -> bool:
        """Have the tail sealed; return False where that cannot be now, or is under way."""
        if self.replica.is_sealing or self._installation.is_under_way or self.is_closed:
            return False
        if self.replica.applied < self.group.compacted_index:
            return False  # a leader's snapshot is taken, and its state comes as this turn ends
        if self._service.now_s() < self._seal_after_s:
            return False
        sealing = self.replica.begin_sealing()
        content = sealing.state
        snapshot = self.group.snapshot_of(sealing.index, len(content), tag_of(content))
        state = KeptState(snapshot, content)
        self._service.start(self._sealing(sealing, state), self._sealed, self._not_sealed)
        return True

    def renew(self) -> bool:
        """Have the log's old files let go by writing what they have of this replica once more.

        Returns:
            False where the tail is to be sealed for that, as it is not little.
        """
        replica = self.replica
        is_more = replica.is_sealing or replica.tail_bytes > LITTLE_BYTES
        if is_more or self._service.is_low or self.is_closed:
            return False
        try:
            return self.journal.renew_little()
        except (LogError, OSError):  # what it begins with could not be read, or not be written
            return False

    def _sealing(self, sealing: Sealing, state: KeptState) -> Generator[Operation, None, KeptState]:
        """Make the segment and keep the state, then give up what need not be in memory."""
        yield from self.files.sealing(sealing.chunks, state)
        while self.replica.let_go(LET_GO_CHUNKS):
            yield self.files.nothing()
        return state

    def _sealed(self, state: KeptState) -> None:
        self._service.compaction_scheduler.ended(self.number)
        if self.is_closed:
            return
        self.replica.sealed()
        self._has_failed_to_seal = False
        self._service.compact(self, state.snapshot)
        self.look_whether_to_seal()

    def _not_sealed(self, error: Exception) -> None:
        self._service.compaction_scheduler.ended(self.number)
        self.replica.not_sealed()
        self._seal_after_s = self._service.now_s() + SEAL_PAUSE_S
        if not self._has_failed_to_seal and not self.is_closed:
            self._has_failed_to_seal = True
            self._report(f"cannot write a segment: {error}")

    # -- snapshots of the leader

    def installed(self, snapshot: Snapshot, *, is_good: bool) -> None:
        """The records of a leader's snapshot are here and sealed, or could not be had."""
        if not self._service.end_installation(self.number, snapshot, is_good=is_good):
            # The log has gone on meanwhile: between what is sealed and what is in memory beyond it
            # there must be no gap, and what memory has of the former may end before it does.
            self.replica.tail.trim(self.replica.sealed_offset)

    def _restore(self, snapshot: Snapshot) -> None:
        state = self.files.state
        assert state is not None
        assert state.snapshot == snapshot
        self.replica.restore(Sequencer.from_bytes(state.content), snapshot.index)
        self.followers.restart()
        self.wake_readers()

    # -- the end

    def close(self) -> None:
        """Answer nobody any more."""
        self.is_closed = True
        self._give_up_proposals()
        self._waiting.clear()
        self.followers.send_away()
        self._current.clear()
        self._installation.cancel()
