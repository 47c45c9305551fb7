"""Replies in parts, as the caller sees them.

Theory of operation. The request says how many parts the caller has room for; as these are used up
it grants more (`$more`), to the server that the first part names. A method that is faster than its
caller waits. Either side tells a sum, parts sent and parts that there is room for, so that whatever
is lost on the way is noticed, or made good by what comes next. Each side says within a third of the
call's time that it is there, the server by a heartbeat, the caller by a grant, if only of nothing;
silence for all of that time ends the stream.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Self

from cogwork.client.errors import CallTimeout, InDoubt
from cogwork.dataplane.message.messages import Message
from cogwork.rpc.calling.call import SERVER_LOST, NotSent
from cogwork.rpc.codec import codec_for
from cogwork.rpc.conversion import converted
from cogwork.rpc.errors import BadReply, ServerLost, Unreachable
from cogwork.rpc.wire import CREDIT, CREDIT_MAX, END, ERROR, MORE, PART, error_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.client.interception.interceptor import Ending
    from cogwork.dataplane.client.dispatches import Post
    from cogwork.io.turn import Waiter
    from cogwork.rpc.calling.caller import Caller
    from cogwork.rpc.calling.replies import Replies
    from cogwork.rpc.calling.request import Request
    from cogwork.rpc.calling.targets import Target

__all__ = ("PartStream", "Parts")

UINT_MAX = 0xFFFFFFFF
"""Where a group-sequence begins anew."""


class Parts:
    """The parts of one call's reply, and what is told to the server that sends them.

    Attributes:
        begins: Called before the request is sent; what it returns is called when all is over. None
            where no interceptor looks.
    """

    begins: Callable[[], Ending] | None = None
    _ending: Ending | None = None

    def __init__(
        self,
        caller: Caller,
        request: Request,
        *,
        window: int,
        result: Any,  # noqa: ANN401  # any type
        settled: bool,
    ) -> None:
        """Ask nothing yet: taking the first part does.

        Args:
            caller: Of the client.
            request: What to ask.
            window: Parts that may be on their way or waiting; at least 1.
            result: The type of a part; None for what comes.
            settled: Whether to send the request settled.

        Raises:
            ValueError: The window has no room, or more than a server uses.
        """
        if not 1 <= window <= CREDIT_MAX:
            raise ValueError(f"window: 1 to {CREDIT_MAX} is expected, not {window!r:.80}")
        self._caller = caller
        self._route = caller.routed
        self._request = request
        self._window = window
        self._result = result
        self._settled = settled
        self._id = ""
        self._parts: deque[Message] = deque()
        self._waiter: Waiter[None] | None = None
        self._failure: Exception | None = None
        self._is_over = False
        self._replies: Replies | None = None
        self._target: Target | None = None
        self._post: Post | None = None
        self._server = ""
        self._reply_to = ""
        self._count = 0
        self._taken = 0
        self._credit = window
        self._slot = 0
        self._heard_s = 0.0
        self._told_s = 0.0
        self._time = caller.time

    async def take(self) -> Any:  # noqa: ANN401  # what the method yields
        """Return the next part.

        Raises:
            StopAsyncIteration: There is none any more.
        """
        try:
            while self._replies is None and not self._is_over:
                await self._begin()
            while not self._parts:
                if self._failure is not None:
                    raise self._failure
                if self._is_over:
                    raise StopAsyncIteration
                self._waiter = self._route.client.create_future()
                await self._waiter
        except BaseException:
            self.close()
            raise
        part = self._parts.popleft()
        self._taken += 1
        if 2 * (self._credit - self._taken) <= self._window:
            self._grant()
        return self._value(part)

    def _value(self, part: Message) -> Any:  # noqa: ANN401  # what the method yields
        try:
            value = codec_for(part.content_type).decode(part.body)
            return value if self._result is None else converted(value, self._result)
        except Exception as error:
            self.close()
            text = f"a part of the reply: {error or type(error).__name__}"
            raise BadReply(self._request.address, None, text) from error

    async def _begin(self) -> None:
        """Send the request."""
        request = self._request
        if self.begins is not None:
            self._ending, self.begins = self.begins(), None
        deadline_s = self._time() + request.timeout_s
        try:
            self._route, address = await self._caller.way(request)
            target, replies = await self._caller.open(self._route, address, request, deadline_s)
        except NotSent:
            return
        call_id = self._caller.next_id()
        try:
            post = target.post(
                request.message(
                    call_id,
                    replies.reply_to,
                    max(deadline_s - self._time(), 0.001),
                    target.size_bytes_max,
                ),
                settled=self._settled,
            )
        except Exception as error:
            raise request.refusal(error) from error
        if not self._settled:
            post.on_error = self._on_outcome
        self._id, self._reply_to = call_id, replies.reply_to
        self._target, self._replies, self._post = target, replies, post
        replies.calls[call_id] = self
        self._heard_s = self._told_s = self._time()
        self._watch()

    def _on_outcome(self, error: Exception) -> None:
        """The request was not accepted: it was not begun, or its server was lost."""
        if isinstance(error, InDoubt):
            error = InDoubt(self._request.address, None, SERVER_LOST)
        self._fail(error)

    # -- what comes

    def on_reply(self, reply: Message) -> None:
        """Take a part, the end, or a sign of life."""
        self._heard_s = self._time()
        self._server = reply.reply_to or self._server
        subject = reply.subject
        told = reply.group_sequence
        if told is not None and told != self._count & UINT_MAX:
            text = f"part {self._count} of the reply was lost"
            self._fail(InDoubt(self._request.address, None, text))
        elif subject == PART:
            self._count += 1
            self._parts.append(reply)
        elif subject == ERROR:
            self._fail(error_of(self._request.address, reply))
        elif subject == END:
            self._end()
        elif subject is None:
            text = "the method replies as a whole: use call"
            self._fail(BadReply(self._request.address, None, text))
        self._wake()

    def on_lost(self, error: Exception | None) -> None:
        """The address of the parts is gone."""
        if error is None and self._post is not None and self._target is not None:
            if self._target.withdraw(self._post):
                error = NotSent("the connection was lost")
            else:
                text = "the connection was lost in the middle of the reply"
                error = InDoubt(self._request.address, None, text)
        self._fail(error or NotSent("the connection was lost"))

    def on_due(self) -> None:
        """Look whether the server is there, and say that the caller is."""
        if self._is_over:
            return
        now_s, limit_s = self._time(), self._request.timeout_s
        if now_s >= self._heard_s + limit_s:
            self._fail(self._silence())
            return
        if self._server and now_s >= self._told_s + limit_s / 3:
            self._grant()
        self._watch()

    def _silence(self) -> Exception:
        address, limit_s = self._request.address, self._request.timeout_s
        if (
            self._post is not None
            and self._target is not None
            and self._target.withdraw(self._post)
        ):
            return Unreachable(address, limit_s)
        return ServerLost(address, limit_s) if self._server else CallTimeout(address, limit_s)

    def _watch(self) -> None:
        limit_s = self._request.timeout_s
        due_s = min(self._heard_s + limit_s, self._time() + limit_s / 3)
        self._slot = self._caller.wheel.add(due_s, self)

    def _grant(self) -> None:
        """Say how much room there is again."""
        if not self._server or self._is_over:
            return
        self._credit = self._taken + self._window
        note = Message(
            None,
            subject=MORE,
            correlation_id=self._id,
            reply_to=self._reply_to,
            properties={CREDIT: self._credit},
        )
        self._told_s = self._time()
        self._caller.tell(self._route, self._server, note)

    # -- the end

    def _fail(self, error: Exception) -> None:
        if not self._is_over:
            self._failure = error
            self._end()
            self._wake()

    def _end(self) -> None:
        self._is_over = True
        if self._replies is not None:
            self._replies.calls.pop(self._id, None)
            self._caller.wheel.remove(self._slot, self)
        if self._ending is not None:
            self._ending(self._failure)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def close(self) -> None:
        """End the iteration, and have the work cancelled."""
        if self._is_over:
            return
        self._end()
        if self._target is None or self._post is None or self._target.withdraw(self._post):
            return
        address = self._server or self._target.address
        if address == self._request.address:
            address = self._caller.everyone(self._route, address, self._request)
        self._caller.cancel(self._route, address, self._id, self._reply_to)
        self._wake()


class PartStream:
    """The parts of one call's reply: iterate it once; leaving it cancels the work.

    Whoever breaks off `async for` drops this object, and nobody else has it: its end is known at
    once. `Parts` is known to the link of replies as well, so it cannot be this.
    """

    def __init__(self, parts: Parts) -> None:
        """Ask nothing yet: the first step of an iteration does.

        Args:
            parts: What is iterated.
        """
        self._parts = parts

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:  # noqa: ANN401  # what the method yields
        return await self._parts.take()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._parts.close()

    async def aclose(self) -> None:
        """End the iteration, and have the work cancelled."""
        self._parts.close()

    def __del__(self) -> None:
        self._parts.close()
