"""What a client's links have in common: they outlive their connection.

Theory of operation. A link end belongs to the mesh. Each connection attaches it anew, under the
same name, until it is closed, or the container refuses it or detaches it: that is final, and the
application hears of it. Losing the connection is not.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING

from cogwork.amqp.errors import AmqpError, Condition
from cogwork.amqp.extensions import MESSAGES_MISSED
from cogwork.client.checks import checked_address
from cogwork.client.errors import (
    ConnectError,
    Disconnected,
    NotOpened,
    detachment,
    refusal,
)
from cogwork.dataplane.transport.outgoing import OutgoingLink

if TYPE_CHECKING:
    from cogwork.amqp.performatives import Role
    from cogwork.client.connection.url import Endpoint
    from cogwork.client.context import LinkContext
    from cogwork.dataplane.link import Link
    from cogwork.dataplane.transport.session_end import Session

__all__ = ("LEFT_PAUSE_S", "LinkEnd", "has_more")


DETACH_TIMEOUT_S = 5.0
"""How long a container may take to answer a detach; what comes later is of no interest."""

LEFT_PAUSE_S = 0.005
"""How often it is looked whether the rest of a large message has left: nobody else tells of that
where it was sent settled."""

log = logging.getLogger("cogwork.client")


class LinkEnd(ABC):
    """One end of a link, from connection to connection.

    Attributes:
        client: Keeps it attached.
        address: What it is attached to, as the application named it.
        name: The link's name; stays the same.
        link: What is attached at present; None while nothing is.
        redirected_address: What it is attached to instead of its address where a redirect of the
            link led; None elsewhere.
        outlives_gaps: Whether it is attached again where the container has ended it because of
            messages that it has missed; else the application hears of that.
    """

    role: Role
    client: LinkContext

    def __init__(self, client: LinkContext, address: str) -> None:
        """Is not attached yet.

        Args:
            client: Keeps it attached.
            address: What it is to be attached to; empty where the container gives one.

        Raises:
            ValueError: The address is no text.
        """
        self.client = client
        self.address = checked_address(address)
        self.name = client.next_link_name(address)
        self.link: Link | None = None
        self.redirected_address: str | None = None
        self.outlives_gaps = False
        self._addresses: dict[Endpoint, str] = {}
        self._attached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._detached: asyncio.Future[None] | None = None
        self._failure: Exception | None = None
        self._is_refused = False

    # -- what the client and the application ask for

    async def open(self) -> None:
        """Have the client attach it, and wait until the container has agreed.

        Raises:
            LinkRefused: It does not.
            Disconnected: The client was closed.
        """
        try:
            self.client.register(self)
            await self._attached
        except BaseException:
            self._leave()
            self.abandon()
            raise

    def demand_open(self) -> None:
        """Keep somebody from waiting for good.

        Raises:
            NotOpened: Nobody has opened it.
        """
        if not self._attached.done():
            where = self.address or "the link"
            raise NotOpened(f"{where}: not opened yet: `async with` does it, or `with`")

    async def shut(self) -> None:
        """Detach for good, behind what has begun to leave, and wait for the answer."""
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(DETACH_TIMEOUT_S):
                    await self._through()
            if self._leave():
                self._detached = asyncio.get_running_loop().create_future()
                await asyncio.wait([self._detached], timeout=DETACH_TIMEOUT_S)
        finally:
            self.abandon()

    async def _through(self) -> None:
        """Wait until no message has begun to leave without being through."""
        while self.link is not None and has_more(self.link):
            await asyncio.sleep(LEFT_PAUSE_S)

    def _leave(self) -> bool:
        """Detach if there is a link to detach; return whether an answer will come."""
        self.client.forget(self)
        link = self.link
        if link is None or not link.is_attached or link.session.is_over:
            return False
        self.client.core.flush()
        link.detach()
        self.client.flush()
        return True

    @property
    def failure(self) -> Exception | None:
        """Why it ended for good; None while it did not."""
        return self._failure

    def fail(self, error: Exception) -> None:
        """End for good because of `error`."""
        if self._failure is not None:
            return
        self._failure = error
        if not self._attached.done():
            self._attached.set_exception(error)
        self._settle_detach()
        self.close_with(error)

    def abandon(self) -> None:
        """End for good without a word to anyone."""
        self.fail(Disconnected(f"{self.address or 'the link'}: closed"))
        if self._attached.done() and not self._attached.cancelled():
            self._attached.exception()  # whoever wanted to know has asked

    # -- what a connection does with it

    def move_to(self, endpoint: Endpoint) -> None:
        """Is about to be attached at a container."""
        self.redirected_address = self._addresses.get(endpoint)

    @abstractmethod
    def attach(self, link: Link) -> None:
        """Send the attach on a fresh link, with a compiled half to carry it."""

    @abstractmethod
    def attached(self, link: Link) -> None:
        """The container has agreed."""

    def stopping(self) -> None:  # noqa: B027  # only publishers care
        """The compiled half is about to end."""

    @abstractmethod
    def detached(self) -> None:
        """The compiled half has ended."""

    @abstractmethod
    def close_with(self, error: Exception) -> None:
        """Tell whoever waits that it is over."""

    def drained(self) -> None:  # noqa: B027  # only receivers care
        """The sender has no more of what a drain asked for."""

    def settled_by_peer(  # noqa: B027  # only consumers care
        self, session: Session, first: int, last: int, state: bytes
    ) -> None:
        """The sender on a session settled deliveries that it sent."""

    # -- what the host of a connection reports

    def on_attached(self, link: Link) -> None:
        """The container answered the attach; one without a terminus is a refusal (§2.6.3)."""
        assert link.remote is not None
        mine = link.remote.target if link.role.value is False else link.remote.source
        if mine is None:
            self._is_refused = True
            return
        self._is_refused = False
        self.attached(link)
        if not self._attached.done():
            self._attached.set_result(None)

    def not_attached(self, error: AmqpError) -> None:
        """It cannot be attached to this container: that is final, as a refusal is."""
        self.link = None
        self.client.forget(self)
        self.fail(refusal(self.address, error))

    def on_detached(self, error: AmqpError | None, *, is_lost: bool) -> None:
        """The link has gone: refused, ended by either side, or lost with its connection.

        A link that is redirected takes the connection, and all other links, with it (§2.8.18).
        """
        self.link = None
        self.detached()
        if is_lost or self._detached is not None:
            self._settle_detach()
            return
        if error is not None and error.condition == Condition.LINK_REDIRECT:
            try:
                self._addresses = self.client.follow(error)
            except ConnectError as problem:
                error = AmqpError(condition=error.condition, description=str(problem))
            else:
                return
        if self._goes_on_after(error):
            return
        self.client.forget(self)
        if self._is_refused or not self._attached.done():
            self.fail(refusal(self.address, error))
        else:
            self.fail(detachment(self.address, error))

    def _goes_on_after(self, error: AmqpError | None) -> bool:
        """Attach again where that is all there is to be done; return whether it was."""
        is_gap = error is not None and error.condition == MESSAGES_MISSED
        if not is_gap or not self.outlives_gaps or self._failure is not None:
            return False
        log.warning("%s: the subscription missed messages and attaches again", self.address)
        self.client.register(self)
        return True

    def _settle_detach(self) -> None:
        if self._detached is not None and not self._detached.done():
            self._detached.set_result(None)


def has_more(link: Link) -> bool:
    """Return whether a message of a link has begun to leave, and is not through."""
    return isinstance(link.end, OutgoingLink) and link.end.queue_count > 0
