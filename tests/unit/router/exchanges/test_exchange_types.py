"""What single types of exchanges do that a naive model cannot say."""

from collections import Counter
from datetime import UTC, datetime

import pytest

from cogwork.amqp.types import Timestamp as Milliseconds
from cogwork.amqp.types import UShort
from cogwork.amqp091.types import Float32, Int8, Timestamp
from cogwork.router.exchanges.binding import (
    Binding,
    Destination,
    InvalidBinding,
    Routed,
    comparable,
)
from cogwork.router.exchanges.consistent_hash import WEIGHT_MAX, ConsistentHashExchange
from cogwork.router.exchanges.headers import HeadersExchange
from cogwork.router.exchanges.randomly import RandomExchange
from cogwork.router.exchanges.topic import TopicExchange


def first(_below: int) -> int:
    return 0


def queue(name: str) -> Destination:
    return Destination("queue", name)


def shares(exchange: ConsistentHashExchange, count: int = 3000) -> dict[int, Destination]:
    return {
        number: destination
        for number in range(count)
        for destination in exchange.match(Routed((b"key %d" % number,)))
    }


def test_a_consistent_hash_gives_each_key_one_queue_by_weight() -> None:
    exchange = ConsistentHashExchange({}, first)
    exchange.bind(Binding(queue("one"), b"1"))
    exchange.bind(Binding(queue("three"), b"3"))
    found = shares(exchange)
    counts = Counter(found.values())
    assert sum(counts.values()) == 3000
    assert 1.8 < counts[queue("three")] / counts[queue("one")] < 5
    assert shares(exchange) == found


def test_few_keys_move_when_a_queue_comes_and_none_when_it_has_gone_again() -> None:
    exchange = ConsistentHashExchange({}, first)
    for name in "abcd":
        exchange.bind(Binding(queue(name), b"1"))
    before = shares(exchange)
    exchange.bind(Binding(queue("e"), b"1"))
    moved = {number: to for number, to in shares(exchange).items() if before[number] != to}
    assert set(moved.values()) == {queue("e")}
    assert len(moved) < 3000 / 5 * 1.6
    exchange.unbind(Binding(queue("e"), b"1"))
    assert shares(exchange) == before


def test_a_consistent_hash_may_go_by_a_header() -> None:
    exchange = ConsistentHashExchange({"hash-header": "customer"}, first)
    for name in "abcd":
        exchange.bind(Binding(queue(name), b"1"))
    found = {
        destination
        for key in range(50)
        for destination in exchange.match(Routed((b"%d" % key,), lambda: {"customer": 7}))
    }
    assert not exchange.is_by_key
    assert len(found) == 1


@pytest.mark.parametrize("key", [b"", b"heavy", b"-1", b"0", b"%d" % (WEIGHT_MAX + 1)])
def test_a_weight_is_a_number_within_bounds(key: bytes) -> None:
    exchange = ConsistentHashExchange({}, first)
    with pytest.raises(InvalidBinding, match="The binding key must be"):
        exchange.bind(Binding(queue("q"), key))
    assert list(exchange.match(Routed((b"k",)))) == []


def test_an_argument_that_cannot_be_used_is_refused() -> None:
    with pytest.raises(InvalidBinding, match="hash-header"):
        ConsistentHashExchange({"hash-header": 5}, first)
    with pytest.raises(InvalidBinding, match="hash-property is not supported"):
        ConsistentHashExchange({"hash-property": "message_id"}, first)


def test_a_random_exchange_takes_the_chosen_one() -> None:
    exchange = RandomExchange({}, lambda below: below - 1)
    assert list(exchange.match(Routed((b"",)))) == []
    exchange.bind(Binding(queue("a"), b""))
    exchange.bind(Binding(queue("b"), b""))
    assert exchange.match(Routed((b"any",))) == [queue("b")]
    exchange.unbind(Binding(queue("b"), b""))
    assert exchange.match(Routed((b"any",))) == [queue("a")]


@pytest.mark.parametrize("mode", ["ALL", "none", ""])
def test_an_unknown_x_match_is_refused(mode: str) -> None:
    exchange = HeadersExchange({}, first)
    with pytest.raises(InvalidBinding, match="expected all, any, all-with-x, or any-with-x"):
        exchange.bind(Binding(queue("q"), b"", {"x-match": mode, "a": 1}))
    with pytest.raises(InvalidBinding, match="expected longstr"):
        exchange.bind(Binding(queue("q"), b"", {"x-match": 1}))


def test_a_topic_pattern_has_a_bounded_number_of_words() -> None:
    exchange = TopicExchange({}, first)
    with pytest.raises(InvalidBinding, match="129 words"):
        exchange.bind(Binding(queue("q"), b"." * 128))
    assert list(exchange.match(Routed((b"." * 128,)))) == []


def test_bindings_that_differ_in_arguments_alone_count_apart() -> None:
    exchange = TopicExchange({}, first)
    plain, other = Binding(queue("q"), b"a"), Binding(queue("q"), b"a", {"x": 1})
    exchange.bind(plain)
    exchange.bind(other)
    exchange.unbind(plain)
    assert list(exchange.match(Routed((b"a",)))) == [queue("q")]
    exchange.unbind(other)
    assert list(exchange.match(Routed((b"a",)))) == []


def test_a_message_with_several_keys_goes_by_each() -> None:
    exchange = TopicExchange({}, first)
    exchange.bind(Binding(queue("q"), b"a.*"))
    exchange.bind(Binding(queue("r"), b"b"))
    assert set(exchange.match(Routed((b"a.x", b"b")))) == {queue("q"), queue("r")}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Int8(1), UShort(1)),
        (Float32(0.5), 0.5),
        (Timestamp(1), Milliseconds(1000)),
        (Timestamp(1), datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
        ({"a": 1, "b": [2]}, {"b": (2,), "a": Int8(1)}),
    ],
)
def test_values_of_both_protocols_compare_by_what_they_mean(one: object, other: object) -> None:
    assert comparable(one) == comparable(other)


@pytest.mark.parametrize(
    ("one", "other"), [(1, True), (1, 1.0), ("1", b"1"), (0, None), (1, Timestamp(1)), ([], {})]
)
def test_values_of_different_classes_are_never_equal(one: object, other: object) -> None:
    assert comparable(one) != comparable(other)
