"""The stage on which the scripts are played: members of a group, a network and disks in hand.

Nothing happens by itself. Messages lie on the network until they are delivered, time stands until
it is moved, and a slow disk keeps its writes until it is told. `docs/internals/raft.md` lists the
commands.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING

from raft_telling import event_text, message_text, state_text

from cogwork.plugin.engine.errors import ConsensusError
from cogwork.raft.core import Recovered
from cogwork.raft.entries import Entry, Kind
from cogwork.raft.group import Group
from cogwork.raft.membership import Membership
from cogwork.raft.pace import Pace
from cogwork.raft.ready import HardState
from cogwork.raft.settings import Settings
from cogwork.raft.snapshot import Snapshot
from cogwork.raft.wire import VERSION, decode, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cogwork.raft.messages import Message
    from cogwork.raft.ready import Ready, Write

TURNS_MAX = 1000


class Still(Random):
    """Always the same, so that time-outs differ by leader priority alone."""

    def random(self) -> float:
        return 0.0

    def getrandbits(self, _count: int) -> int:
        return 0


class Disk:
    """What a member has written, and what of it would survive a crash."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.hard_state = HardState()
        self.snapshot = snapshot
        self.content: tuple[str, ...] = ()
        self.entries: list[Entry] = []
        self.waiting: list[Write] = []
        self.is_slow = False

    def sync(self) -> int:
        """Make everything durable; return the number of the last write."""
        number = 0
        for write in self.waiting:
            number = write.number
            self.hard_state = write.hard_state or self.hard_state
            if write.snapshot is not None:
                self.snapshot = write.snapshot
                self.entries = []
            if write.entries:
                first = write.entries[0].index
                self.entries = [each for each in self.entries if each.index < first]
                self.entries.extend(write.entries)
        self.waiting = []
        return number


@dataclass
class Member:
    """One member with its disk, its application and its snapshots to send."""

    name: str
    disk: Disk
    pace: Pace = field(default_factory=Pace)
    floor: tuple[int, int] = (0, 0)
    group: Group | None = None
    applied: list[tuple[int, str]] = field(default_factory=list)
    offered: Snapshot | None = None
    offered_content: bytes = b""
    arriving: bytearray = field(default_factory=bytearray)

    # The storage of its group.

    def entries(self, first: int, size_bytes: int) -> Sequence[Entry]:
        return ()

    def holds(self, index: int) -> bool:
        return False

    def term(self, index: int) -> int | None:
        return None

    def snapshot(self) -> Snapshot | None:
        return self.offered

    def chunk(self, snapshot: Snapshot, offset: int, size_bytes: int) -> bytes | None:
        if snapshot != self.offered:
            return None
        return self.offered_content[offset : offset + size_bytes]


class Stage:
    """All members, the network between them, and what happened since the last command."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.settings = Settings(chunk_bytes=8, window_chunks=2, quiesce_s=1.0, priority_hold_s=5.0)
        self.members: dict[str, Member] = {}
        self.network: list[tuple[str, str, Message]] = []
        self.cuts: set[frozenset[str]] = set()
        self.losses: list[tuple[str, str, str]] = []
        self.lines: list[str] = []
        self.hides: set[str] = {"Heartbeat", "HeartbeatReply"}

    def play(self, line: str) -> list[str]:
        """Do one command, and return what happened."""
        self.lines = []
        command, *words = line.split()
        action: Callable[..., None] = getattr(self, f"do_{command.replace('-', '_')}")
        try:
            action(*words)
        except (ConsensusError, ValueError) as error:
            self.lines.append(f"{type(error).__name__}: {error}")
        self._settle()
        return self.lines

    # What members do.

    def _settle(self) -> None:
        for member in self.members.values():
            while member.group is not None and (ready := member.group.ready()):
                self._do(member, ready)

    def _do(self, member: Member, ready: Ready) -> None:
        name = member.name
        assert member.group is not None
        self.lines.extend(f"{name} {told}" for event in ready.events if (told := event_text(event)))
        if ready.write is not None:
            self._write(member, ready.write)
        for to, message in ready.messages:
            self._tell(f"{name} -> {to}  {message_text(message)}", message)
            if (name, to, type(message).__name__) in self.losses:
                self.losses.remove((name, to, type(message).__name__))
                self.lines.append("    which is lost")
            else:
                self.network.append((name, to, _over_the_wire(message)))
        for chunk in ready.chunks:
            del member.arriving[chunk.offset :]
            member.arriving += chunk.data
        if ready.received is not None:
            self.lines.append(f"{name} has all {len(member.arriving)} octets of the snapshot")
            member.group.accept_snapshot(ready.received)
        if ready.restore is not None:
            words = bytes(member.arriving).decode().split()
            member.applied = [(ready.restore.index, word) for word in words]
            self.lines.append(f"{name} restores {' '.join(words)}")
        for entry in ready.committed:
            if entry.kind == Kind.COMMAND:
                member.applied.append((entry.index, entry.payload.decode()))
                self.lines.append(f"{name} applies {entry.index} {entry.payload.decode()}")
        for read in ready.reads:
            self.lines.append(f"{name} reads {read.token} at {read.index}")

    def _write(self, member: Member, write: Write) -> None:
        member.disk.waiting.append(write)
        if member.disk.is_slow:
            self.lines.append(f"{member.name} hands write {write.number} to its disk")
        else:
            self._sync(member)

    def _sync(self, member: Member) -> None:
        number = member.disk.sync()
        if member.group is not None and number:
            member.group.persisted(number, self.now_s)

    def _tell(self, line: str, message: Message) -> None:
        if type(message).__name__ not in self.hides:
            self.lines.append(line)

    def _group(self, name: str) -> Group:
        group = self.members[name].group
        assert group is not None, f"{name} is down"
        return group

    def _live(self) -> Iterable[Member]:
        return [member for member in self.members.values() if member.group is not None]

    def _open(self, member: Member) -> None:
        disk = member.disk
        recovered = Recovered(
            hard_state=disk.hard_state,
            snapshot=disk.snapshot,
            entries=list(disk.entries),
            storage=member,
            floor=member.floor,
        )
        member.group = Group(
            member.name, recovered, Still(), self.now_s, settings=self.settings, pace=member.pace
        )

    # Commands: who is there.

    def do_members(self, *words: str) -> None:
        """`members a b c / d`: the first members, learners behind the stroke."""
        membership = _membership(words)
        for name in (*membership.voters, *membership.learners):
            self.members[name] = Member(name, Disk(Snapshot(membership=membership)))
            self._open(self.members[name])

    def do_limit(self, name: str, value: str) -> None:
        """`limit append_entries 1`: a setting of all members that begin after this."""
        self.settings = replace(self.settings, **{name: int(value)})

    def do_newcomer(self, name: str, term: str = "0", index: str = "0") -> None:
        """`newcomer d [2 5]`: knows nothing yet, but that it has left since 5 in term 2."""
        floor = (int(term), int(index))
        self.members[name] = Member(name, Disk(Snapshot()), floor=floor)
        self._open(self.members[name])

    def do_begin(self, name: str, term: str, *terms: str) -> None:
        """`begin a 6 1 1 4`: a member starts in term 6 with entries of these terms."""
        member = self.members[name]
        member.disk.hard_state = HardState(int(term))
        member.disk.entries = [
            Entry(index, int(each), Kind.COMMAND, f"{each}.{index}".encode())
            for index, each in enumerate(terms, 1)
        ]
        self._open(member)

    def do_crash(self, name: str) -> None:
        """`crash a`: what is not durable is lost."""
        member = self.members[name]
        member.group = None
        member.disk.waiting = []
        member.applied = []

    def do_restart(self, name: str) -> None:
        """`restart a`: from what was durable."""
        self._open(self.members[name])

    # Commands: disks and network.

    def do_disk(self, name: str, speed: str) -> None:
        """`disk a slow|fast`: whether writes wait for `sync`."""
        self.members[name].disk.is_slow = speed == "slow"

    def do_pace(self, name: str, speed: str) -> None:
        """`pace a quick|slow`: what a takes its disk for; it is slow at first."""
        self.members[name].pace.is_quick = speed == "quick"

    def do_sync(self, name: str) -> None:
        """`sync a`: what was written is durable."""
        self._sync(self.members[name])

    def do_deliver(self, *ends: str) -> None:
        """`deliver [from [to]]`: messages arrive, and the answers, until there are none."""
        for _ in range(TURNS_MAX):
            taken = [each for each in self.network if _is_between(each, ends)]
            if not taken:
                return
            self.network = [each for each in self.network if not _is_between(each, ends)]
            for sender, to, message in taken:
                self._arrive(sender, to, message)
            self._settle()
        raise AssertionError("they talk without end")

    def do_once(self, *ends: str) -> None:
        """`once [from [to]]`: messages arrive; the answers wait."""
        taken = [each for each in self.network if _is_between(each, ends)]
        self.network = [each for each in self.network if not _is_between(each, ends)]
        for sender, to, message in taken:
            self._arrive(sender, to, message)
            self._settle()

    def _arrive(self, sender: str, to: str, message: Message) -> None:
        group = self.members[to].group if to in self.members else None
        if group is None or frozenset((sender, to)) in self.cuts:
            return
        try:
            group.step(sender, message, self.now_s)
        except ConsensusError as error:
            self.lines.append(f"{to} passes over {message_text(message)}: {error}")

    def do_drop(self, *ends: str) -> None:
        """`drop [from [to]]`: messages are lost."""
        self.network = [each for each in self.network if not _is_between(each, ends)]

    def do_lose(self, sender: str, to: str, kind: str) -> None:
        """`lose a b Append`: the next message of a kind from a to b will be lost."""
        self.losses.append((sender, to, kind))

    def do_cut(self, one: str, *others: str) -> None:
        """`cut a b c`: nothing passes between a and the others."""
        self.cuts |= {frozenset((one, other)) for other in others}

    def do_heal(self) -> None:
        """`heal`: everything passes again."""
        self.cuts = set()

    def do_hide(self, *kinds: str) -> None:
        """`hide Append AppendReply`: messages of these kinds are not shown any more."""
        self.hides |= set(kinds)

    def do_show(self, *kinds: str) -> None:
        """`show Heartbeat`: messages of these kinds are shown again."""
        self.hides -= set(kinds)

    # Commands: time.

    def do_timeout(self, name: str) -> None:
        """`timeout a`: time passes until a has something to do, and nobody else notices."""
        group = self._group(name)
        self.now_s = max(self.now_s, group.wake_s)
        group.tick(self.now_s)

    def do_wait(self, seconds: str) -> None:
        """`wait 0.5`: time passes for all, and messages arrive."""
        until_s = self.now_s + float(seconds)
        for _ in range(100 * TURNS_MAX):
            self.do_deliver()
            wake_s = min((self._group(each.name).wake_s for each in self._live()), default=until_s)
            if wake_s > until_s:
                self.now_s = until_s
                return
            self.now_s = max(self.now_s, wake_s)
            for member in self._live():
                group = self._group(member.name)
                if group.wake_s <= self.now_s:
                    group.tick(self.now_s)
            self._settle()
        raise AssertionError("time does not pass")

    # Commands: what is asked of a member.

    def do_propose(self, name: str, *payloads: str) -> None:
        """`propose a x y`: two commands."""
        for payload in payloads:
            term, index = self._group(name).propose(payload.encode(), self.now_s)
            self.lines.append(f"{name} takes {payload} as {index} in term {term}")

    def do_read(self, name: str, *tokens: str) -> None:
        """`read a t u`: asks for two current reads."""
        for token in tokens:
            self._group(name).read_index(token, self.now_s)

    def do_transfer(self, name: str, *to: str) -> None:
        """`transfer a [b]`: a hands the leadership over."""
        self._group(name).transfer(to[0] if to else None, self.now_s)

    def do_bar(self, name: str, *barred: str) -> None:
        """`bar a b`: a goes by that b is not to lead."""
        self._group(name).bar(frozenset(barred), self.now_s)

    def do_change(self, name: str, *words: str) -> None:
        """`change a b c / d`: a changes the members to b and c, with learner d."""
        self._group(name).change(_membership(words), self.now_s)

    def do_snapshot(self, name: str, index: str) -> None:
        """`snapshot a 5`: a makes a snapshot, and gives up the entries up to 5."""
        member = self.members[name]
        group = self._group(name)
        content = " ".join(word for at, word in member.applied if at <= int(index)).encode()
        member.offered_content = content
        member.offered = group.snapshot_of(int(index), len(content), tag=len(content))
        member.disk.snapshot = member.offered
        group.compact(int(index))
        member.disk.entries = [each for each in member.disk.entries if each.index > int(index)]

    def do_rest(self, name: str, *absent: str) -> None:
        """`rest a [b]`: as a host does at each tick of a leader, where it misses b."""
        is_asleep = self._group(name).rest(absent, self.now_s)
        self.lines.append(f"{name} {'sleeps' if is_asleep else 'is awake'}")

    def do_suspect(self, name: str, container: str) -> None:
        """`suspect a b`: a's host misses container b."""
        self._group(name).suspect(container, self.now_s)

    # Commands: what is to be seen.

    def do_state(self, *names: str) -> None:
        """`state [a]`: roles, terms and marks."""
        for member in self.members.values():
            if names and member.name not in names:
                continue
            self.lines.append(f"{member.name}: {state_text(member.group)}")

    def do_log(self, *names: str) -> None:
        """`log [a]`: the terms of the entries, by index."""
        for member in self._live():
            if names and member.name not in names:
                continue
            group = self._group(member.name)
            terms = [
                str(entry.term)
                for entry in group.entries(group.compacted_index + 1, group.last_index)
            ]
            self.lines.append(f"{member.name}: {group.compacted_index} | {' '.join(terms)}")

    def do_applied(self) -> None:
        """`applied`: what each application has."""
        for member in self.members.values():
            self.lines.append(
                f"{member.name}: {' '.join(word for _, word in member.applied)}".rstrip()
            )


def _membership(words: Sequence[str]) -> Membership:
    if "/" in words:
        stroke = words.index("/")
        return Membership(tuple(words[:stroke]), tuple(words[stroke + 1 :]))
    return Membership(tuple(words))


def _is_between(each: tuple[str, str, Message], ends: Sequence[str]) -> bool:
    return all(have == wanted for have, wanted in zip(each, ends, strict=False))


def _over_the_wire(message: Message) -> Message:
    """Return the message as it comes out of the codec: so each script exercises that, too."""
    ((group, decoded),) = decode(b"".join((bytes((VERSION,)), *encode(7, message))))
    assert group == 7
    assert decoded == message or type(decoded).__name__ == "Append"
    return decoded  # type: ignore[return-value]  # a message of a group, as what was encoded
