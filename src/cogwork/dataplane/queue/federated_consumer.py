"""A consumer that gets items of other containers' shards, too: between it and its own store.

Theory of operation. What a consumer has is kept by the attempt's tag, so it outlives the link it came
by: after a break the next one presents the tags, what is sent again is recognised, and what the
consumer has said meanwhile is passed on. That holds for what the consumer has settled, too, or got
settled: it passes back unsettled, and is kept until the shard has heard it.

A client that comes from another container presents tags of its own. Its attach is not answered until
the shards have been asked (`expect`, `begin`); what goes on is awaited, and until it has come all of
the consumer's credit is for that.
"""

import cython
from cython.cimports.cogwork.dataplane.queue.remote_items import RemoteItem, RemoteItems
from cython.cimports.cogwork.dataplane.queue.upstream_link import UpstreamLink
from cython.cimports.cogwork.dataplane.terminus import KEEP, REFUSE, SETTLE, UNKNOWN
from cython.cimports.cogwork.dataplane.transport.shipment import (
    ACCEPTED,
    LOST,
    NOWHERE,
    RECEIVED,
    REJECTED,
    RELEASED,
    fill_verdict,
    state_of,
)

from cogwork.dataplane.queue.refusals import IN_DOUBT_STATE, STALE_STATE

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class FederatedConsumer(Terminus):
    """Stands between a consumer and its store: what credit the store has no use for goes to upstreams.

    Attributes:
        consumer: The consumer's end.
        store: Who feeds it first.
        upstreams: From other containers' shards.
    """

    def __init__(self, store: Terminus, consumer: ConsumerEnd):
        """Start with no upstreams yet.

        Args:
            store: Which feeds the consumer already.
            consumer: Its end.
        """
        self.store = store
        self.consumer = consumer
        self.link = consumer if isinstance(consumer, OutgoingLink) else None
        consumer.is_federated = True
        self.upstreams = []
        self.remote_items = RemoteItems()
        self.places = []
        self.broken = {}
        self.expected = {}
        self.adopted = {}
        consumer.core.register(self)
        consumer.feeder = self

    # -- credit

    def on_ready(self, link):
        return self.serve()

    def serve(self):
        """Let the store and the upstreams use the consumer's credit."""
        if not self.expected and not self.is_pending:
            self.store.on_ready(self.consumer)
        return self.share_out()

    def has_waiting(self):
        return self.store.has_waiting()

    def share_out(self):
        """Share the consumer's credit out among the upstreams.

        Each gets some as long as there is any: a shard that has nothing to send must not keep it
        from the others.
        """
        upstream: UpstreamLink
        count: uint32_t = cython.cast(uint32_t, len(self.upstreams))
        spare: uint32_t = 0 if self.is_pending else self.consumer.spare_credit()
        share: uint32_t
        has_any: cython.bint = spare > 0
        for upstream in self.upstreams:
            share = min(spare, upstream.awaited) if self.expected else (spare + count - 1) // count
            spare -= share
            upstream.refresh(1 if share == 0 and has_any and not self.expected else share)
            count -= 1
        return 0

    def replenish(self, upstream):
        """Give an upstream that has used its credit up what the others leave, or else a little."""
        rest: uint32_t = self.consumer.spare_credit()
        other: UpstreamLink
        if rest == 0:
            return 0
        if self.is_pending or self.expected:
            return 0
        for other in self.upstreams:
            if other is not upstream:
                rest -= min(rest, other.credit)
        return upstream.refresh(max(rest, cython.cast(uint32_t, 1)))

    def add(self, upstream: UpstreamLink) -> None:
        """Add a link from another container's shard."""
        self.upstreams.append(upstream)
        self.share_out()

    def remove(self, upstream: UpstreamLink) -> None:
        """Take an upstream out that has ended."""
        if upstream in self.upstreams:
            self.upstreams.remove(upstream)
            self.share_out()

    def refresh(self) -> None:
        """Look again at what the consumer can take."""
        self.share_out()

    # -- items

    def seat(self, upstream):
        """Find a place for an upstream, by which its items name it."""
        if None in self.places:
            at = self.places.index(None)
            self.places[at] = upstream
            return at
        self.places.append(upstream)
        return cython.cast(int32_t, len(self.places) - 1)

    def upstream_of(self, item):
        """Return the link that an item came by; None while that is broken."""
        return None if item.place < 0 else self.places[item.place]

    def part(self, upstream):
        """Keep what the consumer has from an upstream that ends."""
        token: uint64_t
        while upstream.chain.first != NOWHERE:
            token = self.remote_items.token_at(upstream.chain.first)
            self.remote_items.unlink(cython.address(upstream.chain), token)
            self.broken[self.remote_items.tag_of(token)] = (token, upstream.container)
        self.places[upstream.place] = None
        return 0

    def forward(self, upstream, s):
        """Give an item to the consumer, under the tag it came with."""
        token: uint64_t = self.remote_items.make(s.tag, s.tag_size)
        self.remote_items.link(
            cython.address(upstream.chain), token, upstream.place, cython.cast(uint32_t, s.token)
        )
        if self.link is not None:
            self.remote_items.find(token).outgoing_id = self.link.session.next_delivery_id
        s.source_index = self.index
        s.source_generation = self.generation
        s.token = token
        self.consumer.take(s)
        return self.replenish(upstream) if upstream.credit == 0 else 0

    def take_again(self, upstream, incoming_id, tag):
        """Recognise an item that the consumer has already; pass on what has been said of it."""
        item: cython.pointer(RemoteItem)
        token: uint64_t
        kept = self.broken.pop(tag, None)
        if kept is None or not self._has(kept[0]):
            return False
        token = kept[0]
        item = self.remote_items.find(token)
        self.remote_items.link(cython.address(upstream.chain), token, upstream.place, incoming_id)
        if upstream.owed:
            upstream.owed -= 1
        if item.code:
            self._pass_back(item, token)
        return True

    def resolve_outcome(self, token, verdict):
        """Take what the consumer says; it is kept until the shard confirms that it has heard it."""
        item: cython.pointer(RemoteItem) = self.remote_items.find(token)
        upstream: UpstreamLink
        if item == cython.NULL:
            return UNKNOWN if verdict.code == ACCEPTED else SETTLE
        if self.adopted and token in self.adopted:
            return self._claim_here(token, verdict)
        upstream = self.upstream_of(item)
        if verdict.code == LOST:
            # The consumer has gone, and its upstreams will: the shards know what that means.
            if upstream is not None:
                self.remote_items.unlink(cython.address(upstream.chain), token)
            self.remote_items.drop(token)
            return SETTLE
        item.code = verdict.code
        item.settled = verdict.settled
        if verdict.settled and (verdict.code == RECEIVED or verdict.code == 0):
            item.code = RELEASED  # what a queue takes it for; it is to answer
        is_said = item.code in (ACCEPTED, RELEASED, RECEIVED)
        self.remote_items.keep_state(token, None if is_said else state_of(verdict))
        self._pass_back(item, token)
        return SETTLE if verdict.settled else KEEP

    def _pass_back(self, item, token):
        """Return to the shard what the consumer said, if there is a way."""
        verdict: Verdict
        session: Session
        upstream: UpstreamLink = self.upstream_of(item)
        if upstream is None:
            return 0
        session = upstream.session
        state: bytes = self.remote_items.state_of(token)
        fill_verdict(cython.address(verdict), item.code, state)
        session.settle(
            cython.address(session.to_sender),
            True,
            item.incoming_id,
            cython.address(verdict),
            False,
        )
        return 0

    def _confirm(self, token, code, state):
        """Settle an item that no upstream has any more, and forget it."""
        item: cython.pointer(RemoteItem) = self.remote_items.find(token)
        settled: cython.bint
        outgoing_id: uint32_t
        if item == cython.NULL:
            return 0
        settled = item.settled
        outgoing_id = item.outgoing_id
        self.remote_items.drop(token)
        if settled or self.link is None or self.link.detached:
            return 0
        self.link.unsettled -= 1
        self.link.session.confirm(outgoing_id, code, state)
        return 0

    # -- what the client has from another container

    def expect(self, container: str, tag: bytes) -> None:
        """Wait for an item; the consumer gets nothing until `begin`."""
        self.is_pending = True
        self.expected[tag] = container

    def forget(self, tag: bytes) -> None:
        """Expect an item no more."""
        del self.expected[tag]
        self.serve()

    def begin(self) -> None:
        """Let items come: the client's attach is answered."""
        self.is_pending = False
        self.serve()

    def resume(self, upstream, s, tag):
        """Give the client an item that it has from another container; return whether it is one.

        Where the client took its credit back, the item is left as it is: for the shard it is in doubt.
        """
        if tag not in self.expected:
            return False
        if self.consumer.is_ready():
            del self.expected[tag]
            if upstream.awaited:
                upstream.awaited -= 1
            self.forward(upstream, s)
            self.serve()
        return True

    # -- breaks

    def tags_of(self, container: str) -> list:
        """List the tags of what the consumer has from a container, with no upstream."""
        tags: list = [tag for tag, home in self.expected.items() if home == container]
        for tag, kept in self.broken.items():
            if kept[1] == container and self._has(kept[0]):
                tags.append(tag)
        return tags

    def is_handed(self, tag: bytes) -> bool:
        """Tell whether the consumer has said something of an item that it has with no upstream."""
        kept = self.broken.get(tag)
        return kept is not None and self._has(kept[0]) and self.remote_items.find(kept[0]).code != 0

    def containers(self, unsettled_only: bool = False) -> list:
        """List where the consumer has something from, or something unsettled, with no upstream."""
        found: list = list(set(self.expected.values()))
        for token, container in self.broken.values():
            if container in found or not self._has(token):
                continue
            if not unsettled_only or not self.remote_items.find(token).settled:
                found.append(container)
        return found

    def forget_settled(self, container: str) -> None:
        """Leave it to a shard that cannot be reached what becomes of what is settled here."""
        for tag, kept in list(self.broken.items()):
            is_its = kept[1] == container and self._has(kept[0])
            if is_its and self.remote_items.find(kept[0]).settled:
                self.close_tag(tag, ACCEPTED)

    def _has(self, token):
        return self.remote_items.find(token) != cython.NULL

    def close_tag(self, tag: bytes, code: int, state: bytes = None) -> None:
        """Confirm or refuse what a shard says is over, as it was asked after a break."""
        kept = self.broken.pop(tag, None)
        if kept is not None:
            self._confirm(kept[0], code, state)

    # -- a shard that has come here

    def adopt(self, container: str) -> None:
        """Leave to this container's store, which has another one's items now, what came from there."""
        for tag, kept in list(self.broken.items()):
            if kept[1] == container:
                del self.broken[tag]
                if self._has(kept[0]):
                    self._adopt_one(tag, kept[0])

    def _adopt_one(self, tag, token):
        """Have the store go on with an attempt, and learn what was said of it meanwhile."""
        said: cython.int = self.remote_items.find(token).code
        state: bytes = self.remote_items.state_of(token)
        code: cython.int = self.store.resume(self.consumer, [tag], (tag,), True)[0]
        if code == KEEP:
            self.adopted[token] = tag
            code = self._claim(token, said, state) if said and said != RECEIVED else KEEP
        if code in (REFUSE, UNKNOWN):
            return self._confirm(token, REJECTED, STALE_STATE if code == REFUSE else IN_DOUBT_STATE)
        return self._confirm(token, said if said else ACCEPTED, state) if code == SETTLE else 0

    def _claim(self, token, code, state):
        """Tell to the store what became of an attempt; what is over by that is adopted no more."""
        tag: bytes = self.adopted[token]
        number, attempt = int.from_bytes(tag[4:12], "big"), int.from_bytes(tag[12:], "big")
        answer = self.store.claim(number, attempt, code, state)
        if answer != KEEP:
            del self.adopted[token]
        return answer

    def _claim_here(self, token, verdict):
        if verdict.code == RECEIVED and not verdict.settled:
            return KEEP  # the store takes what was adopted for received
        state: bytes = None if verdict.code in (ACCEPTED, LOST) else state_of(verdict)
        code: cython.int = self._claim(token, verdict.code, state)
        if code != KEEP:
            self.remote_items.drop(token)
        return code

    def close(self) -> None:
        """Leave the consumer to its store."""
        upstream: UpstreamLink
        for upstream in self.places:
            if upstream is not None:
                upstream.chain.first = upstream.chain.last = NOWHERE
        if self.consumer.feeder is self:
            self.consumer.feeder = self.store
        self.consumer.is_federated = False
        self.remote_items.clear()
        self.expected.clear()
        self.broken.clear()
        self.adopted.clear()
        self.consumer.core.unregister(self)
