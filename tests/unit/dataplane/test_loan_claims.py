"""Claims on items that were lent, and consumers that go before they have made any."""

from __future__ import annotations

import peers
import pytest
from lenders import RECEIVED, Lent
from text_messages import texts

from cogwork.amqp.errors import AmqpError
from cogwork.amqp.message import decode_sections
from cogwork.amqp.outcomes import Accepted, DeliveryState, Modified, Rejected, Released
from cogwork.amqp.types import Symbol
from cogwork.dataplane.queue.store import STALE_CODE

# -- claims


def test_a_claim_is_confirmed_only_by_the_shard(lent: Lent) -> None:
    (arrival,) = lent.lend("a")
    lent.consumer.settle(arrival, settled=False)
    assert lent.confirmations() == []
    assert lent.link.unsettled == 1
    lent.tunnel.run()
    assert lent.confirmations() == [(arrival.delivery_id, Accepted())]
    assert lent.far.counts("accepted") == [1]
    assert lent.link.unsettled == lent.tunnel.loan.unsettled == lent.tunnel.lender.unsettled == 0


def test_claims_in_a_range_are_confirmed_one_and_all(lent: Lent) -> None:
    arrivals = lent.lend("a", "b", "c", "d")
    lent.consumer.settle(arrivals[0], last=arrivals[3], settled=False)
    lent.tunnel.run()
    assert lent.confirmations() == [(each.delivery_id, Accepted()) for each in arrivals]
    assert lent.far.store.depth == 0


def test_a_claim_settled_at_once_is_passed_on(lent: Lent) -> None:
    arrivals = lent.lend("a", "b")
    for each in arrivals:
        lent.settle(each)
    assert lent.confirmations() == []
    assert lent.far.counts("accepted", "unsettled") == [2, 0]
    assert lent.link.unsettled == lent.tunnel.loan.unsettled == lent.tunnel.lender.unsettled == 0


@pytest.mark.parametrize("presettles", [True, False])
def test_what_is_settled_is_said_again_where_the_shard_has_not_heard_it(presettles: bool) -> None:
    lent = Lent(presettles=presettles)
    lent.far.send("a", "b")
    lent.tunnel.run(hears_back=False)
    arrivals = lent.consumer.take()
    assert texts(arrivals) == ["a", "b"]
    if not presettles:
        lent.consumer.settle(arrivals[0], last=arrivals[1])
    lent.tunnel.cut()
    assert lent.far.counts("in-doubt") == [2]
    assert lent.borrower.containers() == ["far"]
    assert lent.borrower.containers(unsettled_only=True) == [], "it need not go for that"
    lent.again()
    lent.tunnel.run()
    assert lent.far.counts("accepted", "in-doubt", "ready") == [2, 0, 0]
    assert lent.take() == []
    assert lent.borrower.containers() == []
    assert lent.confirmations() == []
    assert lent.link.unsettled == lent.tunnel.loan.unsettled == lent.tunnel.lender.unsettled == 0


def test_what_a_shard_never_hears_is_forgotten() -> None:
    lent = Lent(presettles=True)
    lent.far.send("a")
    lent.tunnel.run(hears_back=False)
    lent.tunnel.cut()
    lent.borrower.forget_settled("another")
    assert lent.borrower.containers() == ["far"]
    lent.borrower.forget_settled("far")
    assert lent.borrower.containers() == []
    assert lent.link.unsettled == 0


@pytest.mark.parametrize("state", [RECEIVED, Released()], ids=["received", "released"])
def test_what_is_settled_without_being_taken_goes_back(lent: Lent, state: DeliveryState) -> None:
    (arrival,) = lent.lend("a")
    lent.flow(0)
    lent.settle(arrival, state)
    assert lent.far.counts("ready", "released", "unsettled") == [1, 1, 0]
    assert lent.link.unsettled == lent.tunnel.loan.unsettled == lent.tunnel.lender.unsettled == 0


def test_an_overtaken_claim_is_refused(lent: Lent) -> None:
    (arrival,) = lent.lend("a")
    taken = lent.far.store
    lent.tunnel.cut()
    taken.in_doubt_timeout_s = 0.0
    taken.redelivers_doubtful = True
    taken.tick(lent.far.core.now + 100)
    other = peers.Peer(lent.far.core)
    other.consumer(lent.far.store, 1)
    assert texts(other.take()) == ["a"]
    lent.consumer.settle(arrival, settled=False)
    assert lent.again() == [STALE_CODE]
    ((number, state),) = lent.confirmations()
    assert number == arrival.delivery_id
    assert isinstance(state, Rejected)
    assert lent.link.unsettled == 0


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
    lent: Lent, state: DeliveryState, counted: dict[str, int], settled: bool
) -> None:
    (arrival,) = lent.lend("a")
    lent.flow(0)
    lent.settle(arrival, state, settled=settled)
    assert lent.far.counts(*counted) == list(counted.values())
    assert lent.far.counts("unsettled") == [0]
    assert lent.link.unsettled == lent.tunnel.loan.unsettled == lent.tunnel.lender.unsettled == 0
    if isinstance(state, Rejected):
        assert [(why, b"app:bad" in (error or b"")) for why, error, _ in lent.far.dead] == [
            ("rejected", True)
        ]
        return
    lent.flow(5)
    back = lent.take()
    if isinstance(state, Modified) and state.undeliverable_here:
        assert back == []
        return
    assert texts(back) == ["a"]
    header = decode_sections(back[0].message).header
    count = 0 if header is None else header.delivery_count
    assert count == (1 if isinstance(state, Modified) else 0)


def test_received_is_passed_on_so_that_the_item_is_in_doubt_later() -> None:
    lent = Lent(marks=True)
    lent.far.store.redelivers_doubtful = True
    had, _ = lent.lend("had", "not had")
    lent.settle(had, RECEIVED, settled=False)
    assert lent.tunnel.lender.unsettled == 2
    lent.tunnel.cut()
    assert lent.far.counts("ready", "in-doubt") == [0, 2], "the way may be broken, no more"
    lent.far.store.tick(lent.far.core.now + 11)
    assert lent.far.counts("ready", "in-doubt") == [1, 1], "one of them nobody has seen"


def test_what_a_consumer_that_leaves_has_not_seen_goes_back_at_once() -> None:
    lent = Lent(marks=True, credit=2)
    had, _ = lent.lend("had", "not had")
    lent.settle(had, RECEIVED, settled=False)
    lent.tunnel.shard.store.remove_consumer(lent.tunnel.lender)
    lent.tunnel.lender.detach()
    lent.far.core.flush()
    assert lent.far.counts("ready", "in-doubt") == [1, 1]


def test_what_the_consumer_marked_while_the_loan_was_broken_is_known_to_the_next_one() -> None:
    lent = Lent(marks=True)
    had, other = lent.lend("had", "not had")
    lent.tunnel.cut()
    lent.settle(had, RECEIVED, settled=False)
    assert lent.borrower.is_handed(had.tag)
    assert not lent.borrower.is_handed(other.tag)
    assert not lent.borrower.is_handed(b"another")


# -- consumers that go


def test_a_consumer_that_goes_leaves_its_items_in_doubt(lent: Lent) -> None:
    lent.lend("a", "b")
    lent.near.store.remove_consumer(lent.link)
    lent.borrower.close()
    lent.link.detach()
    lent.tunnel.cut()
    assert lent.far.counts("in-doubt") == [2]
    assert lent.link.feeder is not lent.borrower


def test_what_comes_for_a_consumer_that_has_gone_is_released(lent: Lent) -> None:
    lent.far.send("a")
    lent.near.store.remove_consumer(lent.link)
    lent.link.detach()
    lent.tunnel.run()
    assert 1 <= lent.tunnel.loan.returned <= 2, "it came again and again"
    assert lent.consumer.take() == []
    assert lent.far.counts("ready", "unsettled") == [1, 0]


def test_a_claim_of_a_consumer_that_has_gone_confirms_to_nobody(lent: Lent) -> None:
    (arrival,) = lent.lend("a")
    lent.consumer.settle(arrival, settled=False)
    lent.near.store.remove_consumer(lent.link)
    lent.link.detach()
    lent.tunnel.run()
    assert lent.far.counts("accepted") == [1]
    assert lent.confirmations() == []
    assert lent.link.unsettled == 0
