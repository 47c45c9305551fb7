"""The credit of a service's links, all together: as much as it can begin, and no more.

Theory of operation. What comes for any server of the topic is offered credit for only as many
requests as the service can begin at once, whichever link they come by; what it cannot begin stays
with the container, which gives it to a server that can. What comes for this server alone, and for
all of them, may wait here as well, and it has to get through to a busy server, too: notes that
cancel calls are among it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.dataplane.client.request_inbox import RequestInbox

__all__ = ("Window",)

WAITING_MIN = 32
"""Requests, and notes on them, that a busy service takes in besides, however little it does."""


class Window:
    """What a service lets come, by link."""

    def __init__(self, load: Callable[[], int]) -> None:
        """Let nothing come.

        Args:
            load: Counts what is under work and what waits for that.
        """
        self.limit = 0
        self._load = load
        self._shared: list[RequestInbox] = []
        self._own: list[RequestInbox] = []

    def add(self, inbox: RequestInbox, *, is_shared: bool) -> None:
        """Give credit to a link from now on.

        Args:
            inbox: Where requests arrive.
            is_shared: Whether another server could begin them as well.
        """
        (self._shared if is_shared else self._own).append(inbox)

    def remove(self, inbox: RequestInbox) -> None:
        """Forget a link that has gone."""
        for inboxes in (self._shared, self._own):
            if inbox in inboxes:
                inboxes.remove(inbox)

    def update(self) -> None:
        """Offer what there is room for, and take back what there is no room for any more."""
        limit = self.limit
        room = limit - self._load()
        for inbox in self._shared:
            credit = inbox.credit
            if credit > room or 2 * credit <= room:
                inbox.offer(max(room, 0))
        room += max(limit, WAITING_MIN)
        for inbox in self._own:
            credit = inbox.credit
            if credit > room or 2 * credit <= room:
                inbox.offer(max(room, 0))
