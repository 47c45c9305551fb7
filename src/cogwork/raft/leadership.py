"""What there is only in a leader, from its election to the end of its term (Raft figure 2)."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from cogwork.plugin.engine.errors import Busy
from cogwork.raft.changes import Changes
from cogwork.raft.entries import ENTRY_OVERHEAD_BYTES, Kind
from cogwork.raft.leader_priority import LeaderPriority
from cogwork.raft.messages import Heartbeat, TimeoutNow
from cogwork.raft.progress import Phase, Progress
from cogwork.raft.reads import LeaderReads
from cogwork.raft.replication import Replication
from cogwork.raft.roles import Cause
from cogwork.raft.transfer import Transfer

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from cogwork.raft.budget import Share
    from cogwork.raft.core import Core
    from cogwork.raft.membership import Membership
    from cogwork.raft.messages import (
        AppendReply,
        HeartbeatReply,
        ReadIndex,
        SnapshotReply,
    )

__all__ = ("Leadership",)


class Leadership:
    """One leader in one term.

    Attributes:
        progress: Every other member.
        reads: Reads that wait for a majority.
        changes: The change of members.
        transfer: Handing over; None where that is not under way.
        first_index: Of the first entry of the term.
        uncommitted_bytes: What proposals count that are not committed.
        active_s: When something was last going on.
    """

    def __init__(self, core: Core, share_of: Callable[[str], Share]) -> None:
        self._core = core
        self._share_of = share_of
        self.progress: dict[str, Progress] = {}
        self.reads = LeaderReads(core)
        self.changes = Changes(core, self.progress)
        self.transfer: Transfer | None = None
        self.uncommitted_bytes = 0
        self.active_s = core.now_s
        self._replication = Replication(core, self.progress)
        self._leader_priority = LeaderPriority(core)
        self._leaving: dict[str, tuple[int, float]] = {}  # which entry says so, until when
        self._refused_s: dict[str, float] = {}  # who did not take the leadership, and when
        self._missed: Container[str] = ()
        self._members: Membership | None = None
        self._due_s = core.now_s + core.heartbeat_s
        core.set_leader(core.own)
        for entry in core.log.tail(core.commit + 1):
            self.uncommitted_bytes += entry.size_bytes
        self._follow_membership()
        # An entry of an earlier term is never committed by counting (Raft §5.4.2): this one, with
        # which they are, must not wait for a proposal (§8). The first one of all tells the members,
        # so that everybody has them in the log.
        if core.log.last_index:
            self.first_index = self._append(Kind.NOOP, b"")
        else:
            self.first_index = self._append(Kind.MEMBERS, core.membership.to_bytes())

    # Proposals.

    def propose(self, payload: bytes) -> int:
        """Append a command; return its index.

        Raises:
            Busy: As much is under way as is held at once.
        """
        core, settings = self._core, self._core.settings
        if self.transfer is not None:
            raise Busy("the leadership is being handed over")
        waiting = core.log.last_index - core.commit
        if waiting and (
            self.uncommitted_bytes + len(payload) > settings.uncommitted_bytes
            or waiting >= settings.uncommitted_entries
        ):
            raise Busy(f"{waiting} entries wait for a majority")
        return self._append(Kind.COMMAND, payload)

    def _append(self, kind: Kind, payload: bytes) -> int:
        core = self._core
        self.active_s = core.now_s
        self.uncommitted_bytes += len(payload) + ENTRY_OVERHEAD_BYTES
        return core.append(kind, payload)

    # Answers.

    def on_append_reply(self, member: str, reply: AppendReply) -> None:
        """Take note of what a member has."""
        progress = self.progress.get(member)
        if progress is None or reply.match > self._core.log.last_index:
            return
        progress.heard_s = self._core.now_s
        if not self._replication.on_reply(progress, reply):
            return
        if reply.match > self._core.commit:
            self.commit()
        if self.transfer is not None and self.transfer.to == member:
            self.transfer.look(progress.match)

    def look_anew(self, member: str) -> None:
        """Do not rely on what a member had in an earlier life: perhaps its disk is another."""
        progress = self.progress.get(member)
        if progress is not None:
            progress.forget(self._core.log.last_index + 1)

    def on_heartbeat_reply(self, member: str, reply: HeartbeatReply) -> None:
        """Take note that a member follows."""
        progress = self.progress.get(member)
        if progress is None:
            return
        progress.heard_s = self._core.now_s
        progress.round = max(progress.round, min(reply.round, self.reads.round))
        self._replication.on_heartbeat_reply(member, progress, is_behind=reply.is_behind)
        self.reads.answer(self._round_of)

    def on_snapshot_reply(self, member: str, reply: SnapshotReply) -> None:
        """Take note of how much of a snapshot has come."""
        progress = self.progress.get(member)
        if progress is not None:
            progress.heard_s = self._core.now_s
            self._replication.on_snapshot_reply(progress, reply)

    def on_read_index(self, member: str, read: ReadIndex) -> None:
        """Take a follower's read."""
        self.active_s = self._core.now_s
        self.reads.ask(member, read.number)

    def on_vote(self, candidate: str) -> None:
        """Take note that somebody stands for election, and so misses something.

        One that has left, and does not know it, would ask for ever.
        """
        core = self._core
        if core.is_quiescent:
            self.wake()
        if candidate not in core.membership.everyone and candidate not in self._leaving:
            self._begin_progress(candidate)
            self._leaving[candidate] = (core.membership_index, inf)

    def _round_of(self, member: str) -> int:
        return self.reads.round if member == self._core.own else self.progress[member].round

    # Commitment.

    def commit(self) -> None:
        """Commit what a majority has, the leader itself counting for what is durable here.

        By counting only entries of this term get committed, and all before with them (Raft §5.4.2,
        figure 8).
        """
        core = self._core
        reached = {member: each.match for member, each in self.progress.items()}
        reached[core.own] = core.outbox.durable_index
        index = core.membership.quorum_index(reached.__getitem__)
        if index <= core.commit or index < self.first_index:
            return
        self._count_committed(index)
        core.commit_to(index)
        self.reads.answer(self._round_of)
        self.changes.step(self._has_reached)
        self._follow_membership()

    def persisted(self) -> None:
        """Take note that more of the leader's own log may be durable."""
        core = self._core
        if core.outbox.durable_index > core.commit:
            self.commit()

    @property
    def known_index(self) -> int:
        """So far every other member is known to have the log."""
        matches = [progress.match for progress in self.progress.values()]
        return min(matches, default=self._core.log.last_index)

    def _count_committed(self, index: int) -> None:
        core = self._core
        count = index - core.commit
        for entry in core.log.between(core.commit + 1, index, 1 << 62, count):
            self.uncommitted_bytes -= len(entry.payload) + ENTRY_OVERHEAD_BYTES

    # The end of a turn.

    @property
    def has_news(self) -> bool:
        """Whether `flush` may have something to send."""
        core = self._core
        return (
            not self.reads.is_empty
            or self._replication.has_news(self.uncommitted_bytes)
            or core.own not in core.membership.all_voters
        )

    def flush(self) -> None:
        """Send what is new, and begin a round of heartbeats for new reads."""
        core = self._core
        self._replication.flush(self.uncommitted_bytes)
        # Some may have committed more than the leader knows: no read is to be older than that.
        current = max(core.commit, self._replication.announced_index)
        if core.commit >= self.first_index and self.reads.begin_round(current):
            for member in sorted(core.membership.all_voters - {core.own}):
                self._beat(member, self.progress[member])
            self.reads.answer(self._round_of)
        membership = core.membership
        if core.own not in membership.all_voters and core.membership_index <= core.commit:
            self._step_down()

    def _step_down(self) -> None:
        """Leave, as a member that does not vote any more (Raft §6), and have the best one stand."""
        core = self._core
        voters = core.membership.voters
        best = max(voters, key=lambda voter: self.progress[voter].match)
        core.outbox.send(best, TimeoutNow(core.term))
        core.become(Cause.REMOVED)

    def end(self, *, has_new_term: bool) -> None:
        """End the leadership; what waits for it fails."""
        self.reads.end()
        if self.transfer is not None:
            self.transfer.end(is_done=has_new_term)
        for progress in self.progress.values():
            progress.release()

    # Time.

    @property
    def wake_s(self) -> float:
        """When the next tick is needed; a sleeping group wakes for a preferred leader."""
        return self._leader_priority.due_s(self._hold_s) if self._core.is_quiescent else self._due_s

    @property
    def _hold_s(self) -> float:
        core = self._core
        return core.leader_changes.hold_s(core.settings.priority_hold_s, core.now_s)

    def tick(self) -> None:
        """Send heartbeats, and look whether a majority is there."""
        core = self._core
        if core.now_s < self.wake_s:
            return
        if core.is_quiescent:
            self.wake()
        self._due_s = core.now_s + core.heartbeat_s
        if not core.membership.is_quorum(self._heard()):
            core.become(Cause.NO_QUORUM)
            return
        for member, progress in self.progress.items():
            if self._is_beat_due(member, progress):
                self._beat(member, progress)
        self._let_go()
        self.changes.step(self._has_reached)
        self._follow_membership()
        self._look_for_transfer()

    def _heard(self) -> set[str]:
        """Return who was there in the last election time; the leader is (dissertation §6.2)."""
        core = self._core
        since_s = core.now_s - core.election_s
        heard = {member for member, each in self.progress.items() if each.heard_s > since_s}
        return heard | {core.own}

    def _is_beat_due(self, member: str, progress: Progress) -> bool:
        """Return whether a heartbeat is due; entries stand for one where they are answered."""
        core = self._core
        pause_s = core.heartbeat_s * 0.99
        if member not in core.membership.all_voters and member not in self._leaving:
            pause_s *= core.settings.learner_share
        due_s = core.now_s - pause_s
        quiet_s = min(progress.sent_s, progress.heard_s)
        return progress.beat_s <= due_s and quiet_s <= due_s

    def _beat(self, member: str, progress: Progress, *, is_quiescing: bool = False) -> None:
        core = self._core
        beat = Heartbeat(core.term, core.commit, self.reads.round, is_quiescing)
        core.outbox.send(member, beat)
        progress.beat_s = progress.sent_s = core.now_s

    # Members.

    def change(self, membership: Membership) -> None:
        """Begin to change the members."""
        if self._core.commit < self.first_index:
            raise Busy("the leader is too new")
        self.changes.begin(membership)
        self.changes.step(self._has_reached)
        self._follow_membership()

    def _follow_membership(self) -> None:
        """Have a progress for every member; one that leaves is still told so."""
        core = self._core
        if self._members is core.membership:
            return
        before, self._members = self._members, core.membership
        members = core.membership.everyone - {core.own}
        if before is not None:
            for voter in core.membership.all_voters - before.all_voters - {core.own}:
                if voter in self.progress:  # learners are heard more rarely than voters must be
                    self.progress[voter].heard_s = core.now_s
        for member in sorted(self._leaving.keys() & members):
            # It may have given everything up meanwhile: what it had does not count.
            del self._leaving[member]
            self.progress.pop(member).release()
        for member in sorted(members - self.progress.keys()):
            self._begin_progress(member)
        for member in self.progress.keys() - members:
            self._leaving.setdefault(member, (core.membership_index, inf))

    def _begin_progress(self, member: str) -> None:
        core = self._core
        next_index = core.log.last_index + 1
        self.progress[member] = Progress(next_index, self._share_of(member), core.now_s)

    def _let_go(self) -> None:
        """Drop those that have left and were told that it is committed, or cannot be told."""
        core = self._core
        for member, (index, until_s) in list(self._leaving.items()):
            progress = self.progress[member]
            if min(progress.match, progress.commit_sent) >= index or core.now_s >= until_s:
                del self._leaving[member]
                self.progress.pop(member).release()
            elif until_s == inf and index <= core.commit:
                self._leaving[member] = (index, core.now_s + 2 * core.election_s)

    def _is_caught_up(self, member: str) -> bool:
        """Return whether a member has all that is committed, and take what comes."""
        return self._has_reached(member, self._core.commit)

    def _has_reached(self, member: str, index: int) -> bool:
        """Return whether a member has everything up to an index, and take what comes."""
        progress = self.progress.get(member)
        if progress is None or progress.phase is not Phase.REPLICATE:
            return False
        core = self._core
        patience_s = core.election_s
        if member not in core.membership.all_voters:
            patience_s *= core.settings.learner_share
        return progress.match >= index and progress.heard_s > core.now_s - patience_s

    # Handing over.

    def hand_over(self, to: str | None) -> None:
        """Begin to hand over; to whoever is there and most up to date where nobody is named.

        Raises:
            ValueError: This is nobody that could lead.
        """
        core = self._core
        others = [voter for voter in core.membership.voters if voter != core.own]
        if to is None and others:
            to = self._likeliest(others)
        if to not in others:
            raise ValueError(f"{to} is not another voter of the group")
        assert to is not None
        self.active_s = core.now_s
        if self.transfer is not None:
            self.transfer.end(is_done=False)
        self.transfer = Transfer(core, to)
        self.transfer.look(self.progress[to].match)

    def _likeliest(self, voters: list[str]) -> str:
        """Return who is there and most up to date; whoever did not take it before comes last."""
        heard, barred = self._heard(), self._core.barred

        def merit(voter: str) -> tuple[bool, bool, float, int]:
            refused_s = self._refused_s.get(voter, -inf)
            return voter in heard, voter not in barred, -refused_s, self.progress[voter].match

        return max(voters, key=merit)

    def _look_for_transfer(self) -> None:
        if self.transfer is not None:
            if self.transfer.is_over:
                self._refused_s[self.transfer.to] = self._core.now_s
                self.transfer.end(is_done=False)
                self.transfer = None
            return
        candidate = self._leader_priority.look(self._is_caught_up, self._hold_s)
        if candidate is not None and not self.changes.is_under_way:
            self.hand_over(candidate)

    # Quiescence.

    def may_quiesce(self, absent: Container[str]) -> bool:
        """Return whether there is nothing to do and nobody to wait for but the absent."""
        core = self._core
        last = core.log.last_index
        is_idle = (
            core.now_s >= self.active_s + core.settings.quiesce_s
            and core.commit == core.applied == core.outbox.durable_index == last
            and self.reads.is_empty
            and self.transfer is None
            and not self._leaving
            and not self.changes.is_under_way
        )
        present = {member for member in core.membership.everyone if member not in absent}
        return is_idle and core.membership.is_quorum(present) and self._is_complete(last, absent)

    def _is_complete(self, last: int, absent: Container[str]) -> bool:
        return all(
            member in absent
            or (each.phase is Phase.REPLICATE and each.match == last == each.commit_sent)
            for member, each in self.progress.items()
        )

    def quiesce(self, absent: Container[str]) -> None:
        """Have the group sleep."""
        for member, progress in self.progress.items():
            if member not in absent:
                self._beat(member, progress, is_quiescing=True)
        self._missed = frozenset(member for member in self.progress if member in absent)
        self._core.is_quiescent = True

    def wake(self) -> None:
        """Begin to watch again: nobody has been asked for anything meanwhile.

        Who was missing as it fell asleep is so until it is heard.
        """
        core = self._core
        core.is_quiescent = False
        self.active_s = self._due_s = core.now_s
        for member, progress in self.progress.items():
            if member not in self._missed:
                progress.heard_s = core.now_s
            progress.beat_s = progress.sent_s = -inf
