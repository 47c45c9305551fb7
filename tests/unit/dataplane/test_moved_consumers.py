"""Clients that come with items which another container had received for them."""

from __future__ import annotations

import peers
import pytest
from federated_queues import FederatedQueue, Shard, Tunnel
from text_messages import texts

from cogwork.amqp.outcomes import Accepted, Released
from cogwork.dataplane.queue.federated_consumer import FederatedConsumer
from cogwork.dataplane.queue.store import KEEP_CODE, SETTLE_CODE, STALE_CODE


class Moved:
    """A client that has items of a shard, by another container's upstream, and comes to this
    one."""

    def __init__(self, remote: FederatedQueue, *tags: bytes) -> None:
        self.shard = remote.far
        self.near = Shard(3)
        self.consumer = peers.Peer(self.near.core)
        self.link = self.consumer.consumer(self.near.store, marks_received=True)
        self.federated = FederatedConsumer(self.near.store, self.link)
        for tag in tags:
            self.federated.expect("far", tag)
        self.tunnel = Tunnel(remote.far, self.federated, marks_received=True)

    def ask(self, *, handed: bool = True) -> list[int]:
        """Present the tags, as `Upstream` does."""
        tags = self.federated.tags_of("far")
        codes = self.shard.store.resume(self.tunnel.remote_consumer, tags, tags if handed else ())
        for tag, code in zip(tags, codes, strict=True):
            assert tag in self.federated.expected
            if code == KEEP_CODE:
                self.tunnel.upstream.awaited += 1
            else:
                self.federated.forget(tag)
        self.tunnel.attach()
        return codes

    def begin(self) -> list[peers.Arrival]:
        self.federated.begin()
        return self.take()

    def flow(self, credit: int) -> None:
        self.consumer.flow(self.link, credit)
        self.tunnel.run()

    def take(self) -> list[peers.Arrival]:
        self.tunnel.run()
        return self.consumer.take()


def test_nothing_comes_before_the_attach_is_answered_and_then_what_the_client_has() -> None:
    remote = FederatedQueue(marks=True)
    held = [each.tag for each in remote.deliver("a", "b", "c")]
    remote.tunnel.cut()
    moved = Moved(remote, *held)
    moved.near.send("near")
    remote.far.send("far")
    assert moved.ask() == [KEEP_CODE] * 3
    moved.flow(3)
    assert moved.take() == []
    assert moved.tunnel.upstream.credit == 0
    arrivals = moved.begin()
    assert [each.tag for each in arrivals] == held
    assert moved.tunnel.upstream.awaited == moved.tunnel.upstream.credit == 0
    assert moved.federated.expected == {}
    moved.consumer.settle(arrivals[0], last=arrivals[1], settled=False)
    moved.consumer.settle(arrivals[2], Released())
    moved.take()
    assert remote.far.counts("accepted", "released", "unsettled") == [2, 1, 0]
    (said,) = moved.consumer.dispositions
    assert (said.first, said.last, said.state) == (
        arrivals[0].delivery_id,
        arrivals[1].delivery_id,
        Accepted(),
    )
    moved.flow(3)
    assert texts(moved.take()) == ["near", "c", "far"]


def test_what_waits_for_credit_comes_as_there_is_some() -> None:
    remote = FederatedQueue(marks=True)
    held = [each.tag for each in remote.deliver("a", "b", "c", "d", "e")]
    remote.tunnel.cut()
    moved = Moved(remote, *held)
    moved.near.send("near")
    moved.ask()
    moved.begin()
    got: list[peers.Arrival] = []
    for credit in (3, 1, 1, 1):
        assert len(got) == 0 or len(moved.federated.expected) == 5 - len(got)
        moved.flow(credit)
        got += moved.take()
    assert [each.tag for each in got[:5]] == held
    assert texts(got[5:]) == ["near"]


def test_what_is_stale_is_not_waited_for() -> None:
    remote = FederatedQueue(marks=True)
    (arrival,) = remote.deliver("a")
    remote.settle(arrival, settled=False)
    moved = Moved(remote, arrival.tag, arrival.tag[:15] + b"\x07")
    moved.near.send("near")
    assert moved.ask() == [SETTLE_CODE, STALE_CODE]
    assert moved.federated.containers() == []
    moved.flow(1)
    assert texts(moved.begin()) == ["near"]


def test_an_awaited_item_stays_with_its_shard_where_the_credit_is_taken_back() -> None:
    remote = FederatedQueue(marks=True)
    (arrival,) = remote.deliver("a")
    remote.tunnel.cut()
    moved = Moved(remote, arrival.tag)
    moved.ask()
    moved.flow(1)
    moved.federated.begin()
    moved.near.core.flush()
    moved.consumer.flow(moved.link, 0)
    assert moved.take() == []
    assert arrival.tag in moved.federated.expected
    assert remote.far.counts("unsettled", "ready") == [1, 0]
    moved.federated.forget(arrival.tag)
    moved.flow(1)
    moved.near.send("near")
    assert texts(moved.take()) == ["near"]
    moved.tunnel.cut()
    assert remote.far.counts("in-doubt") == [1]


@pytest.mark.parametrize("handed", [True, False])
def test_what_the_application_has_is_in_doubt_when_its_container_goes_too(handed: bool) -> None:
    remote = FederatedQueue(marks=True)
    (arrival,) = remote.deliver("a")
    remote.tunnel.cut()
    moved = Moved(remote, arrival.tag)
    moved.ask(handed=handed)
    moved.tunnel.shard.store.remove_consumer(moved.tunnel.remote_consumer)
    moved.tunnel.remote_consumer.detach()
    remote.far.core.flush()
    assert remote.far.counts("ready", "in-doubt") == ([0, 1] if handed else [1, 0])


def test_the_next_upstream_goes_on_where_one_broke() -> None:
    remote = FederatedQueue(marks=True)
    first, second = remote.deliver("a", "b")
    remote.tunnel.cut()
    moved = Moved(remote, first.tag, second.tag)
    moved.ask()
    moved.flow(1)
    (came,) = moved.begin()
    moved.tunnel.cut()
    moved.tunnel = Tunnel(remote.far, moved.federated, marks_received=True)
    assert sorted(moved.federated.tags_of("far")) == sorted([first.tag, second.tag])
    assert moved.federated.expected == {second.tag: "far"}
    assert (
        remote.far.store.resume(moved.tunnel.remote_consumer, [first.tag, second.tag])
        == [KEEP_CODE] * 2
    )
    moved.tunnel.upstream.owed = moved.tunnel.upstream.awaited = 1
    moved.tunnel.attach()
    moved.flow(1)
    assert [each.tag for each in moved.take()] == [second.tag]
    moved.consumer.settle(came, settled=False)
    moved.take()
    assert remote.far.counts("accepted", "unsettled") == [1, 1]
