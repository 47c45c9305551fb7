"""A shard that lends its items through a tunnel to another container's consumer."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, cast

import peers
from text_messages import message

from cogwork.amqp.frames import FrameReader
from cogwork.amqp.outcomes import DeliveryState, Received
from cogwork.amqp.performatives import Transfer, decode_performative
from cogwork.dataplane.addresses.entry import CLOSEST_CODE, AddressEntry
from cogwork.dataplane.core import Core
from cogwork.dataplane.queue.federated_consumer import FederatedConsumer
from cogwork.dataplane.queue.store import SETTLE_CODE, STALE_CODE, Store
from cogwork.dataplane.queue.upstream_link import UpstreamLink
from cogwork.dataplane.transport.outgoing import OutgoingLink
from cogwork.dataplane.transport.session_end import Session
from cogwork.dataplane.transport.wire import Wire

ACCEPTED, REJECTED = 0x24, 0x25
RECEIVED = Received(section_number=0, section_offset=0)
if TYPE_CHECKING:
    from cogwork.dataplane.transport.output import WireOwner

WINDOW = 1 << 20


class Shard:
    """One container's part of the queue, with a client that publishes there."""

    def __init__(self, number: int, **options: Any) -> None:
        self.core = Core()
        self.store = Store(self.core, number, **options)
        self.store.handler = self
        self.store.keeps_dead = True
        self.entry = AddressEntry(self.core, "queue/a", CLOSEST_CODE)
        self.entry.add_outlet(self.store)
        self.store.inlet = self.entry
        self.client = peers.Peer(self.core)
        self.publisher = self.client.publisher(self.entry)
        self.dead: list[tuple[str, bytes | None, int]] = []

    def on_batch(self, store: Store) -> None:
        self.dead += [(why, error, failures) for why, _, error, failures in store.take_exceptions()]

    def send(self, *bodies: str, **sections: object) -> None:
        for text in bodies:
            self.client.send(self.publisher, message(text, **sections))

    def counts(self, *names: str) -> list[object]:
        counted = self.store.counts()
        return [counted[name] for name in names]


class End:
    """One end of the tunnel between two containers."""

    def __init__(self, core: Core, frame_size: int) -> None:
        self.core = core
        owner = cast("WireOwner", self)  # it hears of nothing else
        self.wire = Wire(core, owner, 65536)
        self.wire.start_framing()
        self.wire.max_frame_out = frame_size
        self.session = Session(self.wire, 0, 0, WINDOW, WINDOW)
        self.wire.map_session(0, self.session)

    def on_sender_disposition(
        self, session: Session, first: int, last: int, settled: bool, state: bytes
    ) -> None:
        """Confirm, as a container does for the upstreams of a tunnel."""
        code = state[2] if len(state) > 2 else ACCEPTED
        for link in session.links:
            if settled and isinstance(link, UpstreamLink):
                link.confirm(first, last, code, None if code == ACCEPTED else state)


class Tunnel:
    """A tunnel from a shard's container to the consumer's, with one link on it."""

    def __init__(
        self,
        shard: Shard,
        federated: FederatedConsumer,
        *,
        frame_size: int = 65536,
        **options: bool,
    ) -> None:
        self.shard = shard
        self.federated = federated
        self.near = End(federated.consumer.core, frame_size)
        self.far = End(shard.core, frame_size)
        self.upstream = UpstreamLink(self.near.session, 1, federated, "far")
        self.near.session.map_link(1, self.upstream)
        self.remote_consumer = OutgoingLink(self.far.session, 1)
        self.far.session.map_link(1, self.remote_consumer)
        shard.store.add_consumer(self.remote_consumer, is_far=True, **options)
        self.heard: list[Transfer] = []
        self._reader = FrameReader(65536)

    def resume(self) -> list[int]:
        """Present what the consumer has from an earlier link, as `Upstream` does."""
        tags = self.federated.tags_of("far")
        codes = self.shard.store.resume(self.remote_consumer, tags)
        for tag, code in zip(tags, codes, strict=True):
            if code == STALE_CODE:
                self.federated.close_tag(tag, REJECTED)
            elif code == SETTLE_CODE:
                self.federated.close_tag(tag, ACCEPTED)
        return codes

    def attach(self) -> Tunnel:
        self.federated.add(self.upstream)
        self.run()
        return self

    def run(self, *, hears_back: bool = True) -> None:
        """Let both ends hear each other until there is nothing to hear; or the near one alone."""
        for _ in itertools.count():
            self.near.core.flush()
            self.far.core.flush()
            out = self.far.wire.take_output()
            back = self.near.wire.take_output() if hears_back else b""
            for each in self._reader.feed(out):
                if each.body and isinstance(said := decode_performative(each.body)[0], Transfer):
                    self.heard.append(said)
            self.near.wire.feed(out)
            self.far.wire.feed(back)
            if not out and not back:
                return

    def cut(self) -> None:
        """Lose the tunnel: nothing more is heard by either end."""
        self.federated.remove(self.upstream)
        self.upstream.detach()
        self.near.session.end()
        self.near.wire.stop()
        self.shard.store.remove_consumer(self.remote_consumer, is_over=False)
        self.remote_consumer.detach()
        self.far.session.end()
        self.far.wire.stop()
        self.near.core.flush()
        self.far.core.flush()
        self.shard.store.tick(self.shard.core.now)


class FederatedQueue:
    """A consumer in one container, whose shard is empty, and a shard in another one."""

    def __init__(
        self,
        *,
        credit: int = 10,
        presettles: bool = False,
        frame_size: int = 65536,
        marks: bool = False,
        **options: object,
    ) -> None:
        self.frame_size = frame_size
        self.marks = marks
        self.near, self.far = Shard(1), Shard(2, **options)
        self.far.store.in_doubt_timeout_s = 60.0
        self.consumer = peers.Peer(self.near.core)
        self.link = self.consumer.consumer(
            self.near.store, presettles=presettles, marks_received=marks
        )
        self.federated = FederatedConsumer(self.near.store, self.link)
        self.tunnel = self._tunnel().attach()
        if credit:
            self.flow(credit)

    def _tunnel(self) -> Tunnel:
        return Tunnel(
            self.far, self.federated, frame_size=self.frame_size, marks_received=self.marks
        )

    def flow(self, credit: int) -> None:
        self.consumer.flow(self.link, credit)
        self.tunnel.run()

    def deliver(self, *bodies: str, **sections: object) -> list[peers.Arrival]:
        """Have the other shard take items in; return what comes to the consumer of it."""
        self.far.send(*bodies, **sections)
        return self.take()

    def take(self) -> list[peers.Arrival]:
        self.tunnel.run()
        return self.consumer.take()

    def settle(
        self, arrival: peers.Arrival, state: DeliveryState | None = None, *, settled: bool = True
    ) -> None:
        self.consumer.settle(arrival, state, settled=settled)
        self.tunnel.run()

    def again(self) -> list[int]:
        """Open another tunnel after the last was cut; return what became of the attempts."""
        self.tunnel = self._tunnel()
        codes = self.tunnel.resume()
        self.tunnel.attach()
        return codes

    def confirmations(self) -> list[tuple[int, DeliveryState | None]]:
        """What the consumer was told of its claims."""
        self.consumer.hear()
        return [
            (number, each.state)
            for each in self.consumer.dispositions
            if each.settled
            for number in range(each.first, (each.last or each.first) + 1)
        ]
