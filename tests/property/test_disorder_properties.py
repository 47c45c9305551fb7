"""Disorder, against counting it item by item."""

from __future__ import annotations

from array import array

import peers
from hypothesis import given
from hypothesis import strategies as st

from cogwork.amqp.message import Data, Header, Sections, decode_sections, encode_sections
from cogwork.amqp.outcomes import Released
from cogwork.dataplane.addresses.entry import BALANCED_CODE, AddressEntry
from cogwork.dataplane.core import Core
from cogwork.dataplane.queue.disorder import Disorder
from cogwork.dataplane.queue.histogram import Histogram
from cogwork.dataplane.queue.store import Store

RING = 64 * 64
"""Numbers that the smallest ring has room for; one word of them is kept free."""


def counted(values: list[int]) -> Histogram:
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    return histogram


def figures(histogram: Histogram) -> list[int]:
    return [histogram.maximum, *(histogram.quantile(each) for each in (10, 50, 90, 99, 100))]


class Oracle:
    """Every number that went out."""

    def __init__(self) -> None:
        self.out: list[int] = []
        self.found: list[int] = []

    def take(self, number: int) -> None:
        self.found.append(sum(1 for each in self.out if each > number))
        self.out.append(number)


@st.composite
def stories(draw: st.DrawFn) -> list[tuple[int, bool]]:
    """Numbers in the order in which they go out, or are lost; mostly near their places."""
    count = draw(st.integers(1, 300))
    stride = draw(st.sampled_from([1, 1, 7, 40]))
    reach = draw(st.sampled_from([1, 5, 80, 1000]))
    places = [number + draw(st.integers(0, reach)) for number in range(count)]
    order = sorted(range(count), key=lambda number: (places[number], number))
    lost = draw(st.sampled_from([0, 3]))
    story: list[tuple[int, bool]] = []
    for number in order:
        is_lost = lost > 0 and draw(st.integers(0, lost)) == 0
        story.append((number * stride + 1, is_lost))
    # The numbers between are lost beforehand, as they must not stay open.
    between = sorted(set(range(1, count * stride + 1)) - {number for number, _ in story})
    return [*((number, True) for number in between), *story]


@given(stories())
def test_it_counts_as_an_oracle_does(story: list[tuple[int, bool]]) -> None:
    disorder, oracle = Disorder(), Oracle()
    for number, is_lost in story:
        if is_lost:
            disorder.lose(number)
        else:
            disorder.take(number)
            oracle.take(number)
        assert figures(disorder.histogram) == figures(counted(oracle.found))
    assert disorder.first == len(story) + 1


@given(st.permutations(range(1, 60)))
def test_many_at_a_time_count_as_one_by_one_does(order: list[int]) -> None:
    singly, together = Disorder(), Disorder()
    for number in order:
        singly.take(number)
    together.take_all(array("q", order[:20]))
    together.take_all(array("q", order[20:]))
    assert figures(together.histogram) == figures(singly.histogram)
    assert together.first == singly.first


@given(st.integers(1, 3 * RING), st.integers(0, 200), st.booleans())
def test_an_item_far_behind_is_overtaken_by_all_that_went_out(
    count: int, steps: int, is_lost: bool
) -> None:
    disorder = Disorder(64)
    for number in range(2, count + 2):
        disorder.take(number)
    if is_lost:
        disorder.lose(1)
    else:
        disorder.take(1)
    assert disorder.behind == 0
    assert disorder.histogram.maximum == (0 if is_lost else count)
    for number in range(count + 2, count + steps + 2):
        disorder.take(number)
    assert disorder.first == count + steps + 2
    assert disorder.histogram.maximum == (0 if is_lost else count)


def test_a_backlog_longer_than_the_ring_keeps_its_order() -> None:
    disorder, values = Disorder(64), list[int]()
    urgent = 3 * RING
    disorder.take(urgent)
    assert disorder.behind > RING
    for number in range(1, urgent):
        disorder.take(number)
        values.append(1)
    assert figures(disorder.histogram) == figures(counted([0, *values]))
    assert (disorder.first, disorder.behind) == (urgent + 1, 0)


def test_what_fell_behind_may_be_lost_there() -> None:
    disorder = Disorder(64)
    disorder.take(2 * RING)
    for number in range(1, 2 * RING):
        disorder.lose(number)
    assert (disorder.first, disorder.behind, disorder.histogram.maximum) == (2 * RING + 1, 0, 0)
    disorder.take(2 * RING + 2)
    disorder.take(2 * RING + 1)
    assert disorder.histogram.maximum == 1


def numbered(number: int, priority: int) -> bytes:
    return encode_sections(
        Sections(header=Header(priority=priority), body=Data([number.to_bytes(4, "big")]))
    )


def number_of(message: bytes) -> int:
    body = decode_sections(message).body
    assert isinstance(body, Data)
    return int.from_bytes(body.parts[0], "big")


STEPS = st.one_of(
    st.tuples(st.just("publish"), st.integers(0, 9)),
    st.tuples(st.sampled_from(["even", "odd", "any"]), st.booleans()),
    st.tuples(st.just("move"), st.just(2)),
)


@given(st.lists(STEPS, max_size=80))
def test_a_store_counts_first_attempts_as_an_oracle_does(steps: list[tuple[str, int]]) -> None:
    core, oracle, count = Core(), Oracle(), 0
    store = Store(core, 1)
    entry = AddressEntry(core, "queue/a", BALANCED_CODE)
    entry.add_outlet(store)
    peer = peers.Peer(core)
    sender = peer.publisher(entry, 10_000)
    links = {
        "even": peer.consumer(store, selector=lambda data: number_of(data) % 2 == 0),
        "odd": peer.consumer(store, selector=lambda data: number_of(data) % 2 == 1),
        "any": peer.consumer(store),
    }
    for step, what in steps:
        if step == "publish":
            count += 1
            peer.send(sender, numbered(count, what))
        elif step == "move":
            numbers: list[int] = []
            store.take_ready(what, numbers)
            store.moved(numbers)
        else:
            peer.flow(links[step], 1)
            for arrival in peer.take():
                if arrival.parts.attempt == 1:
                    oracle.take(number_of(arrival.message))
                peer.settle(arrival, Released() if what else None)
            peer.flow(links[step], 0)
            peer.take()
        assert figures(store.items.disorder.histogram) == figures(counted(oracle.found))
    assert store.counts()["disorder-maximum"] == max(oracle.found, default=0)
