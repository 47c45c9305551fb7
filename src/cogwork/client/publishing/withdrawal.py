"""Takes back what a container holds of a publisher's messages, for want of anybody who takes them.

Theory of operation. A message that its container has taken on, through the anonymous relay say, may
wait there for a queue that is full. When its time is over here, it is asked back by a disposition
of the sender's, `released` and not settled. What nobody has had is released, which is its outcome;
of the rest nothing is heard, and it stays in doubt. What is asked in one turn of the loop is asked
in one go.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from cogwork.amqp.extensions import TAKES_BACK
from cogwork.amqp.outcomes import Released
from cogwork.amqp.performatives import Disposition, Role
from cogwork.client.errors import ClientError, Disconnected

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cogwork.client.context import LinkContext
    from cogwork.client.publishing.outcome import Outcome
    from cogwork.client.publishing.publisher import Publisher
    from cogwork.dataplane.client.dispatches import Batch, Post
    from cogwork.dataplane.client.outbox import Outbox

__all__ = ("Withdrawals", "ranges")

GRACE_S = 0.5
"""How long the container's answer is waited for: it comes within a round trip."""

RELEASED_CODE = 0x26


class Withdrawals:
    """Asks for messages of one publisher."""

    def __init__(self, client: LinkContext, publisher: Publisher, outbox: Outbox[Outcome]) -> None:
        """Initialize it; it has asked for nothing.

        Args:
            client: Its connection.
            publisher: Whose messages they are.
            outbox: Where they left.
        """
        self._client = client
        self._publisher = publisher
        self._outbox = outbox
        self._asked: list[Post | Batch[Outcome]] = []

    def ask(self, dispatch: Post | Batch[Outcome]) -> bool:
        """Ask for what of a post or a batch has no outcome; return whether there is an answer."""
        if not self._publisher.takes_back:
            return False
        try:
            if TAKES_BACK not in self._client.container.offered_capabilities:
                return False
        except Disconnected:
            return False
        if not self._asked:
            asyncio.get_running_loop().call_soon(self._send)
        self._asked.append(dispatch)
        return True

    async def has(self, dispatch: Post | Batch[Outcome]) -> bool:
        """Ask for it, and wait a moment; return whether it was given back."""
        if not self.ask(dispatch):
            return False
        with suppress(TimeoutError, ClientError):  # an outcome that whoever awaits it hears, too
            async with asyncio.timeout(GRACE_S):
                await dispatch
        return getattr(dispatch, "code", 0) == RELEASED_CODE

    def _send(self) -> None:
        asked, self._asked = self._asked, []
        link = self._publisher.link
        if link is None:
            return
        wanted = sorted({number for each in asked for number in self._outbox.ids_of(each)})
        for first, last in ranges(wanted):
            link.session.write(
                Disposition(role=Role.SENDER, first=first, last=last, state=Released())
            )
        self._client.flush()


def ranges(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last of each run in sorted numbers."""
    first = last = -1
    for number in numbers:
        if number == last + 1 and first >= 0:
            last = number
            continue
        if first >= 0:
            yield first, last
        first = last = number
    if first >= 0:
        yield first, last
