"""A call that waits for its reply."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.client.errors import CallTimeout, Disconnected, InDoubt, Released
from cogwork.rpc.errors import BadReply, ServerLost, ServersBusy, Unreachable
from cogwork.rpc.wire import END, ERROR, HEARTBEAT, PART, error_of

if TYPE_CHECKING:
    from cogwork.dataplane.client.dispatches import Post
    from cogwork.dataplane.message.messages import Message
    from cogwork.io.turn import Waiter
    from cogwork.rpc.calling.targets import Target
    from cogwork.rpc.wheel import Wheel

__all__ = ("SERVER_LOST", "Call", "NotSent")

SERVER_LOST = "the server was lost before it had replied; the call may have been handled"


class NotSent(Disconnected):
    """The connection broke before the call had left: it can be made again."""


class Call:
    """One call under way.

    Attributes:
        future: Gets the reply.
        post: The request, once it was handed to the link.
        server: The address of the server that has the call, once that is known.
        address: Whom is asked, for errors.
        deadline_s: When it waits no more, on the loop's clock.
    """

    __slots__ = (
        "_heard_s",
        "_heartbeat_s",
        "_sent",
        "_slot",
        "_target",
        "_timeout_s",
        "_was_queued",
        "_wheel",
        "address",
        "deadline_s",
        "future",
        "post",
        "server",
    )

    def __init__(
        self,
        future: Waiter[Message],
        *,
        address: str,
        target: Target,
        wheel: Wheel,
        deadline_s: float,
        timeout_s: float,
        heartbeat_s: float | None,
        now_s: float,
    ) -> None:
        """Wait for a reply; for its deadline from `watch` on.

        Args:
            future: Gets the reply.
            address: Whom is asked, for errors.
            target: The link it is sent on.
            wheel: Keeps its deadline.
            deadline_s: When to wait no more, on the loop's clock.
            timeout_s: How long that was, for errors.
            heartbeat_s: The longest silence of the server; None for any.
            now_s: The time.
        """
        self.future = future
        self.address = address
        self.deadline_s = deadline_s
        self.post: Post | None = None
        self.server: str | None = None
        self._target = target
        self._wheel = wheel
        self._timeout_s = timeout_s
        self._heartbeat_s = heartbeat_s
        self._heard_s = now_s
        self._was_queued = True
        self._slot = 0
        self._sent = -1

    def watch(self) -> None:
        """Keep its deadline."""
        self._was_queued = self.post is None or self.post.queued
        if self._was_queued and self._sent < 0:
            self._sent = self._target.sent
        self._slot = self._wheel.add(self._next_due_s(), self)

    def on_reply(self, reply: Message) -> None:
        """Take a reply, or a sign of life."""
        future = self.future
        if future.done():
            return
        subject = reply.subject
        if subject is None:
            future.set_result(reply)
        elif subject == HEARTBEAT:
            self._heard_s = future.get_loop().time()
            self.server = reply.reply_to
        elif subject == ERROR:
            future.set_exception(error_of(self.address, reply))
        elif subject in {PART, END}:
            text = "the method replies in parts: use call_stream"
            future.set_exception(BadReply(self.address, None, text))
        else:
            future.set_result(reply)

    def fail(self, error: Exception) -> None:
        """End it with an exception."""
        if not self.future.done():
            self.future.set_exception(error)

    def on_outcome(self, error: Exception) -> None:
        """The request was not accepted: it was not begun, or its server was lost."""
        if self.post is not None and self.post.expired and isinstance(error, Released):
            error = self._unsent()
        elif isinstance(error, InDoubt):
            error = InDoubt(self.address, None, SERVER_LOST)
        self.fail(error)

    def on_lost(self, error: Exception | None) -> None:
        """The address of its reply is gone."""
        if error is not None:
            self.fail(error)
        elif self.withdraw():
            self.fail(NotSent())
        else:
            text = "the connection was lost; the call may have been handled"
            self.fail(InDoubt(self.address, None, text))

    def on_due(self) -> None:
        """Its time is over, or the server was silent for too long."""
        if self.future.done():
            return
        now_s = self.future.get_loop().time()
        if now_s >= self.deadline_s:
            if self.withdraw():
                self.fail(self._unsent())
            else:
                self.fail(CallTimeout(self.address, self._timeout_s))
            return
        if self._was_queued:  # it may just have been sent: silence counts from now on
            self._heard_s = now_s
        if self._heartbeat_s is not None and now_s >= self._heard_s + self._heartbeat_s:
            self.fail(ServerLost(self.address, self._heartbeat_s))
            return
        self.watch()

    def _unsent(self) -> Unreachable:
        """Tell why it was not sent: whether there are servers, other calls from here have shown."""
        target = self._target
        is_busy = target.unsettled > 0 or 0 <= self._sent < target.sent
        return (ServersBusy if is_busy else Unreachable)(self.address, self._timeout_s)

    def _next_due_s(self) -> float:
        if self._heartbeat_s is None:
            return self.deadline_s
        return min(self.deadline_s, self._heard_s + self._heartbeat_s)

    def withdraw(self) -> bool:
        """Take the request back where it was not sent yet; return whether it was not."""
        return self.post is None or self._target.withdraw(self.post)

    def end(self) -> None:
        """Wait no more."""
        self._wheel.remove(self._slot, self)
