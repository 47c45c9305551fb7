"""Clients that come with items which another container had borrowed for them."""

from __future__ import annotations

import peers
import pytest
from lenders import Lent, Shard, Tunnel
from text_messages import texts

from cogwork.amqp.outcomes import Accepted, Released
from cogwork.dataplane.queue.borrower import Borrower
from cogwork.dataplane.queue.store import KEEP_CODE, SETTLE_CODE, STALE_CODE


class Moved:
    """A client that has items of a shard, by another container's loan, and comes to this one."""

    def __init__(self, lent: Lent, *tags: bytes) -> None:
        self.shard = lent.far
        self.near = Shard(3)
        self.consumer = peers.Peer(self.near.core)
        self.link = self.consumer.consumer(self.near.store, marks_received=True)
        self.borrower = Borrower(self.near.store, self.link)
        for tag in tags:
            self.borrower.expect("far", tag)
        self.tunnel = Tunnel(lent.far, self.borrower, marks_received=True)

    def ask(self, *, handed: bool = True) -> list[int]:
        """Presents the tags, as `Borrowing` does."""
        tags = self.borrower.tags_of("far")
        codes = self.shard.store.resume(self.tunnel.lender, tags, tags if handed else ())
        for tag, code in zip(tags, codes, strict=True):
            assert tag in self.borrower.expected
            if code == KEEP_CODE:
                self.tunnel.loan.awaited += 1
            else:
                self.borrower.forget(tag)
        self.tunnel.attach()
        return codes

    def begin(self) -> list[peers.Arrival]:
        self.borrower.begin()
        return self.take()

    def flow(self, credit: int) -> None:
        self.consumer.flow(self.link, credit)
        self.tunnel.run()

    def take(self) -> list[peers.Arrival]:
        self.tunnel.run()
        return self.consumer.take()


def test_nothing_comes_before_the_attach_is_answered_and_then_what_the_client_has() -> None:
    lent = Lent(marks=True)
    held = [each.tag for each in lent.lend("a", "b", "c")]
    lent.tunnel.cut()
    moved = Moved(lent, *held)
    moved.near.send("near")
    lent.far.send("far")
    assert moved.ask() == [KEEP_CODE] * 3
    moved.flow(3)
    assert moved.take() == []
    assert moved.tunnel.loan.credit == 0
    arrivals = moved.begin()
    assert [each.tag for each in arrivals] == held
    assert moved.tunnel.loan.awaited == moved.tunnel.loan.credit == 0
    assert moved.borrower.expected == {}
    moved.consumer.settle(arrivals[0], last=arrivals[1], settled=False)
    moved.consumer.settle(arrivals[2], Released())
    moved.take()
    assert lent.far.counts("accepted", "released", "unsettled") == [2, 1, 0]
    (said,) = moved.consumer.dispositions
    assert (said.first, said.last, said.state) == (
        arrivals[0].delivery_id,
        arrivals[1].delivery_id,
        Accepted(),
    )
    moved.flow(3)
    assert texts(moved.take()) == ["near", "c", "far"]


def test_what_waits_for_credit_comes_as_there_is_some() -> None:
    lent = Lent(marks=True)
    held = [each.tag for each in lent.lend("a", "b", "c", "d", "e")]
    lent.tunnel.cut()
    moved = Moved(lent, *held)
    moved.near.send("near")
    moved.ask()
    moved.begin()
    got: list[peers.Arrival] = []
    for credit in (3, 1, 1, 1):
        assert len(got) == 0 or len(moved.borrower.expected) == 5 - len(got)
        moved.flow(credit)
        got += moved.take()
    assert [each.tag for each in got[:5]] == held
    assert texts(got[5:]) == ["near"]


def test_what_is_stale_is_not_waited_for() -> None:
    lent = Lent(marks=True)
    (arrival,) = lent.lend("a")
    lent.settle(arrival, settled=False)
    moved = Moved(lent, arrival.tag, arrival.tag[:15] + b"\x07")
    moved.near.send("near")
    assert moved.ask() == [SETTLE_CODE, STALE_CODE]
    assert moved.borrower.containers() == []
    moved.flow(1)
    assert texts(moved.begin()) == ["near"]


def test_an_awaited_item_stays_with_its_shard_where_the_credit_is_taken_back() -> None:
    lent = Lent(marks=True)
    (arrival,) = lent.lend("a")
    lent.tunnel.cut()
    moved = Moved(lent, arrival.tag)
    moved.ask()
    moved.flow(1)
    moved.borrower.begin()
    moved.near.core.flush()
    moved.consumer.flow(moved.link, 0)
    assert moved.take() == []
    assert arrival.tag in moved.borrower.expected
    assert lent.far.counts("unsettled", "ready") == [1, 0]
    moved.borrower.forget(arrival.tag)
    moved.flow(1)
    moved.near.send("near")
    assert texts(moved.take()) == ["near"]
    moved.tunnel.cut()
    assert lent.far.counts("in-doubt") == [1]


@pytest.mark.parametrize("handed", [True, False])
def test_what_the_application_has_is_in_doubt_when_its_container_goes_too(handed: bool) -> None:
    lent = Lent(marks=True)
    (arrival,) = lent.lend("a")
    lent.tunnel.cut()
    moved = Moved(lent, arrival.tag)
    moved.ask(handed=handed)
    moved.tunnel.shard.store.remove_consumer(moved.tunnel.lender)
    moved.tunnel.lender.detach()
    lent.far.core.flush()
    assert lent.far.counts("ready", "in-doubt") == ([0, 1] if handed else [1, 0])


def test_the_next_loan_goes_on_where_one_broke() -> None:
    lent = Lent(marks=True)
    first, second = lent.lend("a", "b")
    lent.tunnel.cut()
    moved = Moved(lent, first.tag, second.tag)
    moved.ask()
    moved.flow(1)
    (came,) = moved.begin()
    moved.tunnel.cut()
    moved.tunnel = Tunnel(lent.far, moved.borrower, marks_received=True)
    assert sorted(moved.borrower.tags_of("far")) == sorted([first.tag, second.tag])
    assert moved.borrower.expected == {second.tag: "far"}
    assert lent.far.store.resume(moved.tunnel.lender, [first.tag, second.tag]) == [KEEP_CODE] * 2
    moved.tunnel.loan.owed = moved.tunnel.loan.awaited = 1
    moved.tunnel.attach()
    moved.flow(1)
    assert [each.tag for each in moved.take()] == [second.tag]
    moved.consumer.settle(came, settled=False)
    moved.take()
    assert lent.far.counts("accepted", "unsettled") == [1, 1]
