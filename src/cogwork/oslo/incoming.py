"""What a server or a listener is handed: the message, and what can be done with it."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from oslo_messaging._drivers import base
from oslo_messaging.exceptions import MessageDeliveryFailure

from cogwork.amqp.errors import CogworkError
from cogwork.client.interception.interceptor import MethodRun
from cogwork.dataplane.message.messages import Message
from cogwork.oslo import wire
from cogwork.oslo.plan import Plan
from cogwork.oslo.sending import Sending

if TYPE_CHECKING:
    from collections.abc import Callable

    from oslo_messaging import Target

    from cogwork.client.interception.interceptors import Endings
    from cogwork.dataplane.client.items import Item
    from cogwork.oslo.connection import Connection

__all__ = ("Incoming", "Notification", "RpcRequest")

log = logging.getLogger("cogwork.oslo")


class Incoming:
    """A message whose delivery is settled by the loop's thread, whatever thread says so."""

    def __init__(self, connection: Connection, item: Item) -> None:
        self._connection = connection
        self._item = item

    def accept(self) -> None:
        """It is dealt with."""
        self._connection.thread.call(_quietly, self._item.accept_nowait)

    def give_back(self) -> None:
        """It is somebody else's to deal with."""
        self._connection.thread.call(_quietly, self._item.release)

    def refuse(self, reason: str) -> None:
        """It is of no use to anybody."""
        log.warning("rejected a message to %s: %s", self._item.to, reason)
        self._connection.thread.call(_quietly, lambda: self._item.reject(reason))


def _quietly(settle: Callable[[], object]) -> None:
    try:
        settle()
    except CogworkError as error:
        log.warning("cannot settle a message any more: %s", error)


class RpcRequest(base.RpcIncomingMessage):  # type: ignore[misc]  # untyped library
    """A call or a cast."""

    def __init__(
        self, connection: Connection, item: Item, request: wire.Request, *, target: Target
    ) -> None:
        """Is not acknowledged yet.

        Args:
            connection: What it came by.
            item: The delivery.
            request: What is in it.
            target: Of the server.
        """
        self._delivery = Incoming(connection, item)
        self._connection = connection
        self._endings: Endings | None = None
        self._run = partial(MethodRun, str(target.topic), str(target.server), request=item)
        self._reply_to = item.reply_to
        self._correlation_id = item.correlation_id if item.message_id is None else item.message_id
        super().__init__(request.context, request.message, msg_id=self._correlation_id)
        self.client_timeout = request.call_monitor_timeout_s

    def acknowledge(self) -> None:
        """The server works on it from now on, on this thread: nobody else will."""
        self._delivery.accept()
        interceptors = self._connection.settings.interceptors
        if interceptors is not None:
            method = str(self.message.get("method", ""))
            self._endings = interceptors.method(self._run(method=method))

    def requeue(self) -> None:
        """Give it to another server."""
        self._delivery.give_back()

    def reply(self, reply: object = None, failure: object = None) -> None:
        """Answer a call; a cast is not answered.

        Args:
            reply: What the method returned.
            failure: What `sys.exc_info()` told, where it raised.
        """
        if self._endings is not None:
            self._endings(failure[1] if isinstance(failure, tuple) else None)
        if not self._reply_to:
            return
        plan = self._plan(self._tell_why_not)
        body: str | None
        try:
            body = plan.put_off(partial(wire.reply_body, reply, failure), reply)
        except Exception as error:  # whatever the application's objects raise
            log.exception("cannot encode a reply as JSON")
            body = wire.failure_body((type(error), error, error.__traceback__))
        self._answer(Message.value(body), plan)

    def _tell_why_not(self, error: Exception) -> None:
        """Answer a call whose reply cannot be sent, as it is too large: nobody need wait."""
        told = MessageDeliveryFailure(f"the reply cannot be sent: {error}")
        self._answer(Message.value(wire.failure_body((type(told), told, None))), self._plan())

    def heartbeat(self) -> None:
        """Tell the caller that the call is being worked on."""
        if self._reply_to:
            self._answer(Message(None, ttl_s=self.client_timeout), self._plan())

    def _plan(self, instead: Callable[[Exception], object] | None = None) -> Plan:
        settings = self._connection.settings
        return Plan(
            reply_to=self._reply_to or "",
            is_settled="rpc-reply" in settings.pre_settled,
            timeout_s=settings.reply_timeout_s,
            retry=settings.reply_retry,
            instead=instead,
        )

    def _answer(self, message: Message, plan: Plan) -> None:
        message.correlation_id = self._correlation_id
        sending = Sending(self._connection, plan, message, waits=False)
        self._connection.thread.call(sending.begin)


class Notification(base.IncomingMessage):  # type: ignore[misc]  # untyped library
    """A notification."""

    def __init__(self, connection: Connection, item: Item, request: wire.Request) -> None:
        """Is not acknowledged yet.

        Args:
            connection: What it came by.
            item: The delivery.
            request: What is in it.
        """
        self._delivery = Incoming(connection, item)
        super().__init__(request.context, request.message, msg_id=item.message_id)

    def acknowledge(self) -> None:
        """It is dealt with, and leaves its queue."""
        self._delivery.accept()

    def requeue(self) -> None:
        """Put it back, for this listener or another one."""
        self._delivery.give_back()
