"""Publishers: links on which a client sends."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, Literal, Self, Unpack

from cogwork.amqp.performatives import Role
from cogwork.amqp.terminus import Source, Target
from cogwork.client.checks import demand_seconds
from cogwork.client.errors import InDoubt
from cogwork.client.fields import MessageFields, batch_of, message_of
from cogwork.client.links.link_end import LinkEnd
from cogwork.client.publishing.outcome import (
    NO_CONNECTION,
    NO_CREDIT,
    Outcome,
    OutcomeState,
    outcome_of,
    unsent,
)
from cogwork.client.publishing.withdrawal import Withdrawals
from cogwork.dataplane.client.outbox import Outbox
from cogwork.dataplane.transport.outgoing import OutgoingLink

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from cogwork.amqp.types import Symbol
    from cogwork.client.context import LinkContext
    from cogwork.client.errors import ClientError
    from cogwork.dataplane.client.dispatches import Batch, Post
    from cogwork.dataplane.link import Link

__all__ = ("OnDoubt", "Publisher")

QUEUES = ("queue/", "work/")
"""Prefixes of addresses that keep messages: what is sent there is durable, unless it says it is
not."""

OnDoubt = Literal["raise", "resend"]

LOOK_S = 0.2
LEAVE_TIMEOUT_S = 30.0
"""Leaving a publisher waits for outcomes as long as they come, and so long for another one."""


def names_queue(address: str) -> bool:
    """Return whether an address is one of those that are stored queues by default."""
    return address.removeprefix("/").startswith(QUEUES)


class Publisher(LinkEnd):
    """Sends to one address; made by `Client.publisher`.

    What is posted while the connection is down, or without credit, waits. Of what was sent when
    the connection broke nobody knows whether it arrived: awaiting it raises `InDoubt`, or it is
    sent again, as the publisher was opened.
    """

    role = Role.SENDER
    _capabilities: tuple[Symbol, ...] = ()
    _pending = "it was sent,"
    takes_back = True
    """Whether the container is asked for messages back whose time is over."""

    def __init__(
        self,
        client: LinkContext,
        address: str | None,
        on_doubt: OnDoubt = "raise",
        outbox: Outbox[Outcome] | None = None,
    ) -> None:
        """Is not attached yet.

        Args:
            client: Keeps it attached.
            address: Where it sends to; None where each message says it (the anonymous relay).
            on_doubt: What happens to messages in doubt: `raise` or `resend`.
            outbox: Sends them; None for a new one. It stands in the client until it is closed.
        """
        super().__init__(client, "" if address is None else address)
        self._target = address
        if outbox is None:
            explain = partial(outcome_of, self.address)
            outbox = Outbox(client.flusher, client.create_future, explain, on_doubt == "resend")
            if on_doubt == "resend":
                outbox.resend_later = asyncio.get_running_loop().call_later
            outbox.is_durable = address is not None and names_queue(address)
        self._outbox = outbox
        self._withdrawals = Withdrawals(client, self, outbox)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                await self._finish()
        finally:
            await self.shut()

    async def _finish(self) -> None:
        """Wait for what was posted as long as the container takes or answers any of it.

        Raises:
            ClientError: The first failure, or what is left had no outcome.
        """
        if not self.backlog and not self.unsettled:
            await self.flush()
            return
        flushing = asyncio.ensure_future(self.flush())
        left, moved_s = -1, time.monotonic()
        try:
            while not (await asyncio.wait({flushing}, timeout=LOOK_S))[0]:
                now_s, before = time.monotonic(), left
                left = self.backlog + self.unsettled
                moved_s = moved_s if left == before else now_s
                if now_s - moved_s > LEAVE_TIMEOUT_S:
                    raise self._stuck(LEAVE_TIMEOUT_S)
            flushing.result()
        finally:
            flushing.cancel()

    def _stuck(self, timeout_s: float) -> ClientError:
        """Return the exception that says what does not move on."""
        if self.backlog:
            return unsent(self.address, self._wanting, timeout_s)
        return InDoubt(
            self.address, None, f"it was sent, and has no outcome within {timeout_s:g} s"
        )

    # -- sending

    def post(self, body: object, *, settled: bool = False, **fields: Unpack[MessageFields]) -> Post:
        """Send a message and go on; awaiting what is returned waits for its outcome.

        Args:
            body: A `Message`, or the body of one.
            settled: Whether to send without asking for an outcome.
            **fields: The message's, as in `Message`: subject, properties, durable, ttl_s, ...

        Raises:
            BacklogFull: Too many wait for credit; `await ready()` now and then.
            MessageTooLarge: The container would not take it.
            EncodeError: A value has no AMQP encoding.
            NotOpened: Nobody has opened the publisher: it would never be sent.
        """
        if self._outbox.link is None:
            self.demand_open()
        return self._outbox.post(message_of(body, self.post, **fields) if fields else body, settled)

    async def send(
        self,
        body: object,
        *,
        settled: bool = False,
        timeout_s: float | None = None,
        **fields: Unpack[MessageFields],
    ) -> None:
        """Send a message and wait until it is accepted; a settled one until it is written.

        Who leaves it, by a time-out say, while it still waits for credit or for a connection, takes
        it back: it is not sent any more.

        Args:
            body: A `Message`, or the body of one.
            settled: Whether to send without asking for an outcome.
            timeout_s: How long it may take, in seconds; None for as long as it takes.
            **fields: The message's, as in `Message`.

        Raises:
            Rejected: It is invalid there.
            Released: Nobody took it, or its time was over before it was sent.
            InDoubt: The connection broke, or its time was over, before the outcome was known.
        """
        demand_seconds("timeout_s", timeout_s)
        message = message_of(body, self.send, **fields) if fields else body
        post = self.post(message, settled=settled)
        await (self.outcome(post) if timeout_s is None else self.outcome_within(post, timeout_s))

    async def outcome(self, post: Post) -> None:
        """Wait for a post's outcome; who leaves before it was sent has it taken back.

        Args:
            post: Nobody else's.

        Raises:
            ClientError: It is not accepted, or that cannot be known.
        """
        if post.is_done:
            if (error := post.error()) is not None:
                raise error
            return
        try:
            await post
        except asyncio.CancelledError:
            self._give_up(post)
            raise

    def _give_up(self, post: Post) -> None:
        """Take a post back: also from the container, as far as nobody has had it there."""
        if not post.withdraw() and not post.is_done:
            self._withdrawals.ask(post)

    async def outcome_within(self, post: Post, timeout_s: float, spent_s: float = 0.0) -> None:
        """Wait for a post's outcome; one that was not sent in time is taken back.

        Args:
            post: Nobody else's.
            timeout_s: How long it may take.
            spent_s: How much of that is over.

        Raises:
            ClientError: It is not accepted, or was not sent, or has no outcome.
        """
        try:
            async with asyncio.timeout(timeout_s - spent_s):
                await post
        except asyncio.CancelledError:
            self._give_up(post)
            raise
        except TimeoutError:
            if post.withdraw():
                if post.was_sent:
                    raise self._unanswered(post, timeout_s) from None
                raise unsent(self.address, self._wanting, timeout_s) from None
            if not post.is_done and await self._withdrawals.has(post):
                raise unsent(self.address, NO_CREDIT, timeout_s) from None
            if not post.is_done:
                post.leave()
                raise self._unanswered(post, timeout_s) from None
            await post  # it came just now

    @property
    def _wanting(self) -> str:
        return NO_CONNECTION if self.link is None else NO_CREDIT

    def _unanswered(self, post: Post, timeout_s: float) -> InDoubt:
        """Return the exception for a message that cannot be taken back any more."""
        how = (
            "it waits for credit in a stream's line, where it stays,"
            if post.queued
            else self._pending
        )
        return InDoubt(self.address, None, f"{how} and has no outcome within {timeout_s:g} s")

    async def send_batch(
        self,
        bodies: Iterable[object],
        *,
        settled: bool = False,
        timeout_s: float | None = None,
    ) -> list[Outcome]:
        """Send messages and wait for all of their outcomes.

        Who leaves it takes back those that still wait for credit or for a connection.

        Args:
            bodies: Messages, or bodies.
            settled: Whether to send without asking for outcomes; they count as accepted then.
            timeout_s: How long it may take, in seconds; None for as long as it takes.

        Returns:
            Their outcomes in the same order. Nothing is raised for a single message: when the time
            is over, one that was not sent is `released`, and one without an outcome `in-doubt`.

        Raises:
            TypeError: It is a single body: `[body]` is a batch of it.
        """
        demand_seconds("timeout_s", timeout_s)
        batch = self.post_batch(bodies, settled=settled)
        try:
            async with asyncio.timeout(timeout_s):
                return await batch
        except asyncio.CancelledError:
            self._withdrawals.ask(batch)
            self._outcomes_by(batch, 0.0)
            raise
        except TimeoutError:
            await self._withdrawals.has(batch)
            return self._outcomes_by(batch, timeout_s or 0.0)

    def _outcomes_by(self, batch: Batch[Outcome], timeout_s: float) -> list[Outcome]:
        """Take back what of a batch was not sent in time; return the outcomes."""
        late = unsent(self.address, self._wanting, timeout_s)
        why = f"{self._pending} and has no outcome within {timeout_s:g} s"
        return batch.leave(
            Outcome(self.address, OutcomeState.RELEASED, late.condition, late.description),
            Outcome(self.address, OutcomeState.IN_DOUBT, description=why),
        )

    def post_batch(self, bodies: Iterable[object], *, settled: bool = False) -> Batch[Outcome]:
        """Send messages and go on; awaiting what is returned waits for their outcomes.

        Args:
            bodies: Messages, or bodies.
            settled: Whether to send without asking for outcomes; they count as accepted then.

        Raises:
            TypeError: It is a single body: `[body]` is a batch of it.
            NotOpened: Nobody has opened the publisher.
        """
        if self._outbox.link is None:
            self.demand_open()
        return self._outbox.post_all(batch_of(bodies), settled)

    def post_encoded(self, messages: list[bytes]) -> Batch[Outcome]:
        """Send messages that are encoded already; see `post_batch`.

        Args:
            messages: Whole messages, as AMQP 1.0 §3.2 has them.
        """
        if self._outbox.link is None:
            self.demand_open()
        return self._outbox.post_encoded(messages)

    def withdraw(self, post: Post) -> bool:
        """Take back a message that waits for credit; return whether it did."""
        return post.withdraw()

    async def ready(self) -> None:
        """Wait, where much was posted, until the container has taken most of it."""
        if not self._outbox.has_room:
            await self._outbox.ready()

    async def flush(self) -> None:
        """Wait until everything that was posted has its outcome, or has left where it has none.

        Raises:
            ClientError: The first failure of a post that nobody awaited.
        """
        self.demand_open()
        await self._outbox.flushed()
        await self._through()

    @property
    def backlog(self) -> int:
        """Counts messages that wait for credit."""
        return self._outbox.backlog_count

    @property
    def unsettled(self) -> int:
        """Counts messages that were sent and have no outcome yet."""
        return self._outbox.unsettled_count

    @property
    def size_bytes_max(self) -> int:
        """How large a message may be, in bytes; 0 for any size, and until that is known."""
        return self._outbox.size_bytes_max

    # -- the link

    def attach(self, link: Link) -> None:
        """Attach to the address."""
        target = Target(
            address=self.redirected_address or self._target, capabilities=self._capabilities
        )
        link.attach(source=Source(), target=target)
        end = OutgoingLink(link.session.end, link.handle)
        link.carry(end)
        self._outbox.attach(end)

    def attached(self, link: Link) -> None:
        """Learn how large messages may be; credit will come by itself."""
        assert link.remote is not None
        self._outbox.size_bytes_max = link.remote.max_message_size or 0

    def stopping(self) -> None:
        """What was not sent goes back to the backlog."""
        self._outbox.stop()

    def detached(self) -> None:
        """Wait for the next link."""
        self._outbox.detach()

    def close_with(self, error: Exception) -> None:
        """Fail what has no outcome."""
        self._outbox.close(error)
