"""One request under work at a server."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from cogwork.amqp.errors import Condition, EncodeError
from cogwork.amqp.types import UInt
from cogwork.dataplane.client.posting_errors import MessageTooLarge
from cogwork.dataplane.message.messages import Message
from cogwork.rpc.calling.request import demand_fitting
from cogwork.rpc.codec import unserialisable
from cogwork.rpc.errors import CALL_CANCELLED, CALL_EXPIRED, NOT_BEGUN, REMOTE_ERROR
from cogwork.rpc.serving.context import CallContext
from cogwork.rpc.wire import (
    CREDIT,
    CREDIT_MAX,
    END,
    HEARTBEAT,
    PART,
    error_reply,
    refusal_reply,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from concurrent.futures import Future

    from cogwork.amqp.message import MessageId
    from cogwork.dataplane.client.request_inbox import RequestInbox
    from cogwork.rpc.codec import Codec
    from cogwork.rpc.serving.method import Method
    from cogwork.rpc.serving.reply_sender import ReplySender
    from cogwork.rpc.serving.service import Service

__all__ = ("LATE", "RequestTask")

UINT_MAX = 0xFFFFFFFF

log = logging.getLogger("cogwork.client.rpc")

LATE = "the time of the call was over before its method began"

BEATS = 3
"""Heartbeats within the longest silence that a caller takes: two may be late."""


class RequestTask:
    """A request, from its arrival to its reply.

    Attributes:
        method: What is to be run.
        arguments: With what.
        context: What the method may know of the call.
        reply_to: Where replies go; None for a cast.
        number: What replies name.
        sender: Where replies leave.
        key: Under what its reply is kept; None for nowhere.
        runner: What runs the method, if a task does.
        is_over: Whether nothing is to be said any more.
        is_watched: Whether its deadline is kept.
        thread: Where its method runs, for as long as it does and cannot be stopped; None else.
        wants_direct: Whether the caller would like to know where the server listens.
    """

    __slots__ = (
        "_beat_s",
        "_began_s",
        "_codec",
        "_credit",
        "_credit_waiter",
        "_delivery_id",
        "_inbox",
        "_lease_s",
        "_link",
        "_next_beat_s",
        "_sent",
        "_service",
        "_slot",
        "arguments",
        "context",
        "deadline_s",
        "is_over",
        "is_watched",
        "key",
        "method",
        "number",
        "reply_to",
        "runner",
        "sender",
        "thread",
        "wants_direct",
    )

    def __init__(
        self,
        service: Service,
        inbox: RequestInbox,
        sender: ReplySender,
        request: Message,
        *,
        delivery_id: int | None,
        deadline_s: float | None,
        reply_to: str | None,
        number: MessageId | None,
        method: Method,
        arguments: Mapping[str, Any],
        codec: Codec,
    ) -> None:
        """Take a request.

        Args:
            service: Whose it is.
            inbox: Where it came; settles it in the end.
            sender: Where replies leave.
            request: The message.
            delivery_id: Its own; None where it came settled.
            deadline_s: When nobody waits for a reply any more, on the service's clock; None for
                never.
            reply_to: Where replies go; None for a cast.
            number: What replies name.
            method: What is to be run.
            arguments: With what.
            codec: What the reply is to be written in.
        """
        self.method = method
        self.arguments = arguments
        self.reply_to = reply_to
        self.number = number
        self.key: tuple[str, str] | None = None
        self.runner: asyncio.Future[Any] | None = None
        self.thread: Future[None] | None = None
        self.is_over = False
        self.is_watched = False
        self.wants_direct = False
        self._service = service
        self._inbox = inbox
        self._link = inbox.link
        self._delivery_id = delivery_id
        self._began_s = 0.0
        self.sender = sender
        self._codec = codec
        self._slot = 0
        self._beat_s = 0.0
        self._next_beat_s = 0.0
        self._lease_s = 0.0
        self._credit = 0
        self._sent = 0
        self._credit_waiter: asyncio.Future[None] | None = None
        self.deadline_s = deadline_s
        self.context = CallContext(request, deadline_s, service.time)

    # -- time

    def watch(self, beat_s: float, lease_s: float, credit: int) -> None:
        """End with its deadline, and tell of itself until then.

        Args:
            beat_s: How often to tell the caller that it is under work; 0 for never.
            lease_s: After which silence of the caller its stream ends; 0 where it is none.
            credit: Parts that the caller has room for, from the first one on.
        """
        self.is_watched = True
        self._beat_s = beat_s
        self._lease_s = lease_s
        self._credit = min(credit, CREDIT_MAX)
        now_s = self._service.time()
        if lease_s:
            self.deadline_s = now_s + lease_s
        if beat_s:
            self._beat(now_s)
        self._schedule()

    def _schedule(self) -> None:
        if self._beat_s and (self.deadline_s is None or self._next_beat_s < self.deadline_s):
            self._slot = self._service.wheel.add(self._next_beat_s, self)
        elif self.deadline_s is not None:
            self._slot = self._service.wheel.add(self.deadline_s, self)

    def _beat(self, now_s: float) -> None:
        self._next_beat_s = now_s + self._beat_s
        sent = UInt(self._sent & UINT_MAX) if self._lease_s else None
        self._send(
            Message(None, subject=HEARTBEAT, reply_to=self._service.address, group_sequence=sent)
        )

    def on_due(self) -> None:
        """Its time is over, or it is time to say that it is not."""
        if self.is_over:
            return
        now_s = self._service.time()
        if self.deadline_s is not None and now_s >= self.deadline_s:
            begun = self in self._service.request_queue
            if begun:
                self.method.pace.note_cut(now_s - self._began_s)
            self.refuse(CALL_EXPIRED, LATE, is_late=begun)
            return
        if self._beat_s and now_s >= self._next_beat_s:
            self._beat(now_s)
        self._schedule()

    # -- replies

    def _send(self, reply: Message) -> None:
        if self.reply_to is not None:
            reply.to = self.reply_to
            reply.correlation_id = self.number
            self.sender.send(reply)

    def finish(self, result: object) -> None:
        """Reply with what the method returned."""
        if self.is_over:
            self._keep_late(partial(self._reply_of, result))
            return
        self.thread = None
        if self.reply_to is None:
            self.end(None if self.key is None else Message(None))  # a key is kept all the same
            return
        try:
            self._reply_with(result)
        except MessageTooLarge as error:
            self._end_with(Condition.LINK_MESSAGE_SIZE_EXCEEDED, f"the result: {error}")
        except Exception as error:
            self.fail(unserialisable(result, self._carry, error))

    def _reply_of(self, result: object) -> Message:
        demand_fitting(result, self.sender.size_bytes_max(self.reply_to or ""))
        return Message(self._codec.encode(result), content_type=self._codec.content_type)

    def _reply_with(self, result: object) -> None:
        reply = self._reply_of(result)
        if self.wants_direct and self._service.stamp is not None:
            reply.properties = dict(self._service.stamp)
        self._send(reply)
        self.end(reply)

    def _carry(self, value: object) -> None:
        Message(self._codec.encode(value)).encode()

    def fail(self, error: BaseException) -> None:
        """Reply with what the method raised."""
        if self.is_over:
            self._keep_late(partial(self._error_reply, error))
            return
        self.thread = None
        name = f"{self._service.address}: {self.method.name}"
        log.info("%s: a method failed: %r", name, error, exc_info=error)
        reply = self._error_reply(error)
        try:
            self._send(reply)
            self.end(reply)
        except Exception:  # it is too large, or nothing that can be sent
            self._end_with(REMOTE_ERROR, type(error).__name__)

    def _end_with(self, condition: str, description: str) -> None:
        """Say that what the method came to cannot be said; it has run, and is not to run again."""
        reply = refusal_reply(condition, description)
        with suppress(MessageTooLarge):
            self._send(reply)
        self.end(reply)

    def _error_reply(self, error: BaseException) -> Message:
        return error_reply(error, tells_traceback=self._service.options.tells_tracebacks)

    def _keep_late(self, make: Callable[[], Message]) -> None:
        """Keep what became of a method that went on when its call was over already."""
        if self.key is None or self.thread is None:
            return
        try:
            reply = make()
            reply.encode()
        except Exception as error:  # the method has run all the same, and is not to run again
            reply = self._error_reply(error)
        self._service.keep(self.key, reply)

    def refuse(self, condition: str, description: str, *, is_late: bool = False) -> None:
        """Reply that there will be no result, and end the method's run.

        Args:
            condition: Why, for programs.
            description: Why, for people.
            is_late: Whether nobody waits for a reply any more.
        """
        if self.is_over:
            return
        self.is_over = True
        if not is_late:
            with suppress(MessageTooLarge):
                self._send(refusal_reply(condition, description))
        self.end(None)
        self.context.cancel()
        if self.runner is not None:
            self.runner.cancel()

    def cancel(self) -> None:
        """The caller has left, or the service is being stopped."""
        self.refuse(CALL_CANCELLED, "the call was cancelled after its method had begun")

    def end(self, reply: Message | None) -> None:
        """Is done: gives room for another one, and keeps its reply under its key."""
        self.is_over = True
        if self._slot:
            self._service.wheel.remove(self._slot, self)
        goes_on = reply is None and self.thread is not None and not self.thread.cancel()
        if self.key is not None and not goes_on:
            self._service.keep(self.key, reply)
        self._service.request_queue.ended(self)

    def begin(self) -> None:
        """Its method is about to run. What has no reply is done with: its sender need not wait."""
        self._began_s = self._service.time()
        if self.reply_to is None:
            self.settle()

    def note_pace(self) -> None:
        """Its method is through."""
        self.method.pace.note(self._service.time() - self._began_s)

    def settle(self, *, is_taken: bool = True) -> None:
        """Settle the request, if it is unsettled still: it is done, or another server's."""
        if self._delivery_id is not None:
            self._inbox.settle_request(self._link, self._delivery_id, is_taken)
            self._delivery_id = None

    def hand_back(self) -> None:
        """Let another server have what was not begun."""
        if self._delivery_id is not None:
            self.settle(is_taken=False)
            self.is_over = True
            self.end(None)
        elif self.reply_to is not None:
            self.refuse(NOT_BEGUN, "the server was stopped before it had begun the call")
        else:
            self.is_over = True
            self.end(None)
            self._service.pass_on(self.context.request)

    # -- parts

    async def part(self, value: object) -> None:
        """Send a part, once the caller has room for it."""
        while self._sent >= self._credit:
            self._credit_waiter = asyncio.get_running_loop().create_future()
            await self._credit_waiter
        codec = self._codec
        try:
            demand_fitting(value, self.sender.size_bytes_max(self.reply_to or ""))
            body = codec.encode(value)
            self._send(
                Message(
                    body,
                    subject=PART,
                    content_type=codec.content_type,
                    group_sequence=UInt(self._sent & UINT_MAX),
                    reply_to=self._service.address if self._sent == 0 else None,
                )
            )
        except MessageTooLarge as error:
            text = f"part {self._sent} of the result: {error}"
            self._end_with(Condition.LINK_MESSAGE_SIZE_EXCEEDED, text)
            raise
        except EncodeError as error:
            raise unserialisable(value, self._carry, error) from error
        self._sent += 1
        self._next_beat_s = self._service.time() + self._beat_s

    def grant(self, note: Message) -> None:
        """The caller has room for more parts, and is there."""
        more = note.properties.get(CREDIT, 0)
        if isinstance(more, int) and more > self._credit:
            self._credit = min(more, self._sent + CREDIT_MAX)
        if self._lease_s:
            self.deadline_s = self._service.time() + self._lease_s
        has_room = self._credit > self._sent
        if has_room and self._credit_waiter is not None and not self._credit_waiter.done():
            self._credit_waiter.set_result(None)

    def finish_parts(self) -> None:
        """Say that there are no more parts."""
        if not self.is_over:
            self._send(Message(None, subject=END, group_sequence=UInt(self._sent & UINT_MAX)))
            self.end(None)

    @property
    def is_streamed(self) -> bool:
        """Whether the caller takes the reply in parts."""
        return self._lease_s > 0
