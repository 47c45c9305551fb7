"""Claims on items that were remote, and consumers that go before they have made any."""

from __future__ import annotations

import peers
import pytest
from federated_queues import RECEIVED, FederatedQueue
from text_messages import texts

from cogwork.amqp.errors import AmqpError
from cogwork.amqp.message import decode_sections
from cogwork.amqp.outcomes import Accepted, DeliveryState, Modified, Rejected, Released
from cogwork.amqp.types import Symbol
from cogwork.dataplane.queue.store import STALE_CODE

# -- claims


def test_a_claim_is_confirmed_only_by_the_shard(remote: FederatedQueue) -> None:
    (arrival,) = remote.deliver("a")
    remote.consumer.settle(arrival, settled=False)
    assert remote.confirmations() == []
    assert remote.link.unsettled == 1
    remote.tunnel.run()
    assert remote.confirmations() == [(arrival.delivery_id, Accepted())]
    assert remote.far.counts("accepted") == [1]
    assert (
        remote.link.unsettled
        == remote.tunnel.upstream.unsettled
        == remote.tunnel.remote_consumer.unsettled
        == 0
    )


def test_claims_in_a_range_are_confirmed_one_and_all(remote: FederatedQueue) -> None:
    arrivals = remote.deliver("a", "b", "c", "d")
    remote.consumer.settle(arrivals[0], last=arrivals[3], settled=False)
    remote.tunnel.run()
    assert remote.confirmations() == [(each.delivery_id, Accepted()) for each in arrivals]
    assert remote.far.store.depth == 0


def test_a_claim_settled_at_once_is_passed_on(remote: FederatedQueue) -> None:
    arrivals = remote.deliver("a", "b")
    for each in arrivals:
        remote.settle(each)
    assert remote.confirmations() == []
    assert remote.far.counts("accepted", "unsettled") == [2, 0]
    assert (
        remote.link.unsettled
        == remote.tunnel.upstream.unsettled
        == remote.tunnel.remote_consumer.unsettled
        == 0
    )


@pytest.mark.parametrize("presettles", [True, False])
def test_what_is_settled_is_said_again_where_the_shard_has_not_heard_it(presettles: bool) -> None:
    remote = FederatedQueue(presettles=presettles)
    remote.far.send("a", "b")
    remote.tunnel.run(hears_back=False)
    arrivals = remote.consumer.take()
    assert texts(arrivals) == ["a", "b"]
    if not presettles:
        remote.consumer.settle(arrivals[0], last=arrivals[1])
    remote.tunnel.cut()
    assert remote.far.counts("in-doubt") == [2]
    assert remote.federated.containers() == ["far"]
    assert remote.federated.containers(unsettled_only=True) == [], "it need not go for that"
    remote.again()
    remote.tunnel.run()
    assert remote.far.counts("accepted", "in-doubt", "ready") == [2, 0, 0]
    assert remote.take() == []
    assert remote.federated.containers() == []
    assert remote.confirmations() == []
    assert (
        remote.link.unsettled
        == remote.tunnel.upstream.unsettled
        == remote.tunnel.remote_consumer.unsettled
        == 0
    )


def test_what_a_shard_never_hears_is_forgotten() -> None:
    remote = FederatedQueue(presettles=True)
    remote.far.send("a")
    remote.tunnel.run(hears_back=False)
    remote.tunnel.cut()
    remote.federated.forget_settled("another")
    assert remote.federated.containers() == ["far"]
    remote.federated.forget_settled("far")
    assert remote.federated.containers() == []
    assert remote.link.unsettled == 0


@pytest.mark.parametrize("state", [RECEIVED, Released()], ids=["received", "released"])
def test_what_is_settled_without_being_taken_goes_back(
    remote: FederatedQueue, state: DeliveryState
) -> None:
    (arrival,) = remote.deliver("a")
    remote.flow(0)
    remote.settle(arrival, state)
    assert remote.far.counts("ready", "released", "unsettled") == [1, 1, 0]
    assert (
        remote.link.unsettled
        == remote.tunnel.upstream.unsettled
        == remote.tunnel.remote_consumer.unsettled
        == 0
    )


def test_an_overtaken_claim_is_refused(remote: FederatedQueue) -> None:
    (arrival,) = remote.deliver("a")
    taken = remote.far.store
    remote.tunnel.cut()
    taken.in_doubt_timeout_s = 0.0
    taken.redelivers_in_doubt = True
    taken.tick(remote.far.core.now + 100)
    other = peers.Peer(remote.far.core)
    other.consumer(remote.far.store, 1)
    assert texts(other.take()) == ["a"]
    remote.consumer.settle(arrival, settled=False)
    assert remote.again() == [STALE_CODE]
    ((number, state),) = remote.confirmations()
    assert number == arrival.delivery_id
    assert isinstance(state, Rejected)
    assert remote.link.unsettled == 0


@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize(
    ("state", "counted"),
    [
        (Released(), {"ready": 1}),
        (Modified(delivery_failed=True), {"ready": 1}),
        (Modified(delivery_failed=True, undeliverable_here=True), {"ready": 1}),
        (Rejected(error=AmqpError(condition=Symbol("app:bad"), description="bad")), {"ready": 0}),
    ],
    ids=["released", "modified", "elsewhere", "rejected"],
)
def test_every_other_outcome_reaches_the_shard_as_it_was_said(
    remote: FederatedQueue, state: DeliveryState, counted: dict[str, int], settled: bool
) -> None:
    (arrival,) = remote.deliver("a")
    remote.flow(0)
    remote.settle(arrival, state, settled=settled)
    assert remote.far.counts(*counted) == list(counted.values())
    assert remote.far.counts("unsettled") == [0]
    assert (
        remote.link.unsettled
        == remote.tunnel.upstream.unsettled
        == remote.tunnel.remote_consumer.unsettled
        == 0
    )
    if isinstance(state, Rejected):
        assert [(why, b"app:bad" in (error or b"")) for why, error, _ in remote.far.dead] == [
            ("rejected", True)
        ]
        return
    remote.flow(5)
    back = remote.take()
    if isinstance(state, Modified) and state.undeliverable_here:
        assert back == []
        return
    assert texts(back) == ["a"]
    header = decode_sections(back[0].message).header
    count = 0 if header is None else header.delivery_count
    assert count == (1 if isinstance(state, Modified) else 0)


def test_received_is_passed_on_so_that_the_item_is_in_doubt_later() -> None:
    remote = FederatedQueue(marks=True)
    remote.far.store.redelivers_in_doubt = True
    had, _ = remote.deliver("had", "not had")
    remote.settle(had, RECEIVED, settled=False)
    assert remote.tunnel.remote_consumer.unsettled == 2
    remote.tunnel.cut()
    assert remote.far.counts("ready", "in-doubt") == [0, 2], "the way may be broken, no more"
    remote.far.store.tick(remote.far.core.now + 11)
    assert remote.far.counts("ready", "in-doubt") == [1, 1], "one of them nobody has seen"


def test_what_a_consumer_that_leaves_has_not_seen_goes_back_at_once() -> None:
    remote = FederatedQueue(marks=True, credit=2)
    had, _ = remote.deliver("had", "not had")
    remote.settle(had, RECEIVED, settled=False)
    remote.tunnel.shard.store.remove_consumer(remote.tunnel.remote_consumer)
    remote.tunnel.remote_consumer.detach()
    remote.far.core.flush()
    assert remote.far.counts("ready", "in-doubt") == [1, 1]


def test_what_the_consumer_marked_while_the_upstream_was_broken_is_known_to_the_next_one() -> None:
    remote = FederatedQueue(marks=True)
    had, other = remote.deliver("had", "not had")
    remote.tunnel.cut()
    remote.settle(had, RECEIVED, settled=False)
    assert remote.federated.is_handed(had.tag)
    assert not remote.federated.is_handed(other.tag)
    assert not remote.federated.is_handed(b"another")


# -- consumers that go


def test_a_consumer_that_goes_leaves_its_items_in_doubt(remote: FederatedQueue) -> None:
    remote.deliver("a", "b")
    remote.near.store.remove_consumer(remote.link)
    remote.federated.close()
    remote.link.detach()
    remote.tunnel.cut()
    assert remote.far.counts("in-doubt") == [2]
    assert remote.link.feeder is not remote.federated


def test_what_comes_for_a_consumer_that_has_gone_is_released(remote: FederatedQueue) -> None:
    remote.far.send("a")
    remote.near.store.remove_consumer(remote.link)
    remote.link.detach()
    remote.tunnel.run()
    assert 1 <= remote.tunnel.upstream.returned <= 2, "it came again and again"
    assert remote.consumer.take() == []
    assert remote.far.counts("ready", "unsettled") == [1, 0]


def test_a_claim_of_a_consumer_that_has_gone_confirms_to_nobody(remote: FederatedQueue) -> None:
    (arrival,) = remote.deliver("a")
    remote.consumer.settle(arrival, settled=False)
    remote.near.store.remove_consumer(remote.link)
    remote.link.detach()
    remote.tunnel.run()
    assert remote.far.counts("accepted") == [1]
    assert remote.confirmations() == []
    assert remote.link.unsettled == 0
