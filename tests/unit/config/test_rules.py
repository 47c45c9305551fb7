"""Address rules of the file, as the router takes them."""

from __future__ import annotations

import pytest

from cogwork.config.addressing import table_of
from cogwork.config.reading import parse
from cogwork.config.rules import queue_options, rule_of
from cogwork.config.settings import Address, Queue
from cogwork.router.addresses import Distribution, SlowSubscriber, Unmatched


def test_what_a_rule_leaves_open_is_the_built_in_rules() -> None:
    rule = rule_of(Address(prefix="work/", dead_letter="queue/dead", maximum_delivery_count=5))
    assert rule.kind == "queue"
    assert rule.distribution is Distribution.BALANCED
    assert rule.dead_letter == "queue/dead"
    assert rule.options["in_doubt"] == "park"
    assert rule.options["maximum_delivery_count"] == 5
    assert "dead_letter" not in rule.options


def test_a_pattern_takes_after_the_prefix_it_lies_below() -> None:
    assert rule_of(Address(pattern="queue/*.urgent", in_doubt="park")).options["in_doubt"] == "park"
    assert rule_of(Address(pattern="topic/prices.#")).distribution is Distribution.MULTICAST


def test_another_kind_brings_its_own_distribution() -> None:
    assert rule_of(Address(prefix="orders", kind="queue")).distribution is Distribution.BALANCED
    assert rule_of(Address(prefix="work", kind="topic")).distribution is Distribution.MULTICAST
    assert dict(rule_of(Address(prefix="work", kind="topic")).options) == {}


@pytest.mark.parametrize(
    ("address", "distribution"),
    [
        (Address(prefix=""), Distribution.BALANCED),
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


def test_each_virtual_host_has_a_table_of_its_own() -> None:
    configuration = parse(
        """
        [[address]]
        prefix = "jobs"
        kind = "queue"
        [[vhost]]
        name = "blue"
        [[vhost.address]]
        prefix = "jobs"
        kind = "sink"
        """
    )
    assert table_of(configuration).resolve("jobs/a").kind == "queue"
    assert table_of(configuration.vhosts[0]).resolve("jobs/a").kind == "sink"
    assert table_of(configuration.vhosts[0]).resolve("queue/a").kind == "queue"


def test_a_queue_is_told_every_option_that_has_a_value() -> None:
    options = queue_options(Queue(address="queue/a", maximum_length=3, maximum_bytes=2000))
    assert (options["maximum_length"], options["maximum_bytes"]) == (3, 2000)
    assert options["maximum_length_policy"] == "block"
    assert "in_doubt" not in options
    assert "address" not in options
