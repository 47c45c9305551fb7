"""The shards of other containers that feed a consumer of this one: one upstream each."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cogwork.amqp.outcomes import Accepted, Rejected
from cogwork.amqp.states import LinkState
from cogwork.dataplane.queue.refusals import IN_DOUBT_STATE, STALE_STATE

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Mapping

    from cogwork.amqp.errors import AmqpError
    from cogwork.amqp.outcomes import DeliveryState
    from cogwork.amqp.performatives import Attach
    from cogwork.container.federation.consumer_terms import ConsumerTerms
    from cogwork.container.federation.queue_federation import QueueFederation
    from cogwork.dataplane.link import Link
    from cogwork.dataplane.queue.federated_consumer import FederatedConsumer
    from cogwork.dataplane.queue.upstream_link import UpstreamLink
    from cogwork.plugin.capabilities import Shareable
    from cogwork.plugin.node import Subscription

__all__ = ("OWNER", "Consumer", "Upstream")

ACCEPTED, REJECTED = 0x24, 0x25

OWNER = ""
"""Stands for the container that owns a replicated queue, whichever that is now."""

log = logging.getLogger("cogwork")


@dataclass(slots=True, eq=False)
class Upstream:
    """An upstream as Python sees it: the link of one consumer to one shard.

    Attributes:
        queue_federation: Of the virtual host.
        consumer: Whose it is.
        container: The shard's container, or `OWNER`.
        supplier: The container that the link leads to.
        end: The compiled half.
        tags: What the consumer has from an earlier link.
        deliveries: How many there were when it was looked at last.
        busy_s: When it brought something last.
    """

    queue_federation: QueueFederation
    consumer: Consumer
    container: str
    supplier: str
    end: UpstreamLink
    tags: list[bytes]
    deliveries: int = 0
    busy_s: float = field(default_factory=time.monotonic)
    link: Link = field(init=False)

    def attached(self, link: Link) -> None:
        """The shard answered: what it does not know any more is over.

        Where the upstream has been ended meanwhile, it is another one's to say so.
        """
        if self.end.detached:
            return
        self.consumer.cut_off.pop(self.container, None)
        remote = link.remote
        if remote is None or remote.source is None:
            return
        known = remote.unsettled or {}
        for tag in self.tags:
            if tag in self.consumer.federated.expected:
                self._learn(tag, known)
            elif tag not in known:
                self.consumer.federated.close_tag(tag, REJECTED, IN_DOUBT_STATE)
            elif isinstance(known[tag], Accepted):
                self.consumer.federated.close_tag(tag, ACCEPTED)
            elif isinstance(known[tag], Rejected):
                self.consumer.federated.close_tag(tag, REJECTED, STALE_STATE)
            else:
                self.end.owed += 1
        self.consumer.federated.add(self.end)
        if self.consumer.fetched is not None:
            self.end.grant(1, drain=True)
        self.queue_federation.answered(self.consumer, self.container)

    def _learn(self, tag: bytes, known: dict[bytes, DeliveryState | None]) -> None:
        """Take in what the shard says of an item that the client has from another container."""
        if tag in known:
            self.consumer.subscription.known[tag] = known[tag]
        if tag in known and not isinstance(known[tag], Accepted | Rejected):
            self.end.awaited += 1
        else:
            self.consumer.federated.forget(tag)

    def stopping(self, link: Link) -> None:
        """It is about to end.

        Where that is with its session, the shard may have sent something that has not come.
        """
        self.consumer.federated.remove(self.end)
        if self.consumer.upstreams.get(self.container) is self:
            del self.consumer.upstreams[self.container]
            if link.state is LinkState.DETACHED:
                self.consumer.cut_off[self.container] = time.monotonic()
        self.queue_federation.lost()

    def drained(self) -> None:
        """Take note that the shard has sent all that it had for the credit, or has nothing."""
        fetched = self.consumer.fetched
        if fetched is not None and not fetched.done():
            fetched.set_result(bool(self.end.deliveries))

    def detached(self, _link: Link, error: AmqpError | None) -> None:
        """It is over."""
        if error is not None:
            log.debug("remote items of container %s: %s", self.container, error.description)


@dataclass(slots=True, eq=False)
class Consumer:
    """A consumer of this container.

    Attributes:
        address: The queue. subscription: Its link, and what it asked for. attach: How it attached.
        terms: What shards elsewhere are told of that. federated: Its side of all upstreams.
        keeps_order: Whether the queue's groups are kept in order. node: The queue here. upstreams:
        By the shard's container. name: What shards know it by, whatever link it has. is_kept:
        Whether its link has been detached and may be resumed. is_leaving: Whether it goes once it
        has nothing unsettled.
        fetched: Of one that takes a single item: whether there was any. claim: What one of AMQP
        0-9-1 wants of the queue besides: `exclusive`, `priority`. cut_off: Whose upstreams
        have ended with their sessions, and when: these shards are to hear what
            has come.
        broken_since_s: Since when it has something from a shard that cannot be reached.
        unheard: Since when a container that cannot be reached may not have heard what was settled.
        asked: Whose shards are to say what has become of items that it presents.
        asked_s: When they were asked, or told to go on.
    """

    address: str
    subscription: Subscription
    attach: Attach
    terms: ConsumerTerms
    federated: FederatedConsumer
    keeps_order: bool
    node: Shareable
    name: str
    is_kept: bool = False
    is_leaving: bool = False
    fetched: Future[bool] | None = None
    claim: Mapping[str, int] | None = None
    cut_off: dict[str, float] = field(default_factory=dict)
    upstreams: dict[str, Upstream] = field(default_factory=dict)
    broken_since_s: float | None = None
    unheard: dict[str, float] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    asked_s: float = field(default_factory=time.monotonic)

    @property
    def has_remote_items(self) -> bool:
        """Whether it has, or may get, anything from another container, or is about to go."""
        return bool(
            self.upstreams or self.cut_off or self.is_leaving or self.federated.containers()
        )
