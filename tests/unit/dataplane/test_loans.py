"""Items that a shard lends to another container's consumer: what is lent, and in which order."""

from __future__ import annotations

import peers
import pytest
from lenders import Lent, Shard, Tunnel
from text_messages import text_of, texts

from cogwork.amqp.message import decode_sections
from cogwork.amqp.outcomes import Accepted

# -- lending


def test_an_item_keeps_the_tag_of_its_attempt(lent: Lent) -> None:
    (arrival,) = lent.lend("a")
    assert text_of(arrival.message) == "a"
    assert (arrival.parts.shard, arrival.parts.attempt) == (2, 1)
    assert [each.delivery_tag for each in lent.tunnel.heard] == [arrival.tag]


def test_the_shard_lends_no_more_than_the_consumer_has_credit_for(lent: Lent) -> None:
    arrivals = lent.lend(*(str(number) for number in range(30)))
    assert texts(arrivals) == [str(number) for number in range(10)]
    assert lent.tunnel.loan.returned == 0
    lent.flow(5)
    assert texts(lent.take()) == [str(number) for number in range(10, 15)]
    assert lent.far.counts("ready") == [15]


def test_the_consumers_own_shard_comes_first(lent: Lent) -> None:
    lent.near.send("near")
    lent.far.send("far")
    assert texts(lent.take()) == ["near", "far"]
    lent.flow(0)
    lent.far.send("far")
    lent.near.send(*["near"] * 3)
    lent.flow(3)
    assert texts(lent.take()) == ["near"] * 3


def test_what_finds_no_credit_left_is_released_uncounted(lent: Lent) -> None:
    lent.far.send(*(f"far {number}" for number in range(10)))
    lent.near.send(*(f"near {number}" for number in range(6)))
    came = lent.take()
    assert len(came) == 10
    assert lent.tunnel.loan.returned == 6
    for each in came:
        lent.settle(each)
    assert lent.far.counts("ready", "unsettled") == [6, 0]
    lent.flow(10)
    back = lent.take()
    assert len(back) == 6
    assert sorted(texts(came + back)) == sorted(
        [f"far {number}" for number in range(10)] + [f"near {number}" for number in range(6)]
    )
    assert {each.parts.attempt for each in back} == {2}
    headers = [decode_sections(each.message).header for each in back]
    assert [each.delivery_count for each in headers if each is not None] in ([], [0] * 6)
    for each in back:
        lent.settle(each)
    assert lent.far.store.depth == lent.near.store.depth == 0
    assert lent.link.unsettled == lent.tunnel.loan.unsettled == lent.tunnel.lender.unsettled == 0


def test_a_consumer_without_credit_borrows_nothing() -> None:
    lent = Lent(credit=0)
    assert lent.lend("a") == []
    assert lent.far.counts("ready") == [1]
    lent.flow(1)
    assert texts(lent.take()) == ["a"]


def test_a_consumer_that_takes_its_credit_back_stops_the_shard(lent: Lent) -> None:
    lent.flow(0)
    assert lent.lend("a") == []
    assert lent.far.counts("ready") == [1]


def test_a_consumer_has_no_more_than_an_attach_can_name() -> None:
    lent = Lent(credit=4000)
    had = lent.lend(*map(str, range(2000)))
    assert len(had) == 1500
    assert lent.far.counts("ready") == [500]
    for arrival in had[:800]:
        lent.settle(arrival)
    assert len(lent.take()) > 0, "what it gave up makes room"


def test_items_of_many_frames_arrive_whole_and_keep_their_tag() -> None:
    lent = Lent(frame_size=600)
    body = "x" * 5000
    first, second = lent.lend(body, body)
    assert len(lent.tunnel.heard) > 16
    assert texts([first, second]) == [body, body]
    assert first.parts.shard == 2
    assert first.tag != second.tag
    lent.settle(first, settled=False)
    assert lent.confirmations() == [(first.delivery_id, Accepted())]
    lent.settle(second)
    assert lent.far.store.depth == 0


def test_an_item_that_was_cut_off_in_the_middle_is_in_doubt() -> None:
    lent = Lent(frame_size=600, marks=True)
    lent.far.send("x" * 5000)
    lent.far.core.flush()
    lent.tunnel.near.wire.feed(lent.tunnel.far.wire.take_output()[:2000])
    lent.tunnel.cut()
    assert lent.consumer.take() == []
    lent.again()
    assert lent.take() == [], "the consumer may have it, for all the shard knows"
    lent.far.store.tick(lent.far.core.now + 11)
    assert lent.take() == [], "it may have had it"
    assert lent.far.dead == [("in-doubt", None, 0)]


def test_consumers_that_want_items_settled_get_them_settled() -> None:
    lent = Lent(presettles=True)
    arrivals = lent.lend("a", "b")
    assert [each.settled for each in arrivals] == [True, True]
    assert lent.far.store.depth == 0


@pytest.mark.parametrize("count", [1, 2, 3])
def test_credit_is_shared_out_among_several_shards(count: int) -> None:
    lent = Lent(credit=0)
    others = [Shard(number + 3) for number in range(count)]
    tunnels = [Tunnel(each, lent.borrower).attach() for each in others]
    lent.flow(12)
    given = [each.loan.credit for each in (lent.tunnel, *tunnels)]
    assert sum(given) == 12
    assert max(given) - min(given) <= 1
    for tunnel in tunnels:
        tunnel.run()
        lent.borrower.remove(tunnel.loan)
        tunnel.loan.detach()
    assert lent.borrower.loans == [lent.tunnel.loan]
    assert lent.tunnel.loan.credit == 12


# -- rounds


def test_a_shard_lends_only_what_none_of_its_own_consumers_can_take(lent: Lent) -> None:
    own = peers.Peer(lent.far.core)
    link = own.consumer(lent.far.store, 2)
    arrivals = lent.lend("a", "b", "c", "d")
    assert texts(own.take()) == ["a", "b"]
    assert texts(arrivals) == ["c", "d"]
    lent.far.send("e")
    assert texts(lent.take()) == ["e"]
    own.flow(link, 1)
    assert lent.lend("f") == []
    assert texts(own.take()) == ["f"]


def test_what_is_waiting_goes_to_own_consumers_first_when_all_have_credit() -> None:
    lent = Lent(credit=0)
    lent.far.send(*(str(number) for number in range(6)))
    own = peers.Peer(lent.far.core)
    own.consumer(lent.far.store, 4)
    lent.flow(10)
    assert texts(own.take()) == ["0", "1", "2", "3"]
    assert texts(lent.take()) == ["4", "5"]


def test_what_an_own_consumer_does_not_want_goes_far(lent: Lent) -> None:
    own = peers.Peer(lent.far.core)
    own.consumer(lent.far.store, 10, selector=lambda data: b"mine" in data)
    assert texts(lent.lend("yours", "mine", "yours too")) == ["yours", "yours too"]
    assert texts(own.take()) == ["mine"]


def test_far_consumers_are_served_in_turn() -> None:
    lent = Lent(credit=10)
    other = Lent(credit=10)
    second = Tunnel(lent.far, other.borrower).attach()
    lent.far.send(*(str(number) for number in range(6)))
    second.run()
    assert texts(lent.take()) == ["0", "2", "4"]
    second.run()
    assert texts(other.consumer.take()) == ["1", "3", "5"]
