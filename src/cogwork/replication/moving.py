"""How the members of a group become those that its stream's placement names.

Theory of operation. Whoever leads compares them, again and again, and asks the group for the
change; when it is made, and committed, the leader has that declared.

Who leads may lag behind what is declared, and must not undo a later move. So it asks, in its own
term, which move the others know of. It does something only where a majority of the present voters,
and one of those that are to be, know of this move, and nobody who answers knows of a later one. For
whoever brought a later move about had such majorities, too: any two have somebody in common. Where
the members are as they should be without a change, no entry shows that nobody has led since; so a
leader makes sure of that once more before it has a move declared as done.

A container that is new may have a replica still from before it was one of those that were to give
theirs up, and not have heard of that yet. What such a replica says must not count: it is gone as
soon as the container does hear. So nobody becomes a member who does not know of the move; a learner
that cannot be asked is left out for the time being, and holds up nobody.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from cogwork.plugin.engine.errors import ConsensusError
from cogwork.raft.membership import Membership
from cogwork.replication.calls import GetMove, MoveIs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogwork.plugin.engine.placement import Placement
    from cogwork.replication.calls import Refused
    from cogwork.replication.member import Member
    from cogwork.replication.service import RaftService

__all__ = ("Moving", "membership_of")

ASK_S = 0.25
"""How often a container is asked that has not said what is to be heard."""


def membership_of(placement: Placement) -> Membership:
    """Return what the members of the stream's group are to be."""
    return Membership(tuple(placement.voters), tuple(placement.learners))


class Moving:
    """What one replica does of it."""

    def __init__(self, member: Member, service: RaftService) -> None:
        """Initialize it; it does nothing yet.

        Args:
            member: The replica.
            service: The container's.
        """
        self._member = member
        self._service = service
        self._term = 0
        self._known: dict[str, int] = {}
        self._asked_s: dict[str, float] = {}
        self._confirming = self._confirmed = (0, 0)

    def go_on(self) -> bool:
        """Do what is to be done where this replica leads.

        Returns:
            Whether there is still something to see to.
        """
        member = self._member
        placement, group = member.stream.placement, member.group
        if member.is_closed or placement.is_settled:
            return False
        leadership = group.leadership
        if leadership is None or group.commit < leadership.first_index:
            return True
        self._ask_all(placement)
        if self._is_latest(placement):
            target = self._target(placement)
            is_under_way = leadership.changes.is_under_way
            if target is not None and (target != group.membership or is_under_way):
                with suppress(ConsensusError):
                    self._service.change(member.number, target)
            elif target == membership_of(placement):
                self._end(placement)
        return True

    # -- who knows

    def _ask_all(self, placement: Placement) -> None:
        """Ask those that are members, or are to be, and have not said that they know of it."""
        group = self._member.group
        if self._term != group.term:  # what was said before may be from before a later move
            self._term, self._known, self._asked_s = group.term, {}, {}
        self._known[group.own] = placement.move
        everyone = group.membership.everyone | membership_of(placement).everyone
        for container in sorted(self._late(everyone, placement)):
            self._ask(container)

    def _late(self, containers: Iterable[str], placement: Placement) -> set[str]:
        return {each for each in containers if self._known.get(each, 0) < placement.move}

    def _ask(self, container: str) -> None:
        now_s = self._service.now_s()
        if now_s - self._asked_s.get(container, -ASK_S) >= ASK_S:
            self._asked_s[container] = now_s
            call = GetMove(self._service.next_number(), self._member.stream.key)
            self._service.send_call(
                container, call, MoveIs, partial(self._take, self._term, container)
            )

    def _take(self, term: int, container: str, answer: MoveIs | Refused) -> None:
        if isinstance(answer, MoveIs) and term == self._term:
            self._known[container] = max(answer.move, self._known.get(container, 0))
            self.go_on()

    def _is_latest(self, placement: Placement) -> bool:
        """Return whether no later move can have been brought about."""
        if max(self._known.values()) > placement.move:
            return False
        know = {each for each, move in self._known.items() if move == placement.move}
        present = self._member.group.membership
        return present.is_quorum(know) and membership_of(placement).is_quorum(know)

    # -- what is done

    def _target(self, placement: Placement) -> Membership | None:
        """Return what the members can be by now; None where a voter is waited for."""
        wanted = membership_of(placement)
        late = self._late(wanted.everyone - self._member.group.membership.everyone, placement)
        if not late.isdisjoint(wanted.voters):
            return None
        return Membership(
            wanted.voters, tuple(each for each in wanted.learners if each not in late)
        )

    def _end(self, placement: Placement) -> None:
        """Have it declared that the move is done, once it is sure that this replica still leads."""
        group = self._member.group
        which = (group.term, placement.move)
        if self._confirmed == which:
            floor = (group.term, group.commit)
            self._service.cluster.moved(self._member.number, placement.move, floor)
        elif self._confirming != which:
            with suppress(ConsensusError):
                self._member.when_current(partial(self._confirm, which))
                self._confirming = which

    def _confirm(self, which: tuple[int, int]) -> None:
        self._confirmed = which
        self.go_on()
