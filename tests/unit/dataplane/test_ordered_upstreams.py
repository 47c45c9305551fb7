"""Items of groups that a shard lends to another container's consumer: none overtakes another."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import peers
import pytest

from cogwork.amqp.message import Data, Properties, Sections, decode_sections, encode_sections
from cogwork.dataplane.addresses.entry import CLOSEST_CODE, AddressEntry
from cogwork.dataplane.core import Core
from cogwork.dataplane.queue.federated_consumer import FederatedConsumer
from cogwork.dataplane.queue.store import Store
from cogwork.dataplane.queue.upstream_link import UpstreamLink
from cogwork.dataplane.transport.outgoing import OutgoingLink
from cogwork.dataplane.transport.session_end import Session
from cogwork.dataplane.transport.wire import Wire

if TYPE_CHECKING:
    from cogwork.dataplane.transport.output import WireOwner

WINDOW = 1 << 20


class Shard:
    """One container's part of an ordered queue, and a client there."""

    def __init__(self, number: int) -> None:
        self.core = Core()
        self.store = Store(self.core, number, is_ordered=True)
        self.entry = AddressEntry(self.core, "work/a", CLOSEST_CODE)
        self.entry.add_outlet(self.store)
        self.store.inlet = self.entry
        self.client = peers.Peer(self.core)
        self.publisher = self.client.publisher(self.entry)

    def send(self, group: str, *bodies: str) -> None:
        properties = Properties(group_id=group)
        for text in bodies:
            sections = Sections(properties=properties, body=Data([text.encode()]))
            self.client.send(self.publisher, encode_sections(sections))

    def end(self) -> Session:
        """Make this container's end of a tunnel."""
        owner = cast("WireOwner", self)  # it hears of nothing else
        wire = Wire(self.core, owner, 65536)
        wire.start_framing()
        wire.max_frame_out = 65536
        session = Session(wire, 0, 0, WINDOW, WINDOW)
        wire.map_session(0, session)
        return session

    def on_sender_disposition(
        self, session: Session, first: int, last: int, settled: bool, state: bytes
    ) -> None:
        """Confirm, as a container does for the upstreams of a tunnel."""
        for link in session.links:
            if settled and isinstance(link, UpstreamLink):
                link.confirm(first, last, 0x24)

    def on_drained(self, link: UpstreamLink) -> None:
        """Hear that an upstream's credit is used up."""


class FederatedQueue:
    """A consumer in one container, and shards in others that feed it."""

    def __init__(self, shards: int = 1, *, keeps_order: bool = True) -> None:
        self.near = Shard(1)
        self.far = [Shard(2 + at) for at in range(shards)]
        self.link = self.near.client.consumer(self.near.store)
        self.federated = FederatedConsumer(self.near.store, self.link)
        self.ends = [(self.near.end(), shard.end()) for shard in self.far]
        self.upstreams: list[UpstreamLink] = []
        for shard, (here, there) in zip(self.far, self.ends, strict=True):
            upstream = UpstreamLink(here, 1, self.federated, f"far {shard.store.shard}")
            upstream.keeps_order = keeps_order
            upstream.owner = self.near
            here.map_link(1, upstream)
            remote_consumer = OutgoingLink(there, 1)
            there.map_link(1, remote_consumer)
            shard.store.add_consumer(remote_consumer, is_far=True)
            self.federated.add(upstream)
            self.upstreams.append(upstream)
        self.arrivals: list[peers.Arrival] = []

    def flow(self, credit: int) -> None:
        self.near.client.flow(self.link, credit)

    def sent(self, shard: int = 0) -> bytes:
        """Take what a shard has sent and the consumer's container has not got yet."""
        self.far[shard].core.flush()
        return self.ends[shard][1].wire.take_output()

    def hear(self, octets: bytes, shard: int = 0) -> None:
        self.ends[shard][0].wire.feed(octets)

    def run(self) -> None:
        """Let all ends hear each other until there is nothing to hear."""
        is_busy = True
        while is_busy:
            is_busy = False
            self.near.core.flush()
            for at, (here, there) in enumerate(self.ends):
                out, back = self.sent(at), here.wire.take_output()
                here.wire.feed(out)
                there.wire.feed(back)
                is_busy |= bool(out or back)

    def take(self) -> list[str]:
        """Return what has come to the consumer; it keeps it."""
        arrived = self.near.client.take()
        self.arrivals += arrived
        bodies = [decode_sections(each.message).body for each in arrived]
        return [body.parts[0].decode() for body in bodies if isinstance(body, Data)]

    def accept_all(self) -> None:
        for each in self.arrivals:
            self.near.client.settle(each)
        self.arrivals.clear()
        self.run()


def overrun(remote: FederatedQueue) -> list[str]:
    """Have a consumer's own shard use up its credit while two remote items are under way.

    It gives credit again between these two. Returns what it gets then, of all that there is.
    """
    remote.flow(2)
    remote.run()
    remote.far[0].send("g", "1")
    first = remote.sent()
    remote.far[0].send("g", "2")
    second = remote.sent()
    remote.near.send("other", "own", "own")
    assert remote.take() == ["own", "own"]
    remote.hear(first)
    remote.flow(10)
    remote.hear(second)
    remote.far[0].send("g", "3")
    remote.run()
    return remote.take()


def test_an_item_that_goes_back_is_not_overtaken_by_its_group() -> None:
    remote = FederatedQueue()
    assert overrun(remote) == ["1", "2", "3"]
    assert remote.upstreams[0].returned == 2
    assert remote.far[0].store.counts()["released"] == 2


def test_where_no_order_is_kept_only_what_finds_no_credit_goes_back() -> None:
    remote = FederatedQueue(keeps_order=False)
    assert overrun(remote)[0] == "2"
    assert remote.upstreams[0].returned == 1


def test_a_upstream_goes_on_after_it_has_called_items_back() -> None:
    remote = FederatedQueue()
    overrun(remote)
    remote.accept_all()
    remote.far[0].send("g", "4", "5")
    remote.run()
    assert remote.take() == ["4", "5"]
    assert remote.upstreams[0].returned == 2


def test_a_group_is_out_at_one_consumer_until_that_has_settled_it() -> None:
    remote = FederatedQueue()
    at_shard = remote.far[0].client.consumer(remote.far[0].store)
    remote.flow(10)
    remote.run()
    remote.far[0].send("g", "1", "2")
    remote.run()
    assert remote.take() == ["1", "2"]
    remote.far[0].client.flow(at_shard, 10)
    remote.far[0].send("g", "3")
    assert not remote.far[0].client.take(), "a nearer consumer has credit, but not the group"
    remote.run()
    assert remote.take() == ["3"]
    remote.accept_all()
    remote.far[0].send("g", "4")
    assert len(remote.far[0].client.take()) == 1, "the group is free: the nearer one gets it"


@pytest.mark.parametrize("busy", [0, 1])
@pytest.mark.parametrize("credit", [1, 2, 3])
def test_a_shard_without_items_keeps_no_credit_from_one_that_has_some(
    busy: int, credit: int
) -> None:
    remote = FederatedQueue(shards=2)
    remote.flow(credit)
    remote.run()
    remote.far[busy].send("g", "1", "2", "3", "4")
    remote.run()
    assert remote.take() == ["1", "2", "3", "4"][:credit]
    remote.flow(4)
    remote.run()
    assert remote.take() == ["1", "2", "3", "4"][credit:]
