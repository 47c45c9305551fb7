"""The known mistakes: those that people have made in Raft, and those next to our own code."""

from __future__ import annotations

from mutants.mutant import Mutant

__all__ = ("MUTANTS",)

RAFT = "cogwork.raft."
CORE = RAFT + "core:Core."
ELECTIONS = RAFT + "elections:Elections."
REPLICATION = RAFT + "replication:Replication."
FOLLOWING = RAFT + "following:Following."
OUTBOX = RAFT + "outbox:Outbox."
MEMBERSHIP = RAFT + "membership:"
LEADERSHIP = RAFT + "leadership:Leadership."
READS = RAFT + "reads:LeaderReads."
CHANGES = RAFT + "changes:Changes."
GROUP = RAFT + "group:Group."
RECEPTION = RAFT + "reception:Reception."

MUTANTS = (
    # Durability.
    Mutant(
        "a leader counts itself before its disk",
        LEADERSHIP + "commit",
        "reached[core.own] = core.outbox.durable_index",
        "reached[core.own] = core.log.last_index",
    ),
    Mutant(
        "a vote is left out of what is written",
        OUTBOX + "take_write",
        "HardState(term, vote, commit)",
        "HardState(term, None, commit)",
        scene="elections",
    ),
    Mutant(
        "a new term or vote waits until much is committed",
        OUTBOX + "take_write",
        "self._is_hard_new or commit >= self._hint",
        "commit >= self._hint",
        scene="elections",
    ),
    Mutant(
        "a hard state speaks of entries that may be torn off behind it",
        OUTBOX + "take_write",
        "commit = min(commit, self.durable_index)",
        "pass",
        scene="torn",
    ),
    Mutant(
        "entries that replace others are not written",
        OUTBOX + "cut",
        "self.written_index = min(self.written_index, last)",
        "pass",
    ),
    Mutant(
        "a follower acknowledges before its disk",
        FOLLOWING + "flush",
        "min(self._matched, core.outbox.durable_index)",
        "self._matched",
    ),
    Mutant(
        "a leader tells as durable what it has only handed to its disk",
        REPLICATION + "_durable_for",
        "return core.outbox.durable_index",
        "return core.log.last_index",
    ),
    Mutant(
        "a follower counts for its leader what an earlier one had durable",
        FOLLOWING + "hear",
        "self._leader_durable = 0",
        "pass",
        scene="storm",
    ),
    Mutant(
        "a follower counts entries of earlier terms",
        FOLLOWING + "count",
        "if suffices and core.log.term(index) == core.term:",
        "if suffices:",
        scene="figure_8",
    ),
    Mutant(
        "a vote is not persisted",
        CORE + "cast",
        "self.outbox.harden()",
        "if vote is None: self.outbox.harden()",
    ),
    Mutant(
        "a vote is given before it is durable",
        OUTBOX + "send",
        "if self._hard_number <= self._durable_number:",
        "if True:",
        scene="elections",
    ),
    Mutant(
        "a new term is not persisted",
        CORE + "enter_term",
        "self.cast(vote)",
        "self.vote = vote\n    if vote is not None: self.cast(vote)",
        scene="elections",
    ),
    Mutant(
        "a late write speaks for entries that were cut off meanwhile",
        OUTBOX + "cut",
        "(number, min(upto, last))",
        "(number, upto)",
        scene="disks",
    ),
    Mutant(
        "a failed synchronisation is ignored",
        "cogwork.sim.raft.replica:Replica._when_failed",
        'self.world.note(self.name, "cannot synchronise its disk")',
        "return self._when_durable(len(self._disk.records))",
    ),
    # Elections.
    Mutant(
        "a vote without a look at the log",
        ELECTIONS + "_is_fresh",
        "return (vote.last_term, vote.last_index) >= (last_term, last_index)",
        "return True",
    ),
    Mutant(
        "a vote for the longer log, whatever its terms",
        ELECTIONS + "_is_fresh",
        "return (vote.last_term, vote.last_index) >= (last_term, last_index)",
        "return vote.last_index >= last_index",
        scene="disks",
    ),
    Mutant(
        "who comes back votes as if it had never had a log",
        ELECTIONS + "_is_fresh",
        "max(core.floor, (log.last_term, log.last_index))",
        "log.last_term, log.last_index",
        scene="returns",
    ),
    Mutant(
        "who sleeps does not look after its leader when somebody misses it",
        ELECTIONS + "_grants",
        "self._wake()",
        "pass",
        scene="sleep",
    ),
    Mutant(
        "who sleeps sleeps on in a new term",
        CORE + "enter_term",
        "if self.is_quiescent:",
        "if False:",
        scene="sleep",
    ),
    Mutant(
        "who comes back stands for election before it has its log again",
        CORE + "is_voter",
        "if self.is_below_floor:",
        "if False:",
        scene="returns",
    ),
    Mutant(
        "who comes back takes part in terms that it has forgotten",
        CORE + "__init__",
        "if self.floor[0] > self.term:",
        "if False:",
        scene="outlast",
    ),
    Mutant(
        "one that is not known to beat for a group is not answered when it comes back",
        RAFT + "host:RaftHost._on_beat",
        "if self._groups and beat.stamp_us:",
        "if False:",
        scene="returns",
    ),
    Mutant(
        "what somebody had before it left counts when it is back",
        LEADERSHIP + "_follow_membership",
        "self.progress.pop(member).release()",
        "pass",
        scene="returns",
    ),
    Mutant(
        "two votes in one term",
        ELECTIONS + "_grants",
        "core.vote not in (None, candidate) or not self._is_fresh(vote)",
        "not self._is_fresh(vote)",
    ),
    Mutant(
        "a pre-vote begins a term",
        ELECTIONS + "_grants",
        "    if vote.is_pre:\n        return",
        "    if vote.is_pre:\n        if vote.term > core.term:\n"
        "            core.enter_term(vote.term)\n"
        "            core.become(Cause.HIGHER_TERM)\n            return self._is_fresh(vote)\n"
        "        return",
    ),
    Mutant(
        "every answer is a vote",
        RAFT + "votes:Votes.has_won",
        "if granted",
        "",
    ),
    Mutant(
        "a vote of an earlier term counts",
        ELECTIONS + "on_reply",
        "core.role is Role.CANDIDATE and reply.term == core.term",
        "core.role is Role.CANDIDATE",
        scene="storm",
    ),
    Mutant(
        "a leader stays one in a higher term",
        RECEPTION + "_admits",
        "core.become(Cause.HIGHER_TERM)",
        "core.leadership or core.become(Cause.HIGHER_TERM)",
    ),
    Mutant(
        "who hears a leader helps another one to become it",
        ELECTIONS + "_follows_another",
        "return core.is_quiescent or core.now_s < core.heard_s + core.election_s",
        "return False",
        scene="calm",
    ),
    Mutant(
        "a candidate does not wait for slow disks",
        ELECTIONS + "_hurry",
        "share = min(2.0 ** max(0, core.candidacies - HASTY_TRIES), longest)",
        "share = 1.0",
        scene="slow",
        more=((ELECTIONS + "on_hardened", "min(votes_s, longest_s)", "0.0"),),
    ),
    Mutant(
        "nobody hands over to a member of higher priority",
        LEADERSHIP + "_look_for_transfer",
        "if candidate is not None and",
        "if False and",
        scene="calm",
    ),
    Mutant(
        "a leader that hands over takes commands",
        LEADERSHIP + "propose",
        "if self.transfer is not None:",
        "if False:",
    ),
    # Replication.
    Mutant(
        "an entry of an old term is committed by counting",
        LEADERSHIP + "commit",
        "index <= core.commit or index < self.first_index",
        "index <= core.commit",
    ),
    Mutant(
        "a member is taken to have what it was sent",
        RAFT + "replication:Replication.on_reply",
        "progress.accepted(reply.match)",
        "progress.accepted(max(reply.match, progress.next - 1))",
    ),
    Mutant(
        "an answer of an old term counts",
        RECEPTION + "_admits",
        "if message.term < core.term:",
        "if message.term < core.term and type(message) is not AppendReply:",
        scene="late",
    ),
    Mutant(
        "the suffix is deleted without a conflict",
        FOLLOWING + "_take",
        "while new < len(entries) and",
        "while False and",
        scene="storm",
    ),
    Mutant(
        "the entry before is not compared",
        FOLLOWING + "on_append",
        "elif core.log.term(prev) != append.prev_term:",
        "elif core.log.term(prev) is None:",
    ),
    Mutant(
        "the entry before is looked for one place too early",
        FOLLOWING + "on_append",
        "elif core.log.term(prev) != append.prev_term:",
        "elif prev > core.log.last_index:",
    ),
    Mutant(
        "a follower commits what it has, not what the leader has",
        FOLLOWING + "_commit",
        "min(index, self._matched)",
        "min(index, core.log.last_index)",
    ),
    Mutant(
        "entries are applied before they are committed",
        CORE + "take_committed",
        "last = min(self.commit, self.outbox.durable_index)",
        "last = self.outbox.durable_index",
    ),
    # Snapshots.
    Mutant(
        "a stale snapshot is accepted",
        FOLLOWING + "_has",
        "return snapshot.index <= core.commit or core.log.term(snapshot.index) == snapshot.term",
        "return False",
    ),
    Mutant(
        "a snapshot does not bring its membership",
        CORE + "install",
        "self._follow([(snapshot.index, snapshot.membership)])",
        "self._follow([(snapshot.index, self.membership)])",
        scene="members",
    ),
    Mutant(
        "a snapshot loses who has appended what",
        "cogwork.plugin.engine.sequencer:Sequencer.from_bytes",
        "made.producers = ProducerTable.from_bytes(data[end:], producers_max)",
        "made.producers = ProducerTable(producers_max)",
    ),
    Mutant(
        "a repeated append is taken for a new one",
        "cogwork.plugin.engine.producers:ProducerTable.decide",
        "if batch.sequence == expected:",
        "if batch.sequence <= expected:",
    ),
    # Membership.
    Mutant(
        "a learner counts for the majority",
        MEMBERSHIP + "Membership.quorum_index",
        "_majority_index(self.voters, index_of)",
        "_majority_index((*self.voters, *self.learners), index_of)",
        scene="members",
    ),
    Mutant(
        "half of the voters are a majority",
        MEMBERSHIP + "_majority_index",
        "[(len(voters) - 1) // 2]",
        "[len(voters) // 2]",
    ),
    Mutant(
        "the old majority is not asked in a joint membership",
        MEMBERSHIP + "Membership.quorum_index",
        "if self.old_voters:",
        "if False:",
        scene="members",
        more=(
            (
                MEMBERSHIP + "Membership.is_quorum",
                "if self.old_voters and",
                "if False and",
            ),
        ),
    ),
    Mutant(
        "two changes of the members at once",
        CHANGES + "begin",
        'if self._is_unsettled:\n        raise Busy("the members are just being changed")',
        "if self._is_unsettled:\n"
        "        joint = Membership(target.voters, target.learners, core.membership.voters)\n"
        "        return self._write(joint)",
        scene="members",
    ),
    Mutant(
        "the next step of a change before the last one is committed",
        CHANGES + "step",
        "if core.membership_index > core.commit:",
        "if False:",
        scene="members",
    ),
    Mutant(
        "new voters need not catch up",
        CHANGES + "_aim",
        "elif not late and target.is_quorum(ready):",
        "elif True:",
        scene="members",
    ),
    Mutant(
        "a new voter is waited for, but not a majority of them",
        CHANGES + "_aim",
        "elif not late and target.is_quorum(ready):",
        "elif not late:",
        scene="members",
    ),
    Mutant(
        "a membership stays when its entry is cut off",
        CORE + "_cut",
        "if self.membership_index >= index:",
        "if False:",
        scene="members",
    ),
    Mutant(
        "a leader that leaves does not stand again when nobody else has the new members",
        CORE + "is_voter",
        "return self.own in self._memberships[-2][1].all_voters",
        "return False",
        scene="members",
    ),
    Mutant(
        "a voter waits as long as the learner that it was",
        CORE + "replace",
        "if self.membership is not before or (was_below and not self.is_below_floor):",
        "if False:",
        scene="members",
    ),
    # Reads.
    Mutant(
        "a read without a round of heartbeats",
        READS + "answer",
        "done = core.membership.quorum_index(round_of)",
        "done = self.round",
        scene="reads",
    ),
    Mutant(
        "a read before the leader knows what is committed",
        LEADERSHIP + "flush",
        "core.commit >= self.first_index and",
        "",
        scene="reads",
    ),
    Mutant(
        "a read is as current as what its leader has committed",
        LEADERSHIP + "flush",
        "max(core.commit, self._replication.announced_index)",
        "core.commit",
        scene="reads",
    ),
    Mutant(
        "a read before its index is applied",
        GROUP + "ready",
        " if at <= core.applied]\n"
        "        core.reads = [each for each in core.reads if each[0] > core.applied]",
        "]\n        core.reads = []",
        scene="reads",
    ),
)
