"""Queues that have a part in every container: what is told of backlogs, and who pulls from whom.

Theory of operation. An item stays in the shard of the container that accepted it. A container
tells the others how many items wait with it, in steps of two. Where a container has consumers of
the queue, each of them gets an upstream from every shard with a backlog: a link by which that shard
sends it what its own consumers cannot take, for as much credit as the consumer's own shard leaves
it. So balance, overflow and back-pressure are credit, and nothing more.

A client that comes from another container may hold items of shards elsewhere. Their tags say which:
its attach is answered once these have said, on upstreams that present the tags, what has become of
each; those that do not answer in time know nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from cogwork.amqp.errors import AmqpError, Condition
from cogwork.amqp.extensions import CONSUMER_LOST
from cogwork.amqp.performatives import Attach, Role, SenderSettleMode
from cogwork.amqp.terminus import COPY, Source, Target
from cogwork.container.federation.backlogs import Backlogs
from cogwork.container.federation.consumer_terms import HANDED, TAG_BYTES, terms_of
from cogwork.container.federation.questions import OwnerAway
from cogwork.container.federation.shards import DURABLE_LIFE, shard_of
from cogwork.container.federation.upstreams import OWNER, Consumer, Upstream
from cogwork.container.mesh.elsewhere import Elsewhere
from cogwork.container.mesh.names import (
    CONSUMER,
    HOMED,
    MARKS_REDELIVERED,
    OWNED,
    REMOTE_CONSUMER,
    VHOST,
)
from cogwork.dataplane.queue.federated_consumer import FederatedConsumer
from cogwork.dataplane.queue.upstream_link import UpstreamLink
from cogwork.plugin.capabilities import Shareable, replica_of
from cogwork.plugin.node import Departure
from cogwork.plugin.resumption import resume

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Mapping

    from cogwork.amqp.outcomes import DeliveryState
    from cogwork.amqp.types import Symbol
    from cogwork.container.mesh.service import MeshService
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.dataplane.link import Link
    from cogwork.plugin.node import Node, Subscription
    from cogwork.router.mesh.messages import Interest

__all__ = ("QueueFederation",)

BROKEN_S = 5.0
"""So long a consumer keeps what it has from a shard that cannot be reached; then it has to go,
before the shard gives its items to others."""

UNHEARD_S = 60.0
"""So long it is kept what consumers have settled, for a shard that cannot be reached: as a rule it
has given its items to others by then."""

ANSWER_S = 2.0
"""So long shards elsewhere have to say what has become of a client's items, and then once more to
send those that go on: less than a client waits."""

PRESENTED_MAX = 1000
"""Items elsewhere that a client can go on with: their tags fit into a frame."""

IDLE_S = 30.0
"""An upstream that has brought nothing for so long is ended."""

FETCH_TIMEOUT_S = 10.0
"""So long an owner has to send one item, or to say that it has none."""

CUT_OFF_S = 10.0
"""So long a shard waits to hear what has come of what it sent on an upstream that broke."""

log = logging.getLogger("cogwork")


class QueueFederation:
    """The consumers of one virtual host's queues, fed from other containers, too."""

    def __init__(self, mesh: MeshService, vhost: VirtualHost) -> None:
        self._mesh = mesh
        self._vhost = vhost
        self._consumers: dict[str, dict[Subscription, Consumer]] = {}
        # Those with anything elsewhere, or about to go: for all others time changes nothing.
        self._timed: dict[Consumer, None] = {}
        self._shards = Elsewhere()
        self._backlogs = Backlogs(mesh, vhost)
        self._count = 0

    # -- this container's consumers

    def add_consumer(
        self,
        node: Node,
        subscription: Subscription,
        attach: Attach | None = None,
        *,
        claim: Mapping[str, int] | None = None,
    ) -> bool:
        """Let a consumer of a queue receive from other containers.

        Args:
            node: The queue here, which feeds the consumer already.
            subscription: The consumer.
            attach: How it attached; None where it speaks AMQP 0-9-1.
            claim: What one of AMQP 0-9-1 wants of the queue's owner: `exclusive`, `priority`.

        Returns:
            Whether its link is answered from here, when it is known what has become of the items
            that it presents.
        """
        if not isinstance(node, Shareable) or subscription.source.distribution_mode == COPY:
            return False
        federated = FederatedConsumer(node.store, subscription.link)
        address = subscription.address
        if attach is None:
            attach = Attach(name="", handle=0, role=Role.RECEIVER, source=subscription.source)
        self._count += 1
        name = f"{self._mesh.id}.{self._mesh.incarnation:x}/{self._count}"
        keeps_order = node.is_ordered
        terms = terms_of(attach, address)
        consumer = Consumer(
            address, subscription, attach, terms, federated, keeps_order, node, name, claim=claim
        )
        self._consumers.setdefault(address, {})[subscription] = consumer
        self._expect(consumer)
        for container in self._wanted(address, consumer):
            self._open_upstream(consumer, container)
        return bool(consumer.asked)

    async def fetch(self, node: Shareable, subscription: Subscription) -> bool:
        """Have a consumer that takes one item get it from the queue's owner; tell if there is any.

        Args:
            node: The queue here, which another container owns; it feeds the consumer already.
            subscription: The consumer. `leave_consumer` is to be called after it.

        Raises:
            OwnerAway: The owner cannot be reached, or does not answer.
        """
        fetched: Future[bool] = asyncio.get_running_loop().create_future()
        self.add_consumer(node, subscription, claim={"fetch": 1})
        consumer = self._consumers[subscription.address][subscription]
        consumer.fetched = fetched
        self._mesh.core.flush()
        try:
            return await asyncio.wait_for(fetched, FETCH_TIMEOUT_S)
        except TimeoutError:
            replica = replica_of(node)
            owner = None if replica is None else replica.owner
            raise OwnerAway(subscription.address, owner or "") from None

    def _expect(self, consumer: Consumer) -> None:
        """Find out whose the items are that a client presents and that are not of this shard."""
        subscription = consumer.subscription
        tags = [
            tag
            for tag in subscription.unsettled
            if tag not in subscription.known and len(tag) == TAG_BYTES
        ]
        homes = self._homes(consumer.node) if tags else {}
        for tag in tags[: min(PRESENTED_MAX, consumer.terms.items_max)]:
            container = homes.get(int.from_bytes(tag[:4], "big"))
            if container is not None:
                consumer.federated.expect(container, tag)
                consumer.asked.add(container)
                self._timed[consumer] = None

    def _homes(self, node: Shareable) -> dict[int, str]:
        """Return the other containers by the number of their shards of a queue."""
        replica = replica_of(node)
        if replica is not None:
            return {} if replica.epoch is not None else {node.store.shard: OWNER}
        known = (record.advertisement for record in self._mesh.mesh.database)
        return {
            shard_of(each.origin, life): each.origin
            for each in known
            if each.origin != self._mesh.id
            for life in (each.life or each.incarnation, DURABLE_LIFE)
        }

    def answered(self, consumer: Consumer, container: str) -> None:
        """Take note that a shard has said what has become of the items that a client presents."""
        if container in consumer.asked:
            consumer.asked.discard(container)
            if not consumer.asked:
                self._begin(consumer)

    def _begin(self, consumer: Consumer) -> None:
        """Answer a client's attach."""
        link: Link = consumer.subscription.link.owner
        consumer.asked_s = time.monotonic()
        link.answer()
        consumer.federated.begin()

    def remove_consumer(self, subscription: Subscription) -> None:
        """End a consumer's upstreams, and tell the shards whether it has gone in order."""
        consumers = self._consumers.get(subscription.address, {})
        consumer = consumers.pop(subscription, None)
        if consumer is None:
            return
        self._timed.pop(consumer, None)
        if not consumers:
            del self._consumers[subscription.address]
        unsaid = consumer.federated.containers()
        error = None
        if subscription.departure is not Departure.ORDERLY:
            text = "the consumer's connection is lost"
            error = AmqpError(condition=CONSUMER_LOST, description=text)
        for container, upstream in list(consumer.upstreams.items()):
            if container in unsaid:
                # The shard has not heard yet what the consumer had seen: it is in doubt.
                upstream.link.detach(closed=False)
            else:
                upstream.link.detach(error)
        consumer.federated.close()

    def leave_consumer(self, subscription: Subscription) -> None:
        """Let a consumer of AMQP 0-9-1 go, as soon as all that it has is acknowledged.

        So long its channel may still do so.
        """
        consumer = self._consumers.get(subscription.address, {}).get(subscription)
        if consumer is None:
            return
        consumer.is_kept = consumer.is_leaving = True
        self._timed[consumer] = None
        consumer.federated.refresh()
        self._end_leaving(consumer)

    def _end_leaving(self, consumer: Consumer) -> bool:
        """End the upstreams of a consumer that has gone and has nothing; tell if it was one."""
        subscription = consumer.subscription
        if not consumer.is_leaving or subscription.link.unsettled:
            return False
        # What is still on its way here was seen by nobody; else the shard has to decide over it.
        if consumer.node.store.redelivers_in_doubt:
            subscription.departure = Departure.ORDERLY
        self.remove_consumer(subscription)
        return True

    def keep_consumer(self, subscription: Subscription) -> bool:
        """Keep what a consumer has from other containers until its link is resumed or given up.

        Returns:
            Whether it has anything. `remove_consumer` is called in any case.
        """
        consumer = self._consumers.get(subscription.address, {}).get(subscription)
        if consumer is None:
            return False
        consumer.is_kept = True
        has_any = any(upstream.end.unsettled for upstream in consumer.upstreams.values())
        consumer.federated.refresh()
        return has_any or bool(consumer.federated.containers())

    # -- other containers' shards

    def take_interest(self, container: str, interest: Interest) -> None:
        """Take note of a shard with a backlog."""
        self._shards.take(container, interest)
        for consumer in self._consumers.get(interest.address, {}).values():
            if not consumer.is_kept:
                self._open_upstream(consumer, container)

    def lose_interest(self, container: str, interest: Interest) -> None:
        """Take note that a shard has no backlog any more: its upstreams end once they are idle."""
        self._shards.lose(container, interest)

    def restore(self) -> None:
        """Open the upstreams that should be open and are not."""
        for address, consumers in self._consumers.items():
            for consumer in consumers.values():
                for container in self._wanted(address, consumer):
                    self._open_upstream(consumer, container)

    def _wanted(self, address: str, consumer: Consumer) -> set[str]:
        """List the containers with a backlog, and those from which the consumer has something.

        Those count, too, that may have sent what has not come.
        """
        if replica_of(consumer.node) is not None:
            return set() if self._owner_of(consumer) is None else {OWNER}
        if consumer.is_kept:
            return {*consumer.federated.containers(), *consumer.cut_off}
        return {*self._shards.at(address), *consumer.federated.containers(), *consumer.cut_off}

    def _owner_of(self, consumer: Consumer) -> str | None:
        """Return the other container that owns a queue."""
        replica = replica_of(consumer.node)
        assert replica is not None
        return None if replica.epoch is not None else replica.owner

    def follow(self, address: str, owner: str | None) -> None:
        """Have consumers of a replicated queue receive from its owner alone."""
        for consumer in self._consumers.get(address, {}).values():
            upstream = consumer.upstreams.get(OWNER)
            if upstream is not None and upstream.supplier != owner:
                upstream.link.detach(closed=False)
            if owner is not None:
                self._open_upstream(consumer, OWNER)

    def own(self, address: str) -> None:
        """Leave to this container's store what consumers have of a replicated queue."""
        for consumer in self._consumers.get(address, {}).values():
            upstream = consumer.upstreams.get(OWNER)
            if upstream is not None:
                upstream.link.detach(closed=False)
            consumer.federated.adopt(OWNER)
            self._resume_here(consumer)

    def _resume_here(self, consumer: Consumer) -> None:
        """Answer from here what a client presents that waits for the owner's answer."""
        tags = list(consumer.federated.expected)
        subscription = consumer.subscription
        resume(consumer.node.store, subscription, tags)
        for tag in tags:
            consumer.federated.forget(tag)
        self.answered(consumer, OWNER)

    def _open_upstream(self, consumer: Consumer, container: str) -> None:
        if container in consumer.upstreams:
            return
        supplier = self._owner_of(consumer) if container == OWNER else container
        session = None if supplier is None else self._mesh.tunnels.to(supplier)
        if session is None:
            self._mesh.restoration.later()
            return
        self._count += 1
        link = session.open_link(
            f"{self._mesh.id}/{self._vhost.name}/loan/{self._count}", Role.RECEIVER
        )
        end = UpstreamLink(session.end, link.handle, consumer.federated, container)
        end.keeps_order = consumer.keeps_order
        end.items_max = consumer.terms.items_max
        tags = consumer.federated.tags_of(container)
        upstream = Upstream(self, consumer, container, supplier or "", end, tags)
        upstream.link = link
        link.context = upstream
        consumer.upstreams[container] = upstream
        self._timed[consumer] = None
        link.carry(end)
        attach, terms = consumer.attach, consumer.terms
        properties: dict[Symbol, object] = {VHOST: self._vhost.name, REMOTE_CONSUMER: consumer.name}
        replica = replica_of(consumer.node)
        if replica is not None:
            properties[OWNED if replica.home is None else HOMED] = True
        if consumer.claim is not None and container == OWNER:
            properties[CONSUMER] = dict(consumer.claim)
        link.attach(
            source=Source(
                address=consumer.address,
                filter=terms.filter,
                default_outcome=consumer.subscription.source.default_outcome,
            ),
            target=Target(),
            # Never settled by the shard: what comes may have to go back. Where the consumer wants
            # that, its own link does it.
            snd_settle_mode=SenderSettleMode.MIXED,
            rcv_settle_mode=attach.rcv_settle_mode,
            unsettled={tag: self._said(consumer, tag) for tag in tags} or None,
            max_message_size=terms.size_bytes_max,
            desired_capabilities=(MARKS_REDELIVERED, *terms.capabilities),
            properties=properties,
        )

    @staticmethod
    def _said(consumer: Consumer, tag: bytes) -> DeliveryState | None:
        """Return what a shard is to know of an item that a consumer has from an earlier link."""
        is_held = tag in consumer.federated.expected and tag in consumer.terms.held
        return HANDED if is_held or consumer.federated.is_handed(tag) else None

    def lost(self) -> None:
        """Have what was lost opened again."""
        self._mesh.restoration.later()

    # -- time

    def tick(self, now_s: float) -> None:
        """Tell the others of backlogs that have changed much, and ends idle upstreams."""
        self._backlogs.tick()
        for consumer in list(self._timed):
            if self._end_leaving(consumer):
                continue
            if consumer.cut_off:
                _forget_old(consumer.cut_off, now_s - CUT_OFF_S)
            self._end_silence(consumer, now_s)
            self._end_idle(consumer, now_s)
            self._end_broken(consumer, now_s)
            self._end_unheard(consumer, now_s)
            if consumer in self._timed and not consumer.has_remote_items:
                del self._timed[consumer]

    def _end_silence(self, consumer: Consumer, now_s: float) -> None:
        """Wait no longer for shards that do not say, or do not send, what a client presents."""
        if not consumer.federated.expected or now_s - consumer.asked_s <= ANSWER_S:
            return
        is_asked = bool(consumer.asked)
        for container in consumer.asked or set(consumer.federated.expected.values()):
            self._forsake(consumer, container)
        consumer.asked.clear()
        if is_asked:
            self._begin(consumer)

    def _forsake(self, consumer: Consumer, container: str) -> None:
        """Leave it to a shard what becomes of the items that are awaited from there."""
        federated = consumer.federated
        tags = [tag for tag, home in federated.expected.items() if home == container]
        for tag in tags:
            federated.forget(tag)
        upstream = consumer.upstreams.get(container)
        if tags and upstream is not None:
            upstream.link.detach(closed=False)

    def _end_idle(self, consumer: Consumer, now_s: float) -> None:
        """End upstreams that bring nothing, once all has come that was sent on their credit."""
        for container, upstream in list(consumer.upstreams.items()):
            end = upstream.end
            if end.deliveries != upstream.deliveries or end.unsettled:
                upstream.deliveries = end.deliveries
                upstream.busy_s = now_s
            is_idle = now_s - upstream.busy_s > IDLE_S
            is_idle = is_idle and container not in self._wanted(consumer.address, consumer)
            if is_idle and not end.is_resting:
                if upstream.link.remote is not None:
                    end.rest()
            elif end.is_resting and not end.drain:
                if is_idle:
                    upstream.link.detach()
                else:
                    end.is_resting = False
                    consumer.federated.refresh()

    def _end_broken(self, consumer: Consumer, now_s: float) -> None:
        """Detach a consumer whose items another container will soon give to others."""
        containers = consumer.federated.containers(unsettled_only=True)
        if not containers or replica_of(consumer.node) is not None:
            consumer.broken_since_s = None
        elif consumer.broken_since_s is None:
            consumer.broken_since_s = now_s
        elif now_s - consumer.broken_since_s > BROKEN_S:
            link: Link = consumer.subscription.link.owner
            log.warning(
                "detached consumer %r: it has items of container %s, which is unreachable",
                link.name,
                ", ".join(containers),
            )
            if consumer.is_kept:
                self.remove_consumer(consumer.subscription)
                return
            link.detach(
                AmqpError(
                    condition=Condition.LINK_DETACH_FORCED,
                    description=f"items of container {containers[0]} cannot be settled any more",
                )
            )

    def _end_unheard(self, consumer: Consumer, now_s: float) -> None:
        """Forget what another container has not heard for long: it may be gone for good."""
        away = [each for each in consumer.federated.containers() if each not in consumer.upstreams]
        consumer.unheard = {each: consumer.unheard.get(each, now_s) for each in away}
        for container, since_s in consumer.unheard.items():
            if now_s - since_s > UNHEARD_S:
                consumer.federated.forget_settled(container)


def _forget_old(since_s: dict[str, float], before_s: float) -> None:
    for container, at_s in list(since_s.items()):
        if at_s < before_s:
            del since_s[container]
