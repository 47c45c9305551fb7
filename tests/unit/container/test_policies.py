"""Policies: which one holds, and what comes of it together with what was declared."""

from __future__ import annotations

from typing import Any

import pytest

from cogwork.config.checks import problem_of_policy
from cogwork.config.settings import Policy
from cogwork.container.cluster.settings import check
from cogwork.container.vhost.policies import governed_options, in_order
from cogwork.router.rules import AddressRule


def rule(ttl_s: float | None = None, dead_letter: str | None = None, **options: Any) -> AddressRule:
    return AddressRule(
        pattern="queue/q", kind="queue", ttl_s=ttl_s, dead_letter=dead_letter, options=options
    )


@pytest.mark.parametrize(
    ("declared", "definition", "options"),
    [
        (rule(), {"message-ttl": 1500}, {"ttl_s": 1.5}),
        (rule(ttl_s=1.0), {"message-ttl": 1500}, {"ttl_s": 1.0}),
        (rule(ttl_s=2.0), {"message-ttl": 1500}, {"ttl_s": 1.5}),
        (
            rule(),
            {"max-length": 5},
            {"maximum_length": 5, "maximum_length_policy": "drop-oldest"},
        ),
        (
            rule(maximum_length=9, maximum_length_policy="drop-oldest"),
            {"max-length": 5, "overflow": "reject-publish"},
            {"maximum_length": 5, "maximum_length_policy": "reject"},
        ),
        (
            rule(maximum_length=3, maximum_length_policy="reject"),
            {"max-length": 5, "overflow": "drop-head"},
            {"maximum_length": 3, "maximum_length_policy": "reject"},
        ),
        (
            rule(maximum_length=3, maximum_length_policy="block"),
            {"max-length": 2},
            {"maximum_length": 2},
        ),
        (
            rule(maximum_bytes=1 << 30, maximum_length_policy="block"),  # as a restart says it
            {"max-length": 2},
            {"maximum_length": 2, "maximum_length_policy": "drop-oldest"},
        ),
        (rule(), {"delivery-limit": 2}, {"maximum_delivery_count": 3}),
        (rule(maximum_delivery_count=2), {"delivery-limit": 5}, {"maximum_delivery_count": 2}),
        (rule(), {"dead-letter-exchange": "dlx"}, {"dead_letter": "exchange/dlx"}),
        (rule(), {"dead-letter-exchange": ""}, {"dead_letter": "exchange/amq.default"}),
        (
            rule(dead_letter="exchange/mine"),
            {"dead-letter-exchange": "dlx", "dead-letter-routing-key": "k"},
            {"dead_letter": "exchange/mine/k"},
        ),
        (rule(dead_letter="topic/dead"), {"dead-letter-exchange": "dlx"}, {}),
        (rule(), {"dead-letter-routing-key": "k"}, {}),
        (rule(ttl_s=2.0), {"alternate-exchange": "others", "queue-mode": "lazy"}, {}),
        (rule(), {"expires": 1000}, {}),
    ],
)
def test_the_smaller_number_holds_and_of_all_else_what_was_declared(
    declared: AddressRule, definition: dict[str, Any], options: dict[str, Any]
) -> None:
    assert governed_options(declared, definition) == options


def test_the_highest_priority_goes_first_and_of_equals_the_first_name() -> None:
    policies = [
        Policy(name=name, pattern="", definition={}, priority=priority)
        for name, priority in (("b", 0), ("c", 5), ("a", 0), ("d", -1))
    ]
    assert [each.name for each in in_order(policies)] == ["c", "a", "b", "d"]


@pytest.mark.parametrize(
    ("pattern", "definition", "problem"),
    [
        ("(", {"expires": 1}, 'pattern is "(": missing )'),
        ("x" * 2000, {"expires": 1}, "2000 characters (expected at most 1024)"),
        ("", {}, "definition is empty (expected at least one of message-ttl"),
        ("", {"message-tll": 1}, "did you mean message-ttl?"),
        ("", {"message-ttl": "1"}, "message-ttl is '1' (expected an integer from 0 to"),
        ("", {"max-length": True}, "max-length is True (expected an integer from 0)"),
        ("", {"expires": 0}, "expires is 0 (expected an integer from 1 to"),
        ("", {"overflow": "drop"}, "expected one of drop-head, reject-publish"),
        ("", {"dead-letter-exchange": 5}, "expected the name of an exchange"),
    ],
)
def test_what_is_wrong_with_a_policy_is_said(
    pattern: str, definition: dict[str, Any], problem: str
) -> None:
    policy = Policy(name="p", pattern=pattern, definition=definition)
    assert problem in problem_of_policy(policy)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"pattern": "^a", "message-ttl": 5, "priority": 3, "apply_to": "queues"}, ""),
        ({"pattern": "^a", "ttl": 5}, "ttl is the unknown key 'ttl' (expected one of message-ttl"),
        ({"message-ttl": 5}, "missing required field `pattern`"),
        ({"pattern": "", "message-ttl": 5, "apply_to": "streams"}, "Invalid enum value"),
        ({"pattern": "", "message-ttl": -5}, "expected an integer from 0"),
    ],
)
def test_a_cluster_takes_what_a_configuration_takes(options: dict[str, Any], problem: str) -> None:
    found = check("policy", "blue", "p", options)
    assert problem in found
    assert bool(problem) == bool(found)
