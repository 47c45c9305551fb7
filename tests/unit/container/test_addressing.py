"""Address rules of the file, as the router takes them."""

from __future__ import annotations

import pytest

from cogwork.container.addressing import AddressingError, table_of
from cogwork.container.settings import Address, Node, Queue
from cogwork.router.addresses import AddressRule, Distribution, SlowSubscriber, Unmatched


def rule_of(address: Address) -> AddressRule:
    (rule,) = (
        rule
        for rule in table_of([address], [], []).rules
        if rule.name.endswith(f'"{(address.prefix or address.pattern or "").rstrip("/")}"')
    )
    return rule


def test_what_a_rule_leaves_open_is_the_built_in_rules() -> None:
    rule = rule_of(Address(prefix="work/", dead_letter="queue/dead", maximum_delivery_count=5))
    assert rule.kind == "queue"
    assert rule.distribution is Distribution.BALANCED
    assert rule.dead_letter == "queue/dead"
    assert rule.options["in_doubt"] == "park"
    assert rule.options["maximum_delivery_count"] == 5


def test_a_pattern_takes_after_the_prefix_it_lies_below() -> None:
    assert rule_of(Address(pattern="queue/*.urgent")).options["in_doubt"] == "redeliver"
    assert rule_of(Address(pattern="queue/*.b", in_doubt="park")).options["in_doubt"] == "park"
    assert rule_of(Address(pattern="topic/prices.#")).distribution is Distribution.MULTICAST


def test_another_kind_brings_its_own_distribution_and_no_options_of_queues() -> None:
    assert rule_of(Address(prefix="orders", kind="queue")).distribution is Distribution.BALANCED
    topic = rule_of(Address(prefix="work", kind="topic"))
    assert topic.distribution is Distribution.MULTICAST
    assert dict(topic.options) == {}


@pytest.mark.parametrize(
    ("address", "distribution"),
    [
        (Address(prefix=""), Distribution.CLOSEST),
        (Address(prefix="", distribution="balanced"), Distribution.BALANCED),
        (Address(prefix="a", fanout="multiple"), Distribution.MULTICAST),
        (Address(prefix="a", fanout="single", bias="spread"), Distribution.BALANCED),
        (Address(prefix="topic/a", fanout="single", bias="closest"), Distribution.CLOSEST),
    ],
)
def test_distributions_and_the_router_idiom(address: Address, distribution: Distribution) -> None:
    assert rule_of(address).distribution is distribution


def test_policies_of_subscribers_are_taken_over() -> None:
    rule = rule_of(
        Address(
            prefix="topic/prices",
            slow_subscriber="drop-oldest",
            block_timeout_s=1,
            block_bytes=2,
            unmatched="release",
            ttl_s=3,
        )
    )
    assert rule.slow_subscriber is SlowSubscriber.DROP_OLDEST
    assert (rule.block_timeout_s, rule.block_bytes, rule.ttl_s) == (1, 2, 3)
    assert rule.unmatched is Unmatched.RELEASE


def test_a_declared_queue_has_every_option_and_its_prefixes_way_with_doubt() -> None:
    rule = table_of([], [Queue(address="work/a", maximum_length=3, ttl_s=5)], []).resolve("work/a")
    assert (rule.kind, rule.ttl_s) == ("queue", 5)
    assert rule.options["maximum_length"] == 3
    assert rule.options["maximum_length_policy"] == "block"
    assert rule.options["in_doubt"] == "park"
    assert "address" not in rule.options


def test_a_node_has_an_exact_name_or_all_below_a_prefix() -> None:
    nodes = [
        Node(address="hello", kind="greeter", options={"language": "mi"}),
        Node(address="hi/", kind="sink"),
    ]
    table = table_of([], [], nodes)
    assert table.resolve("hello").kind == "greeter"
    assert table.resolve("hello").options["language"] == "mi"
    assert table.resolve("hello/you").kind == "direct"
    assert table.resolve("hi/you").kind == "sink"


def test_two_rules_for_one_name_are_refused() -> None:
    with pytest.raises(AddressingError, match="used by two rules"):
        table_of([Address(pattern="queue/a")], [Queue(address="queue/a")], [])
