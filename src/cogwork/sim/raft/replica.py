"""One life of a replica: the core, a state machine, and a disk below them.

It does what a container does: takes what a `Ready` asks for, in its order, and nothing else.
"""

from __future__ import annotations

from collections import deque
from math import inf
from typing import TYPE_CHECKING
from zlib import crc32

from cogwork.plugin.engine.contract import Appended
from cogwork.plugin.engine.errors import Busy, ConsensusError, NotLeader
from cogwork.plugin.engine.sequencer import Append, Sequencer, encode
from cogwork.raft.entries import Kind
from cogwork.raft.heartbeats import Beat
from cogwork.raft.membership import Membership
from cogwork.raft.messages import Vote, VoteReply
from cogwork.raft.pace import Pace
from cogwork.raft.ready import ReadFailed, TransferEnded
from cogwork.raft.roles import Role
from cogwork.raft.snapshot import Snapshot
from cogwork.raft.wire import decode
from cogwork.sim.raft.disk import Disk, DiskFull, Record
from cogwork.sim.raft.hosted import HostedGroup
from cogwork.sim.raft.invariant_checker import Broken

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cogwork.raft.entries import Entry
    from cogwork.raft.messages import Message
    from cogwork.raft.ready import Ready, Write
    from cogwork.sim.raft.clients import Request
    from cogwork.sim.raft.world import World

__all__ = ("Replica",)

COMMAND = int(Kind.COMMAND)

ROUNDS_MAX = 1000
"""After so many, what the core wants done has no end."""


class Replica:
    """A replica that runs.

    Attributes:
        world: Where.
        name: Its name.
        group: The core.
        machine: The stream.
        applied: So far the log is in it.
        waiting: What comes while it is paused; None where it is not.
        asked: What clients ask meanwhile.
    """

    def __init__(self, world: World, name: str, disk: Disk) -> None:
        self.world = world
        self.name = name
        self.waiting: list[Callable[[], None]] | None = None
        self.asked: list[Callable[[], None]] = []
        self.machine = Sequencer()
        self.applied = 0
        self._disk = disk
        self._pace = Pace()
        self._numbers: deque[tuple[int, int | Snapshot, float]] = deque()
        self._unwritten: deque[tuple[list[Record], int | Snapshot]] = deque()
        self._pending: dict[int, tuple[int, Request]] = {}
        self._reads: dict[object, Callable[[int | None], None]] = {}
        self._read_number = 0
        self._snapshot_index = 0
        self._is_snapshotting = False
        self._incoming = bytearray()
        self._accepted = b""
        self._wake_s = inf
        disk.open(self._when_durable, self._when_failed)
        newest = disk.store.newest
        if newest is not None:
            self.machine = Sequencer.from_bytes(disk.store.content)
            self.applied = self._snapshot_index = newest.index
        world.checker.on_start(name)
        self._core = world.make_group(name, disk.store, self._pace, self.now_s)
        self.group = self._core.group if isinstance(self._core, HostedGroup) else self._core
        self.settle()

    @property
    def now_s(self) -> float:
        """Its own time."""
        return self.world.local_s(self.name)

    # Events.

    def step(self, sender: str, message: Message | bytes) -> None:
        """A message has come."""
        if self.waiting is not None:
            self.waiting.append(lambda: self.step(sender, message))
            return
        self._core.step(sender, message, self.now_s)  # type: ignore[arg-type]  # as its core takes it
        self.settle()

    def take(self, request: Request) -> None:
        """A client asks for an append."""
        if self.waiting is not None:
            self.asked.append(lambda: self.take(request))
            return
        if self._unwritten:
            self.world.refuse(request, None)
            return
        now_s = self.now_s
        command = Append(request.batch, None, int(now_s * 1000))
        try:
            term, index = self._core.propose(encode(command), now_s)
        except NotLeader as error:
            self.world.refuse(request, error.hint)
        except Busy:
            self.world.refuse(request, None)
        else:
            self._pending[index] = (term, request)
        self.settle()

    def read(self, done: Callable[[int | None], None]) -> None:
        """A client wants what is current: the length of the stream, or None where that fails."""
        if self.waiting is not None:
            self.asked.append(lambda: self.read(done))
            return
        self._read_number += 1
        token = self._read_number
        self._reads[token] = done
        try:
            self._core.read_index(token, self.now_s)
        except ConsensusError:
            del self._reads[token]
            done(None)
        self.settle()

    def transfer(self, to: str) -> None:
        """Somebody wants another leader."""
        if self.waiting is None:
            try:
                self._core.transfer(to, self.now_s)
            except (ConsensusError, ValueError) as error:
                self.world.note(self.name, f"refuses to hand over to {to}: {error}")
            else:
                self.world.checker.on_transfer(self.name, to)
            self.settle()

    def change(self, voters: Sequence[str], learners: Sequence[str]) -> None:
        """Somebody wants other members."""
        if self.waiting is None:
            target = Membership(tuple(voters), tuple(learners))
            try:
                self._core.change(target, self.now_s)
            except (ConsensusError, ValueError) as error:
                self.world.note(self.name, f"refuses the change to {voters}: {error}")
            else:
                self.world.checker.on_change(self.name, target)
            self.settle()

    def room(self) -> None:
        """The disk has room again."""
        while self._unwritten:
            self._hand_over(*self._unwritten.popleft())

    def lose(self, name: str) -> None:
        """Its container learns that another one is gone."""
        if self.waiting is None and isinstance(self._core, HostedGroup):
            self._core.lost(name, self.now_s)
            self.settle()

    def end(self) -> None:
        """It has crashed: those who read learn that their connections are gone."""
        reads, self._reads = self._reads, {}
        for done in reads.values():
            done(None)

    # What the core wants done.

    def settle(self) -> None:
        """Do everything that the core wants done, then wait."""
        group, core, world = self.group, self._core, self.world
        name = self.name
        for _ in range(ROUNDS_MAX):
            ready = core.ready()
            if ready.write is not None:
                self._write(ready.write)
            world.checker.on_state(
                name,
                group.term,
                group.commit,
                is_leader=group.leadership is not None,
                is_candidate=group.role is Role.CANDIDATE,
            )
            if not ready:
                break
            self._handle(ready)
        else:
            raise Broken(f"{name} does not come to rest")
        wake_s = core.wake_s
        if wake_s < self._wake_s:
            self._wake_s = wake_s
            world.wake(self, wake_s)

    def tick(self, planned_s: float) -> None:
        """It is time."""
        if self.waiting is not None:
            self.waiting.append(lambda: self.tick(planned_s))
            return
        if planned_s == self._wake_s:
            self._wake_s = inf
        # No earlier than planned, whatever the sum of the two clocks is rounded to.
        self._core.tick(max(self.now_s, planned_s))
        self.settle()

    def _handle(self, ready: Ready) -> None:
        if ready.messages:
            self._send(ready.messages)
        for chunk in ready.chunks:
            if chunk.offset == 0:
                self._incoming.clear()
            self._incoming[chunk.offset :] = chunk.data
        if ready.received is not None:
            self._receive(ready.received)
        if ready.restore is not None:
            self._restore(ready.restore)
        if ready.committed:
            self._apply(ready.committed)
        if ready.reads or ready.events:
            self._tell(ready)

    def _tell(self, ready: Ready) -> None:
        for read in ready.reads:
            self._reads.pop(read.token)(self.machine.next_offset)
        for event in ready.events:
            if isinstance(event, ReadFailed):
                self._reads.pop(event.token)(None)
                continue
            if isinstance(event, TransferEnded):
                self.world.checker.on_transfer_ended(self.name, event.to)
            if self.world.tell is not None:
                self.world.note(self.name, repr(event))

    def _write(self, write: Write) -> None:
        checker, records = self.world.checker, list[Record]()
        if write.hard_state is not None:
            records.append(("hard", write.hard_state))
        if write.snapshot is not None:
            checker.on_received(self.name, write.snapshot)
            records.append(("received", write.snapshot, self._accepted))
        if write.entries:
            checker.on_write(self.name, write.entries)
            records += [("entry", entry) for entry in write.entries]
        self._put(records, write.number)

    def _put(self, records: list[Record], number: int | Snapshot) -> None:
        """Write, or keep for later while there is no room."""
        if not self._unwritten:
            try:
                self._hand_over(records, number)
            except DiskFull:
                self._pace.is_quick = False
            else:
                return
        self._unwritten.append((records, number))

    def _hand_over(self, records: list[Record], number: int | Snapshot) -> None:
        written = self._disk.write(records)
        self._numbers.append((written, number, self.world.clock.now_s))

    def _when_durable(self, written: int) -> None:
        if self.waiting is not None:
            self.waiting.append(lambda: self._when_durable(written))
            return
        numbers, newest = self._numbers, None
        while numbers and numbers[0][0] <= written:
            _, number, since_s = numbers.popleft()
            took_s = self.world.clock.now_s - since_s
            self._pace.is_quick = took_s <= self.world.limits.quick_s
            if isinstance(number, Snapshot):
                self._is_snapshotting = False
                self._core.compact(number.index)
            else:
                newest = number
        if newest is not None:
            self._core.persisted(newest, self.now_s)
        self.settle()

    def _when_failed(self) -> None:
        """What was not synchronised may be lost for ever, so this life ends (fsyncgate)."""
        self.world.note(self.name, "cannot synchronise its disk")
        self.world.crash(self.name)
        self.world.after(0.2, lambda: self.world.start(self.name))

    def _send(self, messages: Sequence[tuple[str, Message]]) -> None:
        world, name = self.world, self.name
        send = world.network.send
        for receiver, message in messages:
            for each in self.messages_of(message):
                self._look_at(receiver, each)
            if world.tell is not None:
                world.note(name, f"-> {receiver} {self.shown(message)}")
            send(name, receiver, message)

    def messages_of(self, sent: Message | bytes) -> list[Message]:
        """Return the messages in what is sent: a frame, or one."""
        if isinstance(sent, bytes):
            return [message for _, message in decode(sent) if not isinstance(message, Beat)]
        return [sent]

    def shown(self, sent: Message | bytes) -> str:
        """Return what is sent, for people."""
        if isinstance(sent, bytes):
            return " + ".join(repr(message) for _, message in decode(sent))
        return repr(sent)

    def _look_at(self, receiver: str, message: Message) -> None:
        """Note what others hear of this replica's term and vote."""
        shadow = self.world.checker.shadows[self.name]
        if isinstance(message, Vote | VoteReply):
            if message.is_pre:
                return
            if isinstance(message, Vote):
                self.world.checker.on_vote(self.name, message.term, self.name)
            elif message.is_granted:
                self.world.checker.on_vote(self.name, message.term, receiver)
        shadow.sent_term = max(shadow.sent_term, message.term)

    def _receive(self, snapshot: Snapshot) -> None:
        content = bytes(self._incoming)
        if len(content) == snapshot.size_bytes and crc32(content) == snapshot.tag:
            if self._core.accept_snapshot(snapshot):
                self._accepted = content
        else:
            self.world.note(self.name, f"refuses {snapshot}")
            self._core.refuse_snapshot(snapshot)

    def _restore(self, snapshot: Snapshot) -> None:
        content = self._accepted
        checker = self.world.checker
        checker.on_restore(self.name, snapshot.index)
        checker.on_snapshot(self.name, snapshot, content)
        self.machine = Sequencer.from_bytes(content)
        self.applied = self._snapshot_index = snapshot.index
        self._pending.clear()

    def _apply(self, entries: Sequence[Entry]) -> None:
        world, name = self.world, self.name
        checker, pending, machine = world.checker, self._pending, self.machine
        for entry in entries:
            index = entry.index
            if entry.kind == COMMAND:
                answer, chunk = machine.apply(world.decode(entry.payload))
                checker.on_apply(name, entry, answer, chunk)
                if pending and index in pending:
                    term, request = pending.pop(index)
                    if term == entry.term and isinstance(answer, Appended):
                        world.answer(request, answer)
                    else:
                        world.refuse(request, None)
            else:
                checker.on_applied(name, index)
        self.applied = entries[-1].index
        if self.applied - self._snapshot_index >= world.limits.snapshot_every:
            self._take_snapshot(entries[-1])

    def _take_snapshot(self, last: Entry) -> None:
        # Where a leader's snapshot was accepted in this turn, the state comes with the next one.
        if self._is_snapshotting or self.applied < self.group.compacted_index:
            return
        content = self.machine.to_bytes()
        snapshot = self._core.snapshot_of(last.index, len(content), crc32(content))
        self.world.checker.on_snapshot(self.name, snapshot, content)
        self._is_snapshotting = True
        self._snapshot_index = last.index
        self._put([("own", snapshot, content)], snapshot)
