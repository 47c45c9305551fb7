"""One message on its way, from the thread that sends it to whoever takes it, or to an error.

Theory of operation. A `Sending` lives on the loop's thread; the thread that made it sleeps in
`wait`. It is sent again only where nobody can have had it: it still waited for credit, it was
released, or its link could not be attached. Where that is in doubt it fails at once, as sending it
again might make two of it. Its time is over when the sleeper says so, on the loop's thread: so a
message is either taken back before it was sent, or it was sent, and the error says which.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from cogwork.amqp.errors import CogworkError
from cogwork.client.errors import (
    Disconnected,
    InDoubt,
    LinkDetached,
    LinkRefused,
    NotFound,
    Rejected,
    Released,
)
from cogwork.oslo.errors import CallInterrupted, DeliveryInDoubt, NoReply, NotDelivered
from cogwork.oslo.waiter import new_waiter

if TYPE_CHECKING:
    import asyncio

    from cogwork.client.publishing.publisher import Publisher
    from cogwork.dataplane.client.dispatches import Post
    from cogwork.dataplane.message.messages import Message
    from cogwork.oslo.connection import Connection
    from cogwork.oslo.plan import Plan
    from cogwork.oslo.replies import Replies

__all__ = ("Sending",)

PAUSE_FIRST_S = 0.05
PAUSE_MAX_S = 2.0
"""Between attempts to send what was released: a server may just be coming up."""

UNROUTABLE_AFTER_S = 1.0
"""Without a relay, only missing credit tells that nobody is there; it comes within a round trip."""


class Sending:
    """A message on its way.

    Attributes:
        plan: What is wanted for it.
        message: What is sent; a call's gets its `reply_to` here.
        waits: Whether a thread sleeps until it is done.
        reply: What came for a call.
    """

    def __init__(
        self, connection: Connection, plan: Plan, message: Message, *, waits: bool
    ) -> None:
        """Is not begun yet.

        Args:
            connection: What it goes by.
            plan: What is wanted for it.
            message: What is sent.
            waits: Whether the thread that makes it will sleep in `wait`.
        """
        self.plan = plan
        self.message = message
        self.waits = waits
        self.reply: Message | None = None
        self._connection = connection
        self._waiter = new_waiter() if waits else None
        self._began_s = time.monotonic()
        self._deadline_s = self._began_s + plan.timeout_s if plan.timeout_s is not None else None
        self._alive_until_s = (
            self._began_s + plan.heartbeat_s if plan.heartbeat_s is not None else None
        )
        self._retries_left = -1 if plan.retry is None else plan.retry
        self._pause_s = PAUSE_FIRST_S
        self._address = ""
        self._post: Post | None = None
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._error: Exception | None = None
        self._last_error: Exception | None = None
        self._is_sent = False
        self._is_done = False

    # -- the thread that sends

    def wait(self) -> None:
        """Sleep until it is done.

        Raises:
            MessagingException: It was not sent, or no reply came.
            Undeliverable: Nobody is there, and that was to be told at once.
        """
        waiter = self._waiter
        assert waiter is not None
        thread = self._connection.thread
        try:
            while not waiter.wait(self._left_s()):
                left_s = self._left_s()
                if left_s is not None and left_s <= 0:
                    thread.call(self.expire)
                    waiter.wait(None)
                    break
        except BaseException:
            thread.call(self.abandon)
            raise
        finally:
            waiter.close()
        if self._error is not None:
            raise self._error

    def _left_s(self) -> float | None:
        limits_s = [each for each in (self._deadline_s, self._alive_until_s) if each is not None]
        return min(limits_s) - time.monotonic() if limits_s else None

    # -- the loop's thread: going

    def begin(self) -> None:
        """Send it, or have it wait for what it needs."""
        self._connection.sendings.add(self)
        if not self.waits and self._deadline_s is not None:
            left_s = self._deadline_s - time.monotonic()
            self._timer = self._connection.thread.loop.call_later(left_s, self.expire)
        self._go()

    def _go(self) -> None:
        if self._is_done:
            return
        connection = self._connection
        replies = connection.replies if self.plan.wants_reply else None
        if connection.is_up and (replies is not None or not self.plan.wants_reply):
            publisher = connection.find_sender(self._find_address())
            if publisher is not None:
                self._send(publisher, replies)
                return
        self._task = connection.thread.spawn(self._prepare())

    def _find_address(self) -> str:
        """Return what the link is to be attached to; the message names its address itself."""
        connection, plan = self._connection, self.plan
        self._address = plan.address_by(connection.addresser)
        self.message.to = self._address
        if plan.is_reply:
            return connection.reply_sender_address(self._address)
        if plan.is_mandatory and connection.has_relay:
            return connection.reply_sender_address(self._address)
        return self._address

    async def _prepare(self) -> None:
        """Attach what is not attached yet, then send."""
        connection = self._connection
        try:
            await connection.connected()
            await connection.identified()
            replies = await connection.reply_source() if self.plan.wants_reply else None
            publisher = await connection.sender(self._find_address())
        except CogworkError as error:
            self._retry(error)
        else:
            if not self._is_done:
                self._send(publisher, replies)

    def _send(self, publisher: Publisher, replies: Replies | None) -> None:
        if replies is not None:
            self.message.reply_to = replies.reply_to
            replies.calls[str(self.message.message_id)] = self
        if self.plan.carries_ttl and self._deadline_s is not None:
            self.message.ttl_s = max(self._deadline_s - time.monotonic(), 0.001)
        try:
            self.plan.fill(self.message, publisher.size_bytes_max)
            post = publisher.post(self.message, settled=self.plan.is_settled)
        except Exception as error:  # whatever the application's objects raise, too
            known = isinstance(error, CogworkError)
            self._finish(_explained(error, self._address) if known else error)
            if self.plan.instead is not None:
                self.plan.instead(error)
            return
        self._post = post
        if post.is_done:
            self._on_outcome(post)
            return
        post.on_done = self._on_outcome
        if self.plan.is_mandatory and not self._connection.has_relay:
            loop = self._connection.thread.loop
            self._timer = loop.call_later(UNROUTABLE_AFTER_S, self._give_up_mandatory)

    # -- the loop's thread: what comes of it

    def _on_outcome(self, post: Post) -> None:
        if self._is_done or post is not self._post:
            return
        error = post.error()
        if error is None:
            self._is_sent = True
            if not self.plan.wants_reply:
                self._finish(None)
        elif isinstance(error, Released) and self.plan.is_fanout:
            self._finish(None)  # to all of nobody
        elif isinstance(error, InDoubt):
            self._is_sent = True
            if not self._may_still_be_answered():
                self._finish(DeliveryInDoubt(f"{error}; it is not sent again"))
        elif isinstance(error, Rejected):
            self._finish(NotDelivered(str(error)))
        else:
            self._retry(error)

    def _may_still_be_answered(self) -> bool:
        """Whether a call in doubt has an address for replies that outlives the connection."""
        return self.plan.wants_reply and self._connection.addresser.reply_prefix is not None

    def _retry(self, error: Exception) -> None:
        """Try again after a pause, if that is wanted."""
        if self._is_done:
            return
        self._last_error = error
        if self.plan.is_mandatory and isinstance(error, Released | NotFound):
            self._finish(self.plan.undeliverable(str(error), self._address))
        elif self._retries_left == 0 or self._is_hopeless(error):
            self._finish(NotDelivered(self._what_happened()))
        else:
            self._retries_left -= 1 if self._retries_left > 0 else 0
            pause_s = self._pause_s
            if isinstance(error, LinkRefused | LinkDetached):
                pause_s = self._connection.settings.link_retry_s
            elif isinstance(error, Disconnected):
                pause_s = 0
            self._pause_s = min(self._pause_s * 2, PAUSE_MAX_S)
            self._connection.thread.loop.call_later(pause_s, self._go)

    def _is_hopeless(self, error: Exception) -> bool:
        """Whether no connection comes any more: trying again, without a pause, would be a spin."""
        return self._connection.is_closed and isinstance(error, Disconnected)

    def _give_up_mandatory(self) -> None:
        if not self._is_done and self._post is not None and self._post.withdraw():
            self._finish(self.plan.undeliverable("it gives no credit", self._address))

    def on_attempt_failed(self, error: Exception) -> None:
        """No host of the URL took a connection."""
        self._last_error = error
        if self._is_sent or self._is_done or self._retries_left < 0:
            return
        if self._retries_left > 0:
            self._retries_left -= 1
        elif self._post is None or self._post.withdraw():
            self._finish(NotDelivered(self._what_happened()))

    def on_reply(self, reply: Message) -> None:
        """Take the reply, or a sign of life."""
        if reply.body is None:
            if self.plan.heartbeat_s is not None:
                self._alive_until_s = time.monotonic() + self.plan.heartbeat_s
            return
        self.reply = reply
        self._finish(None)

    def on_replies_lost(self) -> None:
        """The address for the reply has gone with the connection."""
        if self._post is not None and self._post.withdraw():
            self._retry(Disconnected("the connection was lost"))
        elif not self._is_done and self._post is not None:
            self._finish(
                CallInterrupted(
                    f"{self._address}: the connection was lost while a reply was waited for; the "
                    "call may have been worked on"
                )
            )

    def on_cleaned_up(self) -> None:
        """The driver ends."""
        self._finish(NotDelivered("the driver was cleaned up"))

    def expire(self) -> None:
        """Its time is over: takes the message back if it is still here."""
        if self._is_done:
            return
        was_here = not self._is_sent and (self._post is None or self._post.withdraw())
        text = self._what_happened() if was_here else self._what_is_missing()
        kind = NoReply if self.plan.wants_reply else NotDelivered
        self._finish(kind(text))

    def abandon(self) -> None:
        """Nobody waits any more: takes the message back if it is still here, and no reply."""
        if self._post is not None:
            self._post.withdraw()
        self._finish(NotDelivered("nobody waits for it any more"))

    def _what_happened(self) -> str:
        """Return why it was not sent."""
        connection = self._connection
        address = self._address or "the message"
        waited = f"after {time.monotonic() - self._began_s:.3g} s"
        if not connection.is_up:
            why = self._last_error or connection.last_error or "no attempt has ended"
            return f"{address}: not sent, {waited}: not connected ({why})"
        if self._post is not None and self._last_error is None:
            return f"{address}: not sent, {waited}: nobody is there to receive it (no credit)"
        return f"{address}: not sent, {waited}: {self._last_error or 'its link is not attached'}"

    def _what_is_missing(self) -> str:
        waited_s = time.monotonic() - self._began_s
        if not self.plan.wants_reply:
            return f"{self._address}: it was sent, and not accepted within {waited_s:.3g} s"
        if self._deadline_s is not None and time.monotonic() >= self._deadline_s:
            return f"{self._address}: it was sent, and no reply came within {waited_s:.3g} s"
        return (
            f"{self._address}: it was sent, and for {self.plan.heartbeat_s:g} s neither a reply "
            "nor a heartbeat came"
        )

    def _finish(self, error: Exception | None) -> None:
        if self._is_done:
            return
        self._is_done = True
        self._error = error
        connection = self._connection
        connection.sendings.discard(self)
        if self.plan.wants_reply:
            connection.forget_call(str(self.message.message_id))
        if self._task is not None:
            self._task.cancel()
        if self._timer is not None:
            self._timer.cancel()
        if self._waiter is not None:
            self._waiter.wake()
        elif error is not None:
            self.plan.on_failure(error)


def _explained(error: Exception, address: str) -> Exception:
    return NotDelivered(f"{address}: {error}")
