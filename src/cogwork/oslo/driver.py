"""The driver: what oslo.messaging loads for `amqp://` (entry point `oslo.messaging.drivers`)."""

from __future__ import annotations

import importlib.util
import os
import secrets
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakSet

import oslo_messaging
from oslo_messaging._drivers import base

from cogwork.amqp.terminus import COPY, MOVE
from cogwork.client.interception.interceptor import OutgoingCall
from cogwork.dataplane.message.messages import Message
from cogwork.oslo import wire
from cogwork.oslo.connection import Connection
from cogwork.oslo.green import original
from cogwork.oslo.incoming import Notification, RpcRequest
from cogwork.oslo.listener import PollListener
from cogwork.oslo.loop_thread import loop_thread
from cogwork.oslo.plan import Plan
from cogwork.oslo.sending import Sending
from cogwork.oslo.settings import settings_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from oslo_messaging import Target, TransportURL
    from oslo_messaging.transport import TransportOptions

__all__ = ("Driver",)

CLEANUP_TIMEOUT_S = 15.0

_drivers: WeakSet[Driver] = WeakSet()
_inherited: list[Connection] = []
"""Of the parent: their sockets' numbers may be others' by now, so they are never freed."""

OLD_DRIVER = "oslo_messaging._drivers.impl_amqp1"


class Driver(base.BaseDriver):  # type: ignore[misc]  # untyped library
    """AMQP 1.0 for oslo.messaging."""

    def __init__(
        self,
        conf: Any,  # noqa: ANN401  # an untyped library's object
        url: TransportURL,
        default_exchange: str | None = None,
        allowed_remote_exmods: Sequence[str] | None = None,
    ) -> None:
        """Read the configuration; connect when it is first used.

        Args:
            conf: The application's `ConfigOpts`.
            url: The hosts, the virtual host, and options in its query.
            default_exchange: The exchange of targets that name none.
            allowed_remote_exmods: Modules whose exceptions a reply may raise.

        Raises:
            RuntimeError: This oslo.messaging has a driver of its own for `amqp`.
            ConfigurationError: An option cannot be used.
        """
        check_versions()
        super().__init__(conf, url, default_exchange, list(allowed_remote_exmods or ()))
        self._settings = settings_of(conf, url, default_exchange)
        self._connection: Connection | None = None
        self._lock = original("threading").Lock()
        _drivers.add(self)

    def require_features(self, requeue: bool = False) -> None:  # the contract's
        """Have all of them."""

    def _connected(self) -> Connection:
        """Return the connection of this process; a fork's child gets another one."""
        with self._lock:
            if self._connection is None:
                self._connection = Connection(self._settings, loop_thread())
            return self._connection

    def begin_anew(self) -> None:
        """Leave its connection to the parent, in the child of a fork."""
        self._lock = original("threading").Lock()
        if self._connection is not None:
            _inherited.append(self._connection)
            self._connection = None

    # -- sending

    def send(
        self,
        target: Target,
        ctxt: dict[str, Any],
        message: dict[str, Any],
        *,
        wait_for_reply: bool | None = None,
        timeout: float | None = None,
        call_monitor_timeout: float | None = None,
        retry: int | None = None,
        transport_options: TransportOptions | None = None,
    ) -> object:
        """Send a call, a cast or a fanout; see the base class.

        Raises:
            MessagingTimeout: A call got no reply in time; the message says how far it had come.
            MessageDeliveryFailure: It was not delivered within its retries, or its time; or
                whether it was cannot be known.
            MessageUndeliverable: With `at_least_once`: nobody is there to receive it.
            RemoteError: The server raised an exception; or that exception itself.
        """
        settings = self._settings
        is_mandatory = bool(transport_options is not None and transport_options.at_least_once)
        kind = "rpc-call" if wait_for_reply else "rpc-cast"
        plan = Plan(
            target=target,
            is_settled=kind in settings.pre_settled and not is_mandatory,
            timeout_s=timeout or (None if wait_for_reply else settings.send_timeout_s),
            retry=retry,
            wants_reply=bool(wait_for_reply),
            heartbeat_s=call_monitor_timeout if wait_for_reply else None,
            is_mandatory=is_mandatory,
            carries_ttl=bool(timeout),
            content=message,
        )
        monitor_s = call_monitor_timeout if wait_for_reply else None
        write = partial(wire.request_body, message, ctxt, monitor_s)
        request = Message.value(plan.put_off(write, (message, ctxt)))
        request.message_id = secrets.token_hex(16)
        with self._traced(target, message, request, waits=bool(wait_for_reply)):
            reply = self._deliver(plan, request)
        if not wait_for_reply:
            return None
        assert reply is not None
        try:
            return wire.read_reply(reply, self._allowed_remote_exmods)
        except wire.Unreadable as error:
            raise oslo_messaging.MessageDeliveryFailure(f"a reply is of no use: {error}") from None

    def send_notification(
        self,
        target: Target,
        ctxt: dict[str, Any],
        message: dict[str, Any],
        version: float,
        retry: int | None = None,
    ) -> None:
        """Send a notification, and a copy for each pool; return once they are accepted.

        Raises:
            MessageDeliveryFailure: One was not, within its retries and its time.
        """
        settings = self._settings
        write = partial(wire.notification_body, message, ctxt, version)
        for topic in (target.topic, *(f"{target.topic}.{p}" for p in settings.notification_pools)):
            plan = Plan(
                target=target(topic=topic, server=None, fanout=False),
                service="notify",
                is_settled="notify" in settings.pre_settled,
                timeout_s=settings.notify_timeout_s,
                retry=retry,
            )
            body = plan.put_off(write, (message, ctxt))
            notification = Message.value(body, durable=True)
            notification.message_id = secrets.token_hex(16)
            with (
                settings.interceptors.publish(topic, (notification,))
                if settings.interceptors is not None
                else nullcontext()
            ):
                self._deliver(plan, notification)

    def _traced(
        self, target: Target, message: dict[str, Any], request: Message, *, waits: bool
    ) -> AbstractContextManager[object]:
        """Return what interceptors have around a call, whose request carries what they say."""
        interceptors = self._settings.interceptors
        if interceptors is None:
            return nullcontext()
        kind: Literal["call", "cast", "fanout"] = "call" if waits else "cast"
        method = str(message.get("method", ""))
        call = OutgoingCall(
            "fanout" if target.fanout else kind,
            str(target.topic),
            method,
            target.server,
            request.properties,
        )
        return interceptors.call(call)

    def _deliver(self, plan: Plan, message: Message) -> Message | None:
        connection = self._connected()
        sending = Sending(connection, plan, message, waits=True)
        connection.thread.call(sending.begin)
        sending.wait()
        return sending.reply

    # -- listening

    def listen(
        self, target: Target, batch_size: int, batch_timeout: float | None
    ) -> base.PollStyleListenerAdapter:
        """Subscribe a server: to its own address, its group's, and the one of all."""
        sources = [
            (lambda addresser: addresser.server(target, "rpc"), MOVE),
            (lambda addresser: addresser.group(target, "rpc"), MOVE),
            (lambda addresser: addresser.all(target, "rpc"), COPY),
        ]
        listener = PollListener(
            self._connected(),
            sources,
            self._settings.rpc_credit,
            partial(RpcRequest, target=target),
            self.prefetch_size,
        )
        return base.PollStyleListenerAdapter(listener, batch_size, batch_timeout)

    def listen_for_notifications(
        self,
        targets_and_priorities: Sequence[tuple[Target, str]],
        pool: str | None,
        batch_size: int,
        batch_timeout: float | None,
    ) -> base.PollStyleListenerAdapter:
        """Subscribe a listener, or one of a pool.

        Raises:
            NotImplementedError: Nobody sends copies for this pool.
        """
        if pool and pool not in self._settings.notification_pools:
            raise NotImplementedError(
                f"the pool {pool!r} gets no notifications: name it in notification_pools, in "
                "[oslo_messaging_amqp] of those who send them and here"
            )
        topics = dict.fromkeys(
            (target.exchange, f"{target.topic}.{priority}" + (f".{pool}" if pool else ""))
            for target, priority in targets_and_priorities
        )
        sources = [(_of_topic(exchange, topic), MOVE) for exchange, topic in topics]
        listener = PollListener(
            self._connected(),
            sources,
            self._settings.notify_credit,
            Notification,
            self.prefetch_size,
        )
        return base.PollStyleListenerAdapter(listener, batch_size, batch_timeout)

    # -- the end

    def cleanup(self) -> None:
        """Close the connection of this process, if there is one."""
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.thread.run(connection.close, CLEANUP_TIMEOUT_S)


def _begin_anew() -> None:
    for driver in list(_drivers):
        driver.begin_anew()


os.register_at_fork(after_in_child=_begin_anew)


def _of_topic(exchange: str | None, topic: str) -> Any:  # noqa: ANN401  # a function
    target = oslo_messaging.Target(exchange=exchange, topic=topic)
    return lambda addresser: addresser.group(target, "notify")


def check_versions() -> None:
    """Refuse to be one of two drivers for `amqp`.

    Raises:
        RuntimeError: This oslo.messaging still has its own (up to 14.9.3).
    """
    if importlib.util.find_spec(OLD_DRIVER) is not None:
        raise RuntimeError(
            "this oslo.messaging has a driver of its own for amqp://, which Cogwork's would clash "
            "with: cogwork[oslo] needs oslo.messaging 15.0.0 or newer (that driver itself works "
            "with Cogwork too, where cogwork[oslo] is not installed)"
        )
