"""Loans whose tunnel breaks: what is done again, and what is known from before."""

from __future__ import annotations

import peers
import pytest
from federated_queues import RECEIVED, FederatedQueue
from text_messages import texts

from cogwork.amqp.outcomes import Accepted, Rejected, Released
from cogwork.dataplane.queue.store import KEEP_CODE, SETTLE_CODE, STALE_CODE


def test_after_a_break_what_is_sent_again_is_recognised(remote: FederatedQueue) -> None:
    first, second = remote.deliver("a", "b")
    remote.tunnel.cut()
    assert remote.federated.containers() == ["far"]
    assert sorted(remote.federated.tags_of("far")) == sorted([first.tag, second.tag])
    assert remote.federated.tags_of("another") == []
    assert remote.again() == [KEEP_CODE, KEEP_CODE]
    assert remote.take() == [], "delivered twice"
    assert [each.delivery_tag for each in remote.tunnel.heard] == [first.tag, second.tag]
    assert remote.federated.containers() == []
    remote.settle(first, settled=False)
    remote.settle(second)
    assert remote.confirmations() == [(first.delivery_id, Accepted())]
    assert remote.far.counts("accepted", "unsettled") == [2, 0]
    assert texts(remote.deliver("c")) == ["c"]
    assert remote.link.unsettled == remote.tunnel.upstream.unsettled == 1


@pytest.mark.parametrize("settled", [True, False])
def test_what_was_said_during_a_break_is_passed_on_after_it(
    remote: FederatedQueue, settled: bool
) -> None:
    claimed, given, kept = remote.deliver("claimed", "given", "kept")
    remote.tunnel.cut()
    remote.consumer.settle(claimed, settled=settled)
    remote.consumer.settle(given, Rejected(), settled=settled)
    assert remote.confirmations() == []
    remote.again()
    assert remote.take() == []
    assert remote.far.counts("accepted", "unsettled") == [1, 1]
    assert [why for why, _, _ in remote.far.dead] == ["rejected"]
    told = dict(remote.confirmations())
    assert told == (
        {} if settled else {claimed.delivery_id: Accepted(), given.delivery_id: Rejected()}
    )
    remote.settle(kept)
    assert remote.far.store.depth == 0
    assert (
        remote.link.unsettled
        == remote.tunnel.upstream.unsettled
        == remote.tunnel.remote_consumer.unsettled
        == 0
    )
    assert remote.federated.containers() == []


def test_a_claim_under_way_when_the_tunnel_broke_is_confirmed_after_it(
    remote: FederatedQueue,
) -> None:
    (arrival,) = remote.deliver("a")
    remote.consumer.settle(arrival, settled=False)
    remote.near.core.flush()
    remote.tunnel.far.wire.feed(remote.tunnel.near.wire.take_output())
    assert remote.far.counts("accepted") == [1]
    remote.tunnel.cut()
    assert remote.confirmations() == []
    assert remote.again() == [SETTLE_CODE]
    assert remote.confirmations() == [(arrival.delivery_id, Accepted())]
    assert remote.take() == []
    assert remote.link.unsettled == 0


@pytest.mark.parametrize("is_swept", [True, False])
def test_what_was_under_way_when_the_tunnel_broke_is_given_back_by_the_next(is_swept: bool) -> None:
    remote = FederatedQueue(marks=True)
    had, handed = remote.deliver("had", "handed")
    remote.settle(handed, RECEIVED, settled=False)
    remote.far.send("under way")
    remote.far.core.flush()
    assert remote.far.counts("unsettled") == [3]
    serial = remote.far.store.serial_of(remote.tunnel.remote_consumer)
    if is_swept:
        remote.tunnel.cut()
        assert remote.far.counts("in-doubt") == [3]
    else:
        remote.federated.remove(remote.tunnel.upstream)
        remote.tunnel.upstream.detach()
        remote.far.store.remove_consumer(remote.tunnel.remote_consumer, is_over=False)
        remote.tunnel.remote_consumer.detach()
    remote.tunnel = remote._tunnel()
    assert remote.tunnel.resume() == [KEEP_CODE, KEEP_CODE]
    remote.far.store.take_back(serial)
    remote.tunnel.attach()
    assert texts(remote.take()) == ["under way"]
    assert remote.far.counts("unsettled", "in-doubt", "ready") == [3, 0, 0]
    for each in (had, handed):
        remote.settle(each, settled=False)
    assert [number for number, _ in remote.confirmations()] == [had.delivery_id, handed.delivery_id]
    assert remote.far.counts("accepted", "stale-claims") == [2, 0]


def test_what_another_consumer_may_have_is_not_taken_back() -> None:
    remote = FederatedQueue(marks=True)
    (arrival,) = remote.deliver("a")
    serial = remote.far.store.serial_of(remote.tunnel.remote_consumer)
    remote.tunnel.cut()
    remote.far.store.take_back(serial + 1)
    assert remote.far.counts("in-doubt", "ready") == [1, 0]
    assert remote.far.store.serial_of(remote.tunnel.remote_consumer) == 0
    assert remote.again() == [KEEP_CODE]
    remote.settle(arrival, settled=False)
    assert remote.far.counts("accepted") == [1]


def test_two_breaks_in_a_row_are_like_one(remote: FederatedQueue) -> None:
    (arrival,) = remote.deliver("a")
    remote.tunnel.cut()
    remote.tunnel = remote._tunnel()
    assert remote.tunnel.resume() == [KEEP_CODE]
    remote.tunnel.cut()
    assert remote.again() == [KEEP_CODE]
    assert remote.take() == []
    remote.settle(arrival, settled=False)
    assert remote.confirmations() == [(arrival.delivery_id, Accepted())]


def test_without_credit_the_attempts_go_on_once_there_is_some(remote: FederatedQueue) -> None:
    arrivals = remote.deliver(*(str(number) for number in range(10)))
    assert remote.link.credit == 0
    remote.tunnel.cut()
    assert remote.again() == [KEEP_CODE] * 10
    for each in arrivals:
        remote.settle(each, settled=False)
    remote.flow(10)
    assert remote.take() == []
    assert len(remote.confirmations()) == 10
    assert remote.far.store.depth == 0


def test_what_the_shard_took_back_meanwhile_goes_on_while_nobody_else_has_it(
    remote: FederatedQueue,
) -> None:
    remote.far.store.in_doubt_timeout_s = 0.0
    remote.far.store.redelivers_in_doubt = True
    (arrival,) = remote.deliver("a")
    remote.tunnel.cut()
    remote.far.store.tick(remote.far.core.now + 1)
    assert remote.far.counts("ready", "unsettled") == [1, 0]
    assert remote.again() == [KEEP_CODE]
    assert remote.take() == [], "it has the item"
    remote.settle(arrival, settled=False)
    assert remote.far.counts("accepted", "depth", "stale-claims") == [1, 0, 0]
    assert remote.confirmations() == [(arrival.delivery_id, Accepted())]


def test_what_somebody_else_had_and_gave_back_is_not_the_first_ones_again(
    remote: FederatedQueue,
) -> None:
    remote.far.store.in_doubt_timeout_s = 0.0
    remote.far.store.redelivers_in_doubt = True
    (arrival,) = remote.deliver("a")
    remote.tunnel.cut()
    remote.far.store.tick(remote.far.core.now + 1)
    other = peers.Peer(remote.far.core)
    link = other.consumer(remote.far.store, 1)
    (theirs,) = other.take()
    other.settle(theirs, Released())
    other.detach(remote.far.store, link)
    remote.consumer.settle(arrival, settled=False)
    assert remote.again() == [STALE_CODE]
    (back,) = remote.take()
    assert back.parts.attempt == arrival.parts.attempt + 2


def test_it_is_known_for_whom_something_may_be_taken_back() -> None:
    remote = FederatedQueue(marks=True)
    (arrival,) = remote.deliver("a")
    serial = remote.far.store.serial_of(remote.tunnel.remote_consumer)
    assert remote.far.store.leased_to() == set()
    remote.tunnel.cut()
    assert remote.far.store.leased_to() == {serial}
    assert remote.again() == [KEEP_CODE]
    assert remote.far.store.leased_to() == set()
    remote.settle(arrival, RECEIVED, settled=False)
    remote.tunnel.cut()
    assert remote.far.counts("in-doubt") == [1]
    assert remote.far.store.leased_to() == set(), "its application has it"
