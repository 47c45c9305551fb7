"""Items that a shard lends to another container's consumer: what is remote, and in which order."""

from __future__ import annotations

import peers
import pytest
from federated_queues import FederatedQueue, Shard, Tunnel
from text_messages import text_of, texts

from cogwork.amqp.message import decode_sections
from cogwork.amqp.outcomes import Accepted

# -- receiving from another shard


def test_an_item_keeps_the_tag_of_its_attempt(remote: FederatedQueue) -> None:
    (arrival,) = remote.deliver("a")
    assert text_of(arrival.message) == "a"
    assert (arrival.parts.shard, arrival.parts.attempt) == (2, 1)
    assert [each.delivery_tag for each in remote.tunnel.heard] == [arrival.tag]


def test_the_shard_lends_no_more_than_the_consumer_has_credit_for(remote: FederatedQueue) -> None:
    arrivals = remote.deliver(*(str(number) for number in range(30)))
    assert texts(arrivals) == [str(number) for number in range(10)]
    assert remote.tunnel.upstream.returned == 0
    remote.flow(5)
    assert texts(remote.take()) == [str(number) for number in range(10, 15)]
    assert remote.far.counts("ready") == [15]


def test_the_consumers_own_shard_comes_first(remote: FederatedQueue) -> None:
    remote.near.send("near")
    remote.far.send("far")
    assert texts(remote.take()) == ["near", "far"]
    remote.flow(0)
    remote.far.send("far")
    remote.near.send(*["near"] * 3)
    remote.flow(3)
    assert texts(remote.take()) == ["near"] * 3


def test_what_finds_no_credit_left_is_released_uncounted(remote: FederatedQueue) -> None:
    remote.far.send(*(f"far {number}" for number in range(10)))
    remote.near.send(*(f"near {number}" for number in range(6)))
    came = remote.take()
    assert len(came) == 10
    assert remote.tunnel.upstream.returned == 6
    for each in came:
        remote.settle(each)
    assert remote.far.counts("ready", "unsettled") == [6, 0]
    remote.flow(10)
    back = remote.take()
    assert len(back) == 6
    assert sorted(texts(came + back)) == sorted(
        [f"far {number}" for number in range(10)] + [f"near {number}" for number in range(6)]
    )
    assert {each.parts.attempt for each in back} == {2}
    headers = [decode_sections(each.message).header for each in back]
    assert [each.delivery_count for each in headers if each is not None] in ([], [0] * 6)
    for each in back:
        remote.settle(each)
    assert remote.far.store.depth == remote.near.store.depth == 0
    assert (
        remote.link.unsettled
        == remote.tunnel.upstream.unsettled
        == remote.tunnel.remote_consumer.unsettled
        == 0
    )


def test_a_consumer_without_credit_receives_nothing() -> None:
    remote = FederatedQueue(credit=0)
    assert remote.deliver("a") == []
    assert remote.far.counts("ready") == [1]
    remote.flow(1)
    assert texts(remote.take()) == ["a"]


def test_a_consumer_that_takes_its_credit_back_stops_the_shard(remote: FederatedQueue) -> None:
    remote.flow(0)
    assert remote.deliver("a") == []
    assert remote.far.counts("ready") == [1]


def test_a_consumer_has_no_more_than_an_attach_can_name() -> None:
    remote = FederatedQueue(credit=4000)
    had = remote.deliver(*map(str, range(2000)))
    assert len(had) == 1500
    assert remote.far.counts("ready") == [500]
    for arrival in had[:800]:
        remote.settle(arrival)
    assert len(remote.take()) > 0, "what it gave up makes room"


def test_items_of_many_frames_arrive_whole_and_keep_their_tag() -> None:
    remote = FederatedQueue(frame_size=600)
    body = "x" * 5000
    first, second = remote.deliver(body, body)
    assert len(remote.tunnel.heard) > 16
    assert texts([first, second]) == [body, body]
    assert first.parts.shard == 2
    assert first.tag != second.tag
    remote.settle(first, settled=False)
    assert remote.confirmations() == [(first.delivery_id, Accepted())]
    remote.settle(second)
    assert remote.far.store.depth == 0


def test_an_item_that_was_cut_off_in_the_middle_is_in_doubt() -> None:
    remote = FederatedQueue(frame_size=600, marks=True)
    remote.far.send("x" * 5000)
    remote.far.core.flush()
    remote.tunnel.near.wire.feed(remote.tunnel.far.wire.take_output()[:2000])
    remote.tunnel.cut()
    assert remote.consumer.take() == []
    remote.again()
    assert remote.take() == [], "the consumer may have it, for all the shard knows"
    remote.far.store.tick(remote.far.core.now + 11)
    assert remote.take() == [], "it may have had it"
    assert remote.far.dead == [("in-doubt", None, 0)]


def test_consumers_that_want_items_settled_get_them_settled() -> None:
    remote = FederatedQueue(presettles=True)
    arrivals = remote.deliver("a", "b")
    assert [each.settled for each in arrivals] == [True, True]
    assert remote.far.store.depth == 0


@pytest.mark.parametrize("count", [1, 2, 3])
def test_credit_is_shared_out_among_several_shards(count: int) -> None:
    remote = FederatedQueue(credit=0)
    others = [Shard(number + 3) for number in range(count)]
    tunnels = [Tunnel(each, remote.federated).attach() for each in others]
    remote.flow(12)
    given = [each.upstream.credit for each in (remote.tunnel, *tunnels)]
    assert sum(given) == 12
    assert max(given) - min(given) <= 1
    for tunnel in tunnels:
        tunnel.run()
        remote.federated.remove(tunnel.upstream)
        tunnel.upstream.detach()
    assert remote.federated.upstreams == [remote.tunnel.upstream]
    assert remote.tunnel.upstream.credit == 12


# -- rounds


def test_a_shard_lends_only_what_none_of_its_own_consumers_can_take(remote: FederatedQueue) -> None:
    own = peers.Peer(remote.far.core)
    link = own.consumer(remote.far.store, 2)
    arrivals = remote.deliver("a", "b", "c", "d")
    assert texts(own.take()) == ["a", "b"]
    assert texts(arrivals) == ["c", "d"]
    remote.far.send("e")
    assert texts(remote.take()) == ["e"]
    own.flow(link, 1)
    assert remote.deliver("f") == []
    assert texts(own.take()) == ["f"]


def test_what_is_waiting_goes_to_own_consumers_first_when_all_have_credit() -> None:
    remote = FederatedQueue(credit=0)
    remote.far.send(*(str(number) for number in range(6)))
    own = peers.Peer(remote.far.core)
    own.consumer(remote.far.store, 4)
    remote.flow(10)
    assert texts(own.take()) == ["0", "1", "2", "3"]
    assert texts(remote.take()) == ["4", "5"]


def test_what_an_own_consumer_does_not_want_goes_far(remote: FederatedQueue) -> None:
    own = peers.Peer(remote.far.core)
    own.consumer(remote.far.store, 10, selector=lambda data: b"mine" in data)
    assert texts(remote.deliver("yours", "mine", "yours too")) == ["yours", "yours too"]
    assert texts(own.take()) == ["mine"]


def test_far_consumers_are_served_in_turn() -> None:
    remote = FederatedQueue(credit=10)
    other = FederatedQueue(credit=10)
    second = Tunnel(remote.far, other.federated).attach()
    remote.far.send(*(str(number) for number in range(6)))
    second.run()
    assert texts(remote.take()) == ["0", "2", "4"]
    second.run()
    assert texts(other.consumer.take()) == ["1", "3", "5"]
