"""The address table: which rule holds, and what a broken rule is told."""

from collections.abc import Callable, Sequence

import pytest

from cogwork.router import addresses
from cogwork.router.addresses import (
    DEFAULT_RULES,
    MAX_ADDRESS_LENGTH,
    AddressRule,
    AddressRuleError,
    AddressTable,
    Distribution,
    InvalidAddressError,
    SlowSubscriber,
    Unmatched,
    normalize,
    parse_rule,
)

MULTICAST, CLOSEST, BALANCED = Distribution.MULTICAST, Distribution.CLOSEST, Distribution.BALANCED


def prefix(words: str, kind: str = "direct") -> AddressRule:
    return AddressRule(prefix=words, kind=kind)


def pattern(words: str, kind: str = "direct") -> AddressRule:
    return AddressRule(pattern=words, kind=kind)


@pytest.mark.parametrize(
    ("address", "distribution", "kind", "subject"),
    [
        ("topic/flights.JFK.LAX.AA", MULTICAST, "topic", "flights.JFK.LAX.AA"),
        ("/topic/flights.*.LAX.#", MULTICAST, "topic", "flights.*.LAX.#"),
        ("topic", MULTICAST, "topic", ""),
        ("topic/", MULTICAST, "topic", ""),
        ("queue/orders", BALANCED, "queue", "orders"),
        ("queue.orders", BALANCED, "queue", "orders"),
        ("queues/orders", BALANCED, "direct", "queues/orders"),
        ("work/flights", BALANCED, "queue", "flights"),
        ("unicast/a/b", CLOSEST, "direct", "a/b"),
        ("exclusive.exchange.topic.server", CLOSEST, "direct", "exchange.topic.server"),
        ("broadcast/all", MULTICAST, "direct", "all"),
        ("anycast/any", BALANCED, "direct", "any"),
        ("openstack.org/om/rpc/multicast/e/t", MULTICAST, "direct", "e/t"),
        ("openstack.org/om/rpc/unicast/e/t/s", CLOSEST, "direct", "e/t/s"),
        ("openstack.org/om/rpc/anycast/e/t", BALANCED, "direct", "e/t"),
        ("openstack.org/om/notify/multicast/e", MULTICAST, "direct", "e"),
        ("openstack.org/om/notify/unicast/e", CLOSEST, "direct", "e"),
        ("openstack.org/om/notify/anycast/e", BALANCED, "queue", "e"),
        ("openstack.org/om/rpc", BALANCED, "direct", "openstack.org/om/rpc"),
        ("sink/null", CLOSEST, "sink", "null"),
        ("$management", CLOSEST, "management", ""),
        ("$cbs", CLOSEST, "cbs", ""),
        ("stream/prices", CLOSEST, "stream", "prices"),
        ("exchange/amq.topic", MULTICAST, "exchange", "amq.topic"),
        ("anything", BALANCED, "direct", "anything"),
        ("_reply/c.1/7", BALANCED, "direct", "_reply/c.1/7"),
    ],
)
def test_the_default_addresses(
    address: str, distribution: Distribution, kind: str, subject: str
) -> None:
    rule, rest = AddressTable().split(address)
    assert (rule.distribution, rule.kind, rest) == (distribution, kind, subject)


def test_work_parks_what_is_in_doubt_and_queues_redeliver_it() -> None:
    table = AddressTable()
    assert table.resolve("work/x").options["in_doubt"] == "park"
    assert table.resolve("queue/x").options["in_doubt"] == "redeliver"


def test_a_configured_prefix_takes_the_place_of_the_default() -> None:
    table = AddressTable.with_defaults([prefix("queue", "sink"), prefix("/", "topic")])
    assert table.resolve("queue/x").kind == "sink"
    assert table.resolve("work/x").kind == "queue"
    assert table.resolve("whatever").kind == "topic"
    assert len(table.rules) == len(DEFAULT_RULES)


def test_without_defaults_only_the_given_rules_hold() -> None:
    table = AddressTable([prefix("queue", "queue")])
    assert table.resolve("work/x").kind == "direct"


@pytest.mark.parametrize(
    ("rules", "address", "kind"),
    [
        ((prefix("a", "one"), prefix("a/b", "two")), "a/b/c", "two"),
        ((prefix("a", "one"), prefix("a/b", "two")), "a/bc", "one"),
        ((prefix("a", "one"), pattern("a.#", "two")), "a/b", "two"),
        ((prefix("a/b", "one"), pattern("a.*", "two")), "a/b", "one"),
        ((prefix("a", "one"), pattern("a.*", "two")), "a/b/c", "one"),
        ((pattern("a.#", "one"), pattern("a.*", "two")), "a/b", "two"),
        ((pattern("*.b", "one"), pattern("a.*", "two")), "a/b", "two"),
        ((pattern("#.b", "one"), pattern("a.#", "two")), "a/b", "two"),
        ((prefix("a/b", "one"), pattern("a/b", "two")), "a/b", "two"),
        ((prefix("a/b", "one"), pattern("a/b", "two")), "a/b/c", "one"),
        ((pattern("#.errors.#", "one"), prefix("logs", "two")), "logs.db.errors", "two"),
        ((pattern("#.errors.#", "one"), pattern("*.#", "two")), "logs.db.errors", "one"),
        ((pattern("#.errors.#", "one"), prefix("logs/db", "two")), "logs/db/errors", "two"),
    ],
)
def test_the_most_specific_rule_holds(
    rules: tuple[AddressRule, ...], address: str, kind: str
) -> None:
    assert AddressTable(rules).resolve(address).kind == kind
    assert AddressTable(reversed(rules)).resolve(address).kind == kind


def test_a_plain_name_is_not_sought_among_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Sequence[str]] = []
    monkeypatch.setattr(addresses, "takes", lambda pattern, _: looked.append(pattern))
    rules = [AddressRule(pattern=f"queue/{number}") for number in range(100)]
    table = AddressTable.with_defaults([*rules, AddressRule(pattern="queue.*.x")])
    assert table.resolve("queue/7").pattern == "queue/7"
    assert table.resolve("queue/new").pattern is None
    assert looked == [("queue", "*", "x")]


def test_a_rule_by_pattern_has_the_whole_address_for_a_subject() -> None:
    rule, subject = AddressTable([pattern("*.news.#", "topic")]).split("/uk.news.sport")
    assert (rule.kind, subject) == ("topic", "uk.news.sport")


@pytest.mark.parametrize("rules", [(prefix("a"), prefix("/a/")), (pattern("a.*"), pattern("/a/*"))])
def test_two_rules_for_the_same_place_are_refused(rules: tuple[AddressRule, ...]) -> None:
    with pytest.raises(AddressRuleError, match="used by two rules"):
        AddressTable(rules)


@pytest.mark.parametrize(
    "address",
    ["", "/", "//", "//queue/a", "x" * (MAX_ADDRESS_LENGTH + 1)],
    ids=["empty", "slash", "slashes", "two slashes", "long"],
)
def test_an_address_must_name_something(address: str) -> None:
    with pytest.raises(InvalidAddressError):
        AddressTable().resolve(address)


def test_normal_form() -> None:
    assert normalize("/topic/a") == "topic/a"
    assert normalize("topic/a/") == "topic/a/"


@pytest.mark.parametrize(
    ("idiom", "distribution"),
    [
        ({"fanout": "single", "bias": "closest"}, CLOSEST),
        ({"fanout": "single", "bias": "spread"}, BALANCED),
        ({"fanout": "multiple"}, MULTICAST),
        ({"fanout": "single"}, CLOSEST),
        ({"bias": "spread"}, BALANCED),
        ({}, BALANCED),
        ({"kind": "sink"}, CLOSEST),
        ({"kind": "topic"}, MULTICAST),
        ({"kind": "queue"}, BALANCED),
        ({"kind": "queue", "distribution": "closest"}, CLOSEST),
    ],
)
def test_the_router_idiom(idiom: dict[str, object], distribution: Distribution) -> None:
    rule = parse_rule({"prefix": "/unicast", **idiom})
    assert (rule.prefix, rule.distribution) == ("unicast", distribution)


def test_a_rule_with_everything() -> None:
    rule = parse_rule(
        {
            "pattern": "prices.#",
            "kind": "topic",
            "slow_subscriber": "drop-oldest",
            "block_timeout_s": 2,
            "block_bytes": 1000,
            "unmatched": "release",
            "ttl_s": 0.5,
            "dead_letter": "queue/dead",
            "options": {"depth": 3},
        }
    )
    assert rule == AddressRule(
        pattern="prices.#",
        distribution=MULTICAST,
        kind="topic",
        slow_subscriber=SlowSubscriber.DROP_OLDEST,
        block_timeout_s=2,
        block_bytes=1000,
        unmatched=Unmatched.RELEASE,
        ttl_s=0.5,
        dead_letter="queue/dead",
        options={"depth": 3},
    )


@pytest.mark.parametrize(
    ("table", "key", "expected"),
    [
        ({}, "prefix", "a prefix or a pattern"),
        ({"prefix": "a", "pattern": "a.#"}, "pattern", "one of the two"),
        ({"prefix": "a.*"}, "prefix", "see pattern"),
        ({"prefix": 7}, "prefix", "words without"),
        ({"pattern": "/"}, "pattern", "words"),
        ({"prefix": "a", "fan_out": "single"}, "fan_out", "one of prefix"),
        (
            {"prefix": "a", "distribution": "nearest"},
            "distribution",
            "multicast, closest, balanced",
        ),
        (
            {"prefix": "a", "distribution": "closest", "bias": "spread"},
            "distribution",
            "or the other",
        ),
        ({"prefix": "a", "fanout": "double"}, "fanout", "single or multiple"),
        ({"prefix": "a", "bias": "far"}, "bias", "closest or spread"),
        ({"prefix": "a", "fanout": "multiple", "bias": "spread"}, "bias", "fanout single"),
        (
            {"prefix": "a", "slow_subscriber": "wait"},
            "slow_subscriber",
            "block, drop-oldest, detach",
        ),
        ({"prefix": "a", "unmatched": True}, "unmatched", "accept, release"),
        ({"prefix": "a", "block_timeout_s": 0}, "block_timeout_s", "seconds above 0"),
        ({"prefix": "a", "block_timeout_s": float("nan")}, "block_timeout_s", "seconds above 0"),
        ({"prefix": "a", "block_bytes": True}, "block_bytes", "a whole number above 0"),
        ({"prefix": "a", "ttl_s": "1"}, "ttl_s", "seconds above 0"),
        ({"prefix": "a", "dead_letter": "dead.#"}, "dead_letter", "a plain address"),
        ({"prefix": "a", "kind": ""}, "kind", "the name of a node kind"),
        ({"prefix": "a", "options": 3}, "options", "a table"),
    ],
)
def test_a_broken_rule_is_told_which_key_and_what_is_right(
    table: dict[str, object], key: str, expected: str
) -> None:
    with pytest.raises(AddressRuleError) as caught:
        parse_rule(table)
    assert caught.value.key == key
    assert expected in caught.value.expected
    assert key in str(caught.value)


@pytest.mark.parametrize("parse", [parse_rule, lambda table: AddressRule(**table)])
def test_a_rule_made_in_code_is_checked_too(
    parse: Callable[[dict[str, object]], AddressRule],
) -> None:
    with pytest.raises(AddressRuleError, match=r'prefix "a": block_bytes: -1; expected a whole'):
        parse({"prefix": "a", "block_bytes": -1})
