"""How the members of a group become those that its stream's placement names.

Theory of operation. Whoever leads compares them, again and again, and asks the group for the
change; when it is made, and committed, the leader has that declared.

A container that is new may have a replica still from before it was one of those that were to give
theirs up, and not have heard of that yet. What such a replica says must not count: it is gone as
soon as the container does hear. So each that is new is asked first which move it knows of.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from cogwork.consensus.errors import ConsensusError
from cogwork.consensus.replicated.calls import GetMove, MoveIs

if TYPE_CHECKING:
    from cogwork.consensus.replicated.calls import Answer
    from cogwork.consensus.replicated.member import Member
    from cogwork.consensus.replicated.placement import Placement
    from cogwork.consensus.replicated.service import RaftService

__all__ = ("Moving",)

ASK_S = 0.25
"""How often a container is asked that has not said what is to be heard."""


class Moving:
    """What one replica does of it."""

    def __init__(self, member: Member, service: RaftService) -> None:
        """Does nothing yet.

        Args:
            member: The replica.
            service: The container's.
        """
        self._member = member
        self._service = service
        self._known: dict[str, int] = {}
        self._asked_s: dict[str, float] = {}

    def go_on(self) -> bool:
        """Does what is to be done where this replica leads.

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
        if group.membership == placement.membership and not leadership.changes.is_under_way:
            floor = (group.term, group.commit)
            self._service.cluster.moved(member.number, placement.move, floor)
        elif self._are_ready(placement):
            with suppress(ConsensusError):
                self._service.change(member.number, placement.membership)
        return True

    def _are_ready(self, placement: Placement) -> bool:
        """Tells whether all that are new know of the move; asks those that have not said so."""
        group = self._member.group
        new = placement.membership.everyone - group.membership.everyone
        late = sorted(each for each in new if self._known.get(each, 0) < placement.move)
        for container in late:
            self._ask(container)
        return not late

    def _ask(self, container: str) -> None:
        now_s = self._service.now_s()
        if now_s - self._asked_s.get(container, -ASK_S) >= ASK_S:
            self._asked_s[container] = now_s
            call = GetMove(self._service.next_number(), self._member.name)
            self._service.send_call(container, call, lambda answer: self._take(container, answer))

    def _take(self, container: str, answer: Answer) -> None:
        if isinstance(answer, MoveIs):
            self._known[container] = max(answer.move, self._known.get(container, 0))
            self.go_on()
