"""Audits of queues: what happens to their items, appended to streams.

Theory of operation. Which queues are audited, and to which stream, the configuration says; a
`QueueWatch` follows each. Each gets its turn with a batch of what has happened, and another one in
the loop's next turn where more waits.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cogwork.amqp.errors import CogworkError
from cogwork.container.telemetry.appender import Appender
from cogwork.container.telemetry.queue_watch import QueueWatch
from cogwork.dataplane.queue.audit_events import AuditEvents
from cogwork.dataplane.queue.histogram import Histogram
from cogwork.router.patterns import address_words, takes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cogwork.config.telemetry_settings import Audit
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.dataplane.queue.store import Store

__all__ = ("Audits", "HostAudits")

UNDER_WAY_MAX = 16384
"""Events that wait for one stream at once."""


class HostAudits:
    """The audits of one virtual host's queues; see `plugin.audits.Audits`."""

    def __init__(self, audits: Audits, vhost: str) -> None:
        """Take the container's.

        Args:
            audits: All of the container.
            vhost: The virtual host's name; empty for the default one.
        """
        self._audits = audits
        self._vhost = vhost

    def watch(
        self, address: str, store: Store, when_durable: Callable[[Callable[[bool], object]], object]
    ) -> QueueWatch | None:
        """Follow a queue."""
        return self._audits.watch(self._vhost, address, store, when_durable)


class Audits:
    """All audits of a container. Owned by the container."""

    def __init__(self, container_id: str, options: Sequence[Audit], *, times_items: bool) -> None:
        """Watch nothing yet.

        Args:
            container_id: The container's id.
            options: As configured.
            times_items: Whether it is counted how long items wait.
        """
        self._id = container_id
        self._options = [(each.vhost or "", address_words(each.queue), each) for each in options]
        self._times_items = times_items
        self._appenders: dict[str, Appender] = {}
        self._watches: list[QueueWatch] = []
        self._vhost: VirtualHost | None = None
        self._is_due = False

    def begin(self, vhost: VirtualHost) -> None:
        """Learn where the streams are, before the first queue is made.

        Args:
            vhost: The default virtual host.
        """
        self._vhost = vhost

    def of(self, vhost: str) -> HostAudits:
        """Return those of a virtual host; the default one's name is empty."""
        return HostAudits(self, vhost)

    def watch(
        self,
        vhost: str,
        address: str,
        store: Store,
        when_durable: Callable[[Callable[[bool], object]], object],
    ) -> QueueWatch | None:
        """Follow a queue of a virtual host, if that is wanted."""
        if self._times_items and not vhost:
            store.waits = Histogram()
        words = address_words(address)
        named = (it for host, wanted, it in self._options if host == vhost and takes(wanted, words))
        options = next(named, None)
        if options is None:
            return None
        audit_events = AuditEvents(
            store.items, store.shard, options.sample, has_digests=options.digest
        )
        store.audit_events = audit_events
        watch = QueueWatch(
            (self._id, f"{vhost}:{address}" if vhost else address),
            store,
            audit_events,
            sample=options.sample,
            appender=self._appender(options.stream),
            when_durable=when_durable,
            owner=self,
        )
        self._watches.append(watch)
        return watch

    def forget(self, watch: QueueWatch) -> None:
        """Follow a queue no longer."""
        self._watches.remove(watch)

    def _appender(self, stream: str) -> Appender:
        if stream not in self._appenders:
            if self._vhost is None:
                raise CogworkError("an audit of queues that has not begun")
            self._appenders[stream] = Appender(self._vhost, f"stream/{stream}", UNDER_WAY_MAX)
        return self._appenders[stream]

    def tick(self) -> None:
        """Have what has happened told, a batch of each queue in a turn of the loop."""
        self._is_due = False
        more = [watch.gather() for watch in self._watches]
        if any(more):
            self.soon()

    def flush(self) -> None:
        """Send what was appended."""
        if self._vhost is not None:
            self._vhost.core.flush()

    def soon(self) -> None:
        """Go on in the loop's next turn."""
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        self.tick()
        self.flush()
