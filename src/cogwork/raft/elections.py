"""Elections: who asks for votes, and who gives them (Raft §5.2, §5.4.1; dissertation §9.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.raft.leadership import Leadership
from cogwork.raft.messages import Vote, VoteReply
from cogwork.raft.roles import Cause, Role
from cogwork.raft.votes import Votes

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.raft.budget import Share
    from cogwork.raft.core import Core

__all__ = ("Elections",)

HASTE_SHARE = 0.6
"""By so much of the election time a candidate waits less until it tries again: nobody leads, the
answers take a few round trips, and only two candidates must not meet again and again."""

HASTY_TRIES = 2
"""With each candidacy more it waits twice as long: a term has to get to two disks, one after the
other, before a vote counts, and these may be slow."""

DISKS_SHARE = 2.0
"""So many times as long as its own disk has taken a candidate waits for votes, at least."""


class Elections:
    """The elections of one member, as candidate and as voter."""

    __slots__ = ("_core", "_is_transfer", "_share_of", "_votes")

    def __init__(self, core: Core, share_of: Callable[[str], Share]) -> None:
        self._core = core
        self._share_of = share_of
        self._votes = Votes()

    # As candidate.

    def tick(self) -> None:
        """Ask for an election where no leader is heard of."""
        core = self._core
        if core.now_s < core.heard_s + core.timeout_s or core.is_quiescent:
            return
        if core.leader is None and not core.outbox.is_hard_durable:
            core.heard_s = core.now_s  # what it asks, or answers, has not even been sent
            return
        core.set_leader(None)
        core.restart_timer()
        if core.is_voter:
            self._hurry()
            core.become(Cause.TIMEOUT)
            self._votes = Votes()
            self._votes.note(core.own, is_granted=True)
            self._ask(core.term + 1, is_pre=True)
            self._count()
        elif core.role is not Role.FOLLOWER:
            core.become(Cause.REMOVED)

    def campaign(self, *, is_transfer: bool = False) -> None:
        """Stand for election in a new term; the leader may have asked for it."""
        core = self._core
        core.enter_term(core.term + 1, vote=core.own)
        core.become(Cause.TIMEOUT_NOW if is_transfer else Cause.WON)
        core.candidacies += 1
        core.restart_timer()
        self._hurry()
        self._votes = Votes()
        self._ask(core.term, is_transfer=is_transfer)

    def _hurry(self) -> None:
        """Have a candidate wait less than a follower, but not again and again."""
        core = self._core
        longest = core.settings.election_max_s / core.settings.election_s
        share = min(2.0 ** max(0, core.candidacies - HASTY_TRIES), longest)
        core.timeout_s = share * (core.timeout_s - HASTE_SHARE * core.election_s)

    def on_hardened(self) -> None:
        """Take note that term and vote are durable: a candidate's own vote counts.

        What it asks, and what a voter answers, is sent only now, and as long as its own disk has
        taken another one's may take for the vote.
        """
        core = self._core
        if core.leader is None:
            core.heard_s = core.now_s
        if core.role is Role.CANDIDATE:
            longest_s = core.settings.election_max_s
            votes_s = DISKS_SHARE * (core.now_s - core.hardening_s)
            core.timeout_s = max(core.timeout_s, min(votes_s, longest_s))
            self._votes.note(core.own, is_granted=True)
            self._count()

    def on_reply(self, voter: str, reply: VoteReply) -> None:
        """Take an answer; one of an earlier election counts nothing."""
        core = self._core
        if reply.term > core.term and not (reply.is_pre and reply.is_granted):
            core.enter_term(reply.term)
            core.become(Cause.HIGHER_TERM)
            return
        if reply.is_pre:
            is_current = core.role is Role.PRE_CANDIDATE
            is_current &= not reply.is_granted or reply.term == core.term + 1
        else:
            is_current = core.role is Role.CANDIDATE and reply.term == core.term
        if is_current:
            self._votes.note(voter, is_granted=reply.is_granted)
            self._count()

    def _ask(self, term: int, *, is_pre: bool = False, is_transfer: bool = False) -> None:
        core = self._core
        vote = Vote(term, core.log.last_index, core.log.last_term, is_pre, is_transfer)
        for voter in sorted(core.membership.all_voters - {core.own}):
            core.outbox.send(voter, vote)

    def _count(self) -> None:
        core = self._core
        if self._votes.has_won(core.membership):
            if core.role is Role.PRE_CANDIDATE:
                self.campaign()
            else:
                core.become(Cause.WON)
                core.leadership = Leadership(core, self._share_of)
        elif self._votes.has_lost(core.membership):
            core.become(Cause.LOST)

    # As voter.

    def on_vote(self, candidate: str, vote: Vote) -> None:
        """Answer a candidate."""
        core = self._core
        is_granted = self._grants(candidate, vote)
        if is_granted is None:
            return
        term = vote.term if vote.is_pre and is_granted else core.term
        core.outbox.send(candidate, VoteReply(term, is_granted, vote.is_pre))

    def _grants(self, candidate: str, vote: Vote) -> bool | None:
        """Decide about a vote; None for no answer at all.

        Who hears a leader disturbs it for nobody (dissertation §4.2.3), but for whom the leader
        itself has asked to stand.
        """
        core = self._core
        if not vote.is_transfer and self._follows_another(candidate):
            self._wake()
            return False if vote.is_pre else None
        if vote.is_pre:
            return vote.term > core.term and self._is_fresh(vote)
        if vote.term < core.term:
            return False
        if vote.term > core.term:
            core.enter_term(vote.term)
            core.become(Cause.HIGHER_TERM)
        if core.vote not in (None, candidate) or not self._is_fresh(vote):
            return False
        if core.vote is None:
            core.cast(candidate)
        core.restart_timer()
        return True

    def _wake(self) -> None:
        """Look after the leader again, as somebody misses it: it may lead no more, and live."""
        core = self._core
        if core.is_quiescent and core.leadership is None:
            core.is_quiescent = False
            core.restart_timer()

    def _follows_another(self, candidate: str) -> bool:
        core = self._core
        if core.role is Role.LEADER:
            return True
        if core.leader is None or core.leader == candidate:
            return False
        return core.is_quiescent or core.now_s < core.heard_s + core.election_s

    def _is_fresh(self, vote: Vote) -> bool:
        """Return whether the candidate's log is at least as up to date as this one (Raft §5.4.1).

        A member that has given its log up counts it up to the floor.
        """
        core, log = self._core, self._core.log
        last_term, last_index = max(core.floor, (log.last_term, log.last_index))
        return (vote.last_term, vote.last_index) >= (last_term, last_index)
