"""What must hold at every step: sees what happens from outside, and forgets nothing.

Nothing here asks the core what it thinks is right: logs, configurations and majorities are kept a
second time, from what replicas wrote, what their disks hold and what they gave out.

- A term is begun by a candidate, and by nobody else: a pre-vote disturbs nobody.
- Nobody votes for two in one term, not even across a crash.
- At most one leader a term, for whom a majority of its configuration has voted in that term, and it
  holds everything that was given out before it (leader completeness).
- Two logs with an entry of one index and term are equal up to it (log matching): an entry has one
  payload, and one entry before it.
- An entry is first committed when a majority of its configuration has it on disk.
- Every replica applies the same entries, gives the same answers, has the same snapshots.
- Terms and commit indices of a replica never go back; what is committed is never cut off.
- What is delivered was asked for, once for each producer and sequence, in the producer's order.
- What was answered is there, at that offset, after all that was answered before it was asked for.
- A read sees all that was delivered anywhere before it was asked for.
- A new voter is one, in a joint configuration, once it has on disk what was committed when it was
  asked for, and a majority of the new voters has.
- A leader that hands over takes no commands until that has ended.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cogwork.raft.entries import Kind
from cogwork.raft.membership import Membership
from cogwork.sim.raft.shadow import Log, Shadow

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogwork.plugin.engine.batch import Batch, Chunk
    from cogwork.plugin.engine.contract import Appended
    from cogwork.raft.entries import Entry
    from cogwork.raft.snapshot import Snapshot
    from cogwork.sim.raft.clients import Request
    from cogwork.sim.raft.shadow import Quorums
    from cogwork.sim.raft.store import Store

__all__ = ("Broken", "InvariantChecker")

COMMAND, MEMBERS = int(Kind.COMMAND), int(Kind.MEMBERS)


class Broken(AssertionError):
    """A rule does not hold."""


@dataclass(slots=True)
class Applied:
    """What happened at an index, the same everywhere.

    Attributes:
        term: The entry's.
        payload: The entry's.
        answer: What it was answered.
    """

    term: int
    payload: bytes
    answer: object


@dataclass(slots=True, eq=False)
class InvariantChecker:
    """Keeps what was ever true.

    Attributes:
        quorums: The first configuration.
        shadows: By replica.
        leaders: By term.
        last_term: The highest there was.
        votes: For whom, by voter and term.
        entries: The term before and the payload, by index and term.
        commit: Everything up to here was committed somewhere.
        commits: How far, by the term in which it was.
        committed: Terms by index.
        applied: By index.
        snapshots: By index.
        answered_end: The stream was answered to be so long.
        next_offset: The stream is so long.
        lost_disks: What disks had that were replaced: what was said of them then was true.
    """

    quorums: Quorums
    shadows: dict[str, Shadow] = field(default_factory=dict)
    leaders: dict[int, str] = field(default_factory=dict)
    last_term: int = 0
    votes: dict[tuple[str, int], str] = field(default_factory=dict)
    entries: dict[tuple[int, int], tuple[int | None, bytes]] = field(default_factory=dict)
    commit: int = 0
    commits: dict[int, int] = field(default_factory=dict)
    committed: dict[int, int] = field(default_factory=dict)
    applied: dict[int, Applied] = field(default_factory=dict)
    snapshots: dict[int, tuple[Snapshot, bytes]] = field(default_factory=dict)
    answered_end: int = 0
    next_offset: int = 0
    lost_disks: dict[str, list[Store]] = field(default_factory=dict)
    _asked: set[tuple[bytes, int, bytes]] = field(default_factory=set)
    _given: set[bytes] = field(default_factory=set)
    _sequences: dict[bytes, int] = field(default_factory=dict)
    _places: dict[tuple[bytes, int, bytes], int] = field(default_factory=dict)

    # Replicas.

    def on_new(self, name: str, disk: Store) -> None:
        """A replica with an empty disk."""
        self.shadows[name] = Shadow(name, self.quorums, disk)

    def on_retired(self, name: str) -> None:
        """A replica has given up everything."""
        del self.shadows[name]

    def on_wiped(self, name: str) -> None:
        """A replica has lost its disk; others may go by what it has said of that."""
        self.lost_disks.setdefault(name, []).append(self.shadows.pop(name).disk)

    def on_begin_again(self, floor: tuple[int, int]) -> None:
        """A replica that has lost its disk begins in a term for which nobody stands."""
        self.last_term = max(self.last_term, floor[0])

    def on_start(self, name: str) -> None:
        """A replica begins again with what its disk holds."""
        shadow = self.shadows[name]
        disk = shadow.disk
        log = shadow.log = Log(self.quorums)
        if disk.newest is not None:
            log.restore(disk.newest)
        for index in sorted(disk.entries_by_index):
            if index > log.base:
                log.append(disk.entries_by_index[index])
        shadow.is_leader, shadow.asked, shadow.heir = False, None, ""
        shadow.commit = shadow.applied = log.base
        if disk.hard_state.term < shadow.sent_term:
            raise Broken(
                f"{name} begins again in term {disk.hard_state.term}, and has spoken in term "
                f"{shadow.sent_term}"
            )
        shadow.term = disk.hard_state.term

    def on_write(self, name: str, entries: Iterable[Entry]) -> None:
        """A replica has entries in its log."""
        shadow = self.shadows[name]
        log, known = shadow.log, self.entries
        for entry in entries:
            index, term = entry.index, entry.term
            if index <= log.last:
                if index <= shadow.commit and log.term(index) != term:
                    raise Broken(f"{name} replaces entry {index}, which is committed")
                if index <= shadow.commit < log.last and log.term(index) == term:
                    raise Broken(f"{name} cuts its log behind {index}, which did not conflict")
                if shadow.is_leader and term == shadow.term:
                    raise Broken(f"{name} replaces entry {index} of its own log while it leads")
            elif index != log.last + 1:
                raise Broken(f"{name} leaves a hole before entry {index}: it had {log.last}")
            before = log.term(index - 1)
            known_entry = known.get((index, term))
            if known_entry is None:
                known[index, term] = (before, entry.payload)
            elif known_entry[1] != entry.payload or (
                known_entry[0] != before and before is not None and known_entry[0] is not None
            ):
                raise Broken(
                    f"{name} has another entry {index} of term {term} than others: "
                    f"{(before, entry.payload)}, not {known_entry}"
                )
            log.append(entry)
            if shadow.is_leader and term == shadow.term:
                self._on_led_entry(shadow, entry)

    def _on_led_entry(self, shadow: Shadow, entry: Entry) -> None:
        """A leader has an entry of its own term in its log."""
        if entry.kind == MEMBERS:
            self._check_newcomers(shadow, Membership.from_bytes(entry.payload))
        elif entry.kind == COMMAND and shadow.heir:
            raise Broken(f"{shadow.name} takes entry {entry.index} while it hands over")

    def _check_newcomers(self, shadow: Shadow, joint: Membership) -> None:
        """New voters have what was committed when the change was asked for."""
        if not joint.is_joint or shadow.asked is None:
            return
        target, goal = shadow.asked
        if target.voters != joint.voters:
            return
        term = self.committed[goal] if goal else 0
        others = [each for each in joint.voters if each != shadow.name]
        late = [each for each in others if not self._has_on_disk(each, goal, term)]
        if set(late) - set(joint.old_voters) or len(late) * 2 >= len(joint.voters):
            raise Broken(
                f"{shadow.name} makes {list(joint.voters)} voters, and {late} have not caught up "
                f"to entry {goal}"
            )

    def _has_on_disk(self, name: str, index: int, term: int) -> bool:
        shadow = self.shadows.get(name)
        return shadow is not None and shadow.disk.has(index, term)

    def on_state(
        self, name: str, term: int, commit: int, *, is_leader: bool, is_candidate: bool = False
    ) -> None:
        """After a step: what the replica says of itself."""
        if term > self.last_term:
            if not (is_leader or is_candidate):
                raise Broken(f"{name} is in term {term}, for which nobody stands")
            self.last_term = term
        shadow = self.shadows[name]
        if term < shadow.term:
            raise Broken(f"{name} goes back from term {shadow.term} to {term}")
        shadow.term = term
        if is_leader and (not shadow.is_leader or self.leaders.get(term) != name):
            self._on_leader(shadow, term)
        shadow.is_leader = is_leader
        if commit != shadow.commit:
            self._on_commit(shadow, commit)

    def on_vote(self, voter: str, term: int, candidate: str) -> None:
        """A replica says whom it votes for."""
        known = self.votes.setdefault((voter, term), candidate)
        if known != candidate:
            raise Broken(f"{voter} votes for {known} and for {candidate} in term {term}")

    def _on_leader(self, shadow: Shadow, term: int) -> None:
        known = self.leaders.setdefault(term, shadow.name)
        if known != shadow.name:
            raise Broken(f"term {term} has two leaders, {known} and {shadow.name}")
        self._check_votes(shadow, term)
        before = [index for led, index in self.commits.items() if led < term]
        commit = max(before, default=0)
        if commit and not shadow.log.holds(commit, self.committed[commit]):
            raise Broken(
                f"{shadow.name} leads term {term} without entry {commit}, which is committed: "
                f"it has up to {shadow.log.last}"
            )

    def _check_votes(self, shadow: Shadow, term: int) -> None:
        """A majority of the configuration has said that it votes for a leader, itself included."""
        name = shadow.name
        _, quorums = shadow.log.quorums[-1]
        for members in quorums:
            voted = {each for each in members if self.votes.get((each, term)) == name}
            voted |= members & {name}
            if len(voted) * 2 <= len(members):
                raise Broken(
                    f"{name} leads term {term}, and of {sorted(members)} only {sorted(voted)} "
                    "have voted for it"
                )

    def _on_commit(self, shadow: Shadow, commit: int) -> None:
        name, log = shadow.name, shadow.log
        if commit < shadow.commit:
            raise Broken(f"{name} goes back from commit index {shadow.commit} to {commit}")
        if commit > log.last:
            raise Broken(f"{name} commits {commit}, and its log ends at {log.last}")
        for index in range(max(shadow.commit, log.base) + 1, min(commit, self.commit) + 1):
            if self.committed[index] != log.term(index):
                raise Broken(
                    f"{name} commits entry {index} of term {log.term(index)}; "
                    f"it was committed with term {self.committed[index]}"
                )
        if commit > self.commit:
            self._check_majority(shadow, commit)
            for index in range(self.commit + 1, commit + 1):
                term = log.term(index)
                if term is None:
                    raise Broken(f"{name} commits {index}, which nobody saw in its log")
                self.committed[index] = term
            self.commit = self.commits[shadow.term] = commit
        shadow.commit = commit

    def _check_majority(self, shadow: Shadow, commit: int) -> None:
        """A majority of the configuration has it on disk."""
        log = shadow.log
        term = log.term(commit)
        if term is None:
            raise Broken(f"{shadow.name} commits {commit}, which is not in its log")
        if shadow.is_leader and term != shadow.term:
            raise Broken(
                f"{shadow.name} leads term {shadow.term} and commits entry {commit} of term {term} "
                "by counting (Raft figure 8)"
            )
        newest, quorums = log.quorums[-1]
        allowed = [quorums]
        if newest > commit and len(log.quorums) > 1:
            allowed.append(log.quorums[-2][1])
        if not any(self._is_durable(commit, term, each) for each in allowed):
            have = sorted(n for n, s in self.shadows.items() if s.disk.has(commit, term))
            raise Broken(
                f"{shadow.name} commits entry {commit} of term {term}, which only {have} have on "
                f"disk; the configuration is {[sorted(each) for each in quorums]}"
            )

    def _is_durable(self, index: int, term: int, quorums: Quorums) -> bool:
        for members in quorums:
            having = sum(self._had_on_disk(name, index, term) for name in members)
            if having * 2 <= len(members):
                return False
        return True

    def _had_on_disk(self, name: str, index: int, term: int) -> bool:
        lost = self.lost_disks.get(name, ())
        return self._has_on_disk(name, index, term) or any(each.has(index, term) for each in lost)

    # The state machine.

    def on_apply(self, name: str, entry: Entry, answer: object, chunk: Chunk | None) -> None:
        """A replica has applied an entry of ours."""
        index = entry.index
        self.on_applied(name, index)
        known = self.applied.get(index)
        if known is None:
            self.applied[index] = Applied(entry.term, entry.payload, answer)
            if self.committed.get(index) != entry.term:
                raise Broken(f"{name} applies {index}, which is not committed")
            if chunk is not None:
                self._on_chunk(name, chunk)
        elif known.term != entry.term or known.payload != entry.payload:
            raise Broken(f"{name} applies another entry {index} than others")
        elif known.answer != answer and repr(known.answer) != repr(answer):
            raise Broken(f"{name} answers {answer} at {index}, others {known.answer}")

    def on_applied(self, name: str, index: int) -> None:
        """A replica has applied an entry, ours or one of its own."""
        shadow = self.shadows[name]
        if index != shadow.applied + 1:
            raise Broken(f"{name} applies {index} after {shadow.applied}")
        if index > shadow.commit:
            raise Broken(f"{name} applies {index}; its commit index is {shadow.commit}")
        if shadow.log.term(index) != self.committed.get(index):
            raise Broken(f"{name} applies {index} of a term that was not committed")
        shadow.applied = index

    def on_snapshot(self, name: str, snapshot: Snapshot, content: bytes) -> None:
        """A replica has made a snapshot, or taken one."""
        index, term = snapshot.index, snapshot.term
        known = self.snapshots.setdefault(index, (snapshot, content))
        if known != (snapshot, content):
            raise Broken(f"{name} has another snapshot at {index} than others: {snapshot}, {known}")
        if self.committed.get(index) != term:
            raise Broken(f"{name} has a snapshot at {index}, which is not committed")

    def on_received(self, name: str, snapshot: Snapshot) -> None:
        """A replica gives up its log for a snapshot that it was sent."""
        shadow = self.shadows[name]
        if snapshot.index <= shadow.commit:
            raise Broken(
                f"{name} goes back from commit index {shadow.commit} to a snapshot at "
                f"{snapshot.index}"
            )
        shadow.log.restore(snapshot)
        shadow.commit = snapshot.index

    def on_restore(self, name: str, index: int) -> None:
        """A replica's application goes on from a snapshot."""
        shadow = self.shadows[name]
        if index < shadow.applied:
            raise Broken(f"{name} goes back from {shadow.applied} to a snapshot at {index}")
        shadow.applied = index

    def _on_chunk(self, name: str, chunk: Chunk) -> None:
        batch = chunk.batch
        key = _key(batch)
        if key not in self._asked:
            raise Broken(f"{name} delivers what nobody asked for: {batch}")
        if chunk.offset != self.next_offset:
            raise Broken(f"{name} delivers offset {chunk.offset} after {self.next_offset}")
        if batch.producer:
            expected = self._sequences.get(batch.producer, 0)
            if batch.sequence != expected:
                raise Broken(
                    f"{name} delivers sequence {batch.sequence} of {batch.producer!r}: "
                    f"{expected} is next"
                )
            self._sequences[batch.producer] = expected + batch.count
        elif batch.payload in self._given:
            raise Broken(f"{name} delivers twice: {batch}")
        self._given.add(batch.payload)
        self._places[key] = chunk.offset
        self.next_offset = chunk.next_offset

    # What leaders are asked for.

    def on_change(self, name: str, target: Membership) -> None:
        """A leader has begun to change the members, or goes on with it."""
        shadow = self.shadows[name]
        if shadow.asked is None or shadow.asked[0] != target:
            shadow.asked = (target, shadow.commit)

    def on_transfer(self, name: str, heir: str) -> None:
        """A leader hands over."""
        self.shadows[name].heir = heir

    def on_transfer_ended(self, name: str, heir: str) -> None:
        """It has come to its end, or did not."""
        shadow = self.shadows[name]
        if shadow.heir == heir:
            shadow.heir = ""

    # Clients.

    def on_request(self, request: Request) -> None:
        """A client asks for an append."""
        self._asked.add(_key(request.batch))

    def on_answer(self, request: Request, answer: Appended) -> None:
        """A client is answered."""
        batch = request.batch
        place = self._places.get(_key(batch))
        if place is None:
            raise Broken(f"{request.client.name} is answered {answer}, which is not there")
        is_forgotten = answer.first_offset is None and answer.is_repeated
        if place != answer.first_offset and not is_forgotten:
            raise Broken(f"{request.client.name} is answered {answer}; it is at {place}")
        if place < request.floor:
            raise Broken(
                f"{request.client.name} is answered {place}; {request.floor} records had been "
                "answered before it asked"
            )
        self.answered_end = max(self.answered_end, place + batch.count)

    def on_read(self, name: str, floor: int, next_offset: int) -> None:
        """A read is answered by a replica."""
        if next_offset < floor:
            raise Broken(f"a read at {name} sees {next_offset} records of {floor} delivered before")


def _key(batch: Batch) -> tuple[bytes, int, bytes]:
    return (batch.producer, batch.sequence, batch.payload)
