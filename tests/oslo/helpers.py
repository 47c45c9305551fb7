"""Transports of oslo.messaging with a configuration of their own."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import oslo_messaging
from oslo_config import cfg
from oslo_messaging.conffixture import ConfFixture

from cogwork.oslo.options import GROUP, OPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from oslo_messaging import NotificationTransport, RPCClient, RPCTransport


def configuration(**options: object) -> cfg.ConfigOpts:
    """Return a fresh configuration with these options of the driver's group."""
    conf = cfg.ConfigOpts()
    conf([])
    ConfFixture(conf).setUp()  # oslo.messaging registers some options with its global one only
    conf.register_opts(OPTIONS, group=GROUP)
    for name, value in options.items():
        conf.set_override(name, value, group=GROUP)
    return conf


@contextmanager
def rpc(url: str, **options: object) -> Iterator[RPCTransport]:
    """A transport for RPC."""
    transport = oslo_messaging.get_rpc_transport(configuration(**options), url=url)
    try:
        yield transport
    finally:
        transport.cleanup()


@contextmanager
def notifying(url: str, **options: object) -> Iterator[NotificationTransport]:
    """A transport for notifications."""
    transport = oslo_messaging.get_notification_transport(configuration(**options), url=url)
    try:
        yield transport
    finally:
        transport.cleanup()


def client(
    transport: RPCTransport,
    topic: str,
    target: dict[str, object] | None = None,
    **options: object,
) -> RPCClient:
    """A client of a topic."""
    made = oslo_messaging.Target(topic=topic, **(target or {}))
    return oslo_messaging.get_rpc_client(transport, made, **options)


def when(ready: Callable[[], object], then: Callable[[], object]) -> threading.Thread:
    """Do something, in a thread, as soon as something else has returned."""

    def work() -> None:
        ready()
        then()

    thread = threading.Thread(target=work)
    thread.start()
    return thread
