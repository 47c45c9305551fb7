"""Loans whose tunnel breaks: what is done again, and what is known from before."""

from __future__ import annotations

import peers
import pytest
from lenders import RECEIVED, Lent
from text_messages import texts

from cogwork.amqp.outcomes import Accepted, Rejected, Released
from cogwork.dataplane.queue.store import KEEP_CODE, SETTLE_CODE, STALE_CODE


def test_after_a_break_what_is_sent_again_is_recognised(lent: Lent) -> None:
    first, second = lent.lend("a", "b")
    lent.tunnel.cut()
    assert lent.borrower.containers() == ["far"]
    assert sorted(lent.borrower.tags_of("far")) == sorted([first.tag, second.tag])
    assert lent.borrower.tags_of("another") == []
    assert lent.again() == [KEEP_CODE, KEEP_CODE]
    assert lent.take() == [], "delivered twice"
    assert [each.delivery_tag for each in lent.tunnel.heard] == [first.tag, second.tag]
    assert lent.borrower.containers() == []
    lent.settle(first, settled=False)
    lent.settle(second)
    assert lent.confirmations() == [(first.delivery_id, Accepted())]
    assert lent.far.counts("accepted", "unsettled") == [2, 0]
    assert texts(lent.lend("c")) == ["c"]
    assert lent.link.unsettled == lent.tunnel.loan.unsettled == 1


@pytest.mark.parametrize("settled", [True, False])
def test_what_was_said_during_a_break_is_passed_on_after_it(lent: Lent, settled: bool) -> None:
    claimed, given, kept = lent.lend("claimed", "given", "kept")
    lent.tunnel.cut()
    lent.consumer.settle(claimed, settled=settled)
    lent.consumer.settle(given, Rejected(), settled=settled)
    assert lent.confirmations() == []
    lent.again()
    assert lent.take() == []
    assert lent.far.counts("accepted", "unsettled") == [1, 1]
    assert [why for why, _, _ in lent.far.dead] == ["rejected"]
    told = dict(lent.confirmations())
    assert told == (
        {} if settled else {claimed.delivery_id: Accepted(), given.delivery_id: Rejected()}
    )
    lent.settle(kept)
    assert lent.far.store.depth == 0
    assert lent.link.unsettled == lent.tunnel.loan.unsettled == lent.tunnel.lender.unsettled == 0
    assert lent.borrower.containers() == []


def test_a_claim_under_way_when_the_tunnel_broke_is_confirmed_after_it(lent: Lent) -> None:
    (arrival,) = lent.lend("a")
    lent.consumer.settle(arrival, settled=False)
    lent.near.core.flush()
    lent.tunnel.far.wire.feed(lent.tunnel.near.wire.take_output())
    assert lent.far.counts("accepted") == [1]
    lent.tunnel.cut()
    assert lent.confirmations() == []
    assert lent.again() == [SETTLE_CODE]
    assert lent.confirmations() == [(arrival.delivery_id, Accepted())]
    assert lent.take() == []
    assert lent.link.unsettled == 0


@pytest.mark.parametrize("is_swept", [True, False])
def test_what_was_under_way_when_the_tunnel_broke_is_given_back_by_the_next(is_swept: bool) -> None:
    lent = Lent(marks=True)
    had, handed = lent.lend("had", "handed")
    lent.settle(handed, RECEIVED, settled=False)
    lent.far.send("under way")
    lent.far.core.flush()
    assert lent.far.counts("unsettled") == [3]
    serial = lent.far.store.serial_of(lent.tunnel.lender)
    if is_swept:
        lent.tunnel.cut()
        assert lent.far.counts("in-doubt") == [3]
    else:
        lent.borrower.remove(lent.tunnel.loan)
        lent.tunnel.loan.detach()
        lent.far.store.remove_consumer(lent.tunnel.lender, is_over=False)
        lent.tunnel.lender.detach()
    lent.tunnel = lent._tunnel()
    assert lent.tunnel.resume() == [KEEP_CODE, KEEP_CODE]
    lent.far.store.take_back(serial)
    lent.tunnel.attach()
    assert texts(lent.take()) == ["under way"]
    assert lent.far.counts("unsettled", "in-doubt", "ready") == [3, 0, 0]
    for each in (had, handed):
        lent.settle(each, settled=False)
    assert [number for number, _ in lent.confirmations()] == [had.delivery_id, handed.delivery_id]
    assert lent.far.counts("accepted", "stale-claims") == [2, 0]


def test_what_another_consumer_may_have_is_not_taken_back() -> None:
    lent = Lent(marks=True)
    (arrival,) = lent.lend("a")
    serial = lent.far.store.serial_of(lent.tunnel.lender)
    lent.tunnel.cut()
    lent.far.store.take_back(serial + 1)
    assert lent.far.counts("in-doubt", "ready") == [1, 0]
    assert lent.far.store.serial_of(lent.tunnel.lender) == 0
    assert lent.again() == [KEEP_CODE]
    lent.settle(arrival, settled=False)
    assert lent.far.counts("accepted") == [1]


def test_two_breaks_in_a_row_are_like_one(lent: Lent) -> None:
    (arrival,) = lent.lend("a")
    lent.tunnel.cut()
    lent.tunnel = lent._tunnel()
    assert lent.tunnel.resume() == [KEEP_CODE]
    lent.tunnel.cut()
    assert lent.again() == [KEEP_CODE]
    assert lent.take() == []
    lent.settle(arrival, settled=False)
    assert lent.confirmations() == [(arrival.delivery_id, Accepted())]


def test_without_credit_the_attempts_go_on_once_there_is_some(lent: Lent) -> None:
    arrivals = lent.lend(*(str(number) for number in range(10)))
    assert lent.link.credit == 0
    lent.tunnel.cut()
    assert lent.again() == [KEEP_CODE] * 10
    for each in arrivals:
        lent.settle(each, settled=False)
    lent.flow(10)
    assert lent.take() == []
    assert len(lent.confirmations()) == 10
    assert lent.far.store.depth == 0


def test_what_the_shard_took_back_meanwhile_goes_on_while_nobody_else_has_it(lent: Lent) -> None:
    lent.far.store.in_doubt_timeout_s = 0.0
    lent.far.store.redelivers_doubtful = True
    (arrival,) = lent.lend("a")
    lent.tunnel.cut()
    lent.far.store.tick(lent.far.core.now + 1)
    assert lent.far.counts("ready", "unsettled") == [1, 0]
    assert lent.again() == [KEEP_CODE]
    assert lent.take() == [], "it has the item"
    lent.settle(arrival, settled=False)
    assert lent.far.counts("accepted", "depth", "stale-claims") == [1, 0, 0]
    assert lent.confirmations() == [(arrival.delivery_id, Accepted())]


def test_what_somebody_else_had_and_gave_back_is_not_the_first_ones_again(lent: Lent) -> None:
    lent.far.store.in_doubt_timeout_s = 0.0
    lent.far.store.redelivers_doubtful = True
    (arrival,) = lent.lend("a")
    lent.tunnel.cut()
    lent.far.store.tick(lent.far.core.now + 1)
    other = peers.Peer(lent.far.core)
    link = other.consumer(lent.far.store, 1)
    (theirs,) = other.take()
    other.settle(theirs, Released())
    other.detach(lent.far.store, link)
    lent.consumer.settle(arrival, settled=False)
    assert lent.again() == [STALE_CODE]
    (back,) = lent.take()
    assert back.parts.attempt == arrival.parts.attempt + 2


def test_it_is_known_for_whom_something_may_be_taken_back() -> None:
    lent = Lent(marks=True)
    (arrival,) = lent.lend("a")
    serial = lent.far.store.serial_of(lent.tunnel.lender)
    assert lent.far.store.lent_to() == set()
    lent.tunnel.cut()
    assert lent.far.store.lent_to() == {serial}
    assert lent.again() == [KEEP_CODE]
    assert lent.far.store.lent_to() == set()
    lent.settle(arrival, RECEIVED, settled=False)
    lent.tunnel.cut()
    assert lent.far.counts("in-doubt") == [1]
    assert lent.far.store.lent_to() == set(), "its application has it"
