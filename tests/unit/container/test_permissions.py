"""Address patterns of permissions: what they cover, and that no request gets more."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.container.permissions import (
    Permissions,
    matches,
    misplaced_wildcard,
    permissions_of,
)
from cogwork.container.settings import Configuration, Permission, User


@pytest.mark.parametrize(
    ("pattern", "address", "covered"),
    [
        ("#", "anything/at.all", True),
        ("#", "", True),
        ("queue/#", "queue/a.b/c", True),
        ("queue/#", "queue", True),
        ("queue/#", "queues/a", False),
        ("queue/#", "queue.a", False),
        ("queue/*", "queue/a", True),
        ("queue/*", "queue/a.b", False),
        ("topic/flights.*.LAX.#", "topic/flights.JFK.LAX", True),
        ("topic/flights.*.LAX.#", "topic/flights.JFK.LAX.AA.1", True),
        ("topic/flights.*.LAX.#", "topic/flights.JFK.SFO", False),
        ("topic/flights.#", "topic/flights/x", False),
        ("/queue/a", "queue/a", True),
        ("queue/a", "/queue/a", True),
        ("#.b/#", "x.b.b/y", True),
        ("orders", "Orders", False),
    ],
)
def test_what_a_pattern_covers(pattern: str, address: str, covered: bool) -> None:
    assert matches(pattern, address) is covered


@pytest.mark.parametrize(
    ("permission", "request_pattern", "covered"),
    [
        ("topic/flights.#", "topic/flights.#", True),
        ("topic/flights.#", "topic/flights.*.LAX", True),
        ("topic/flights.*", "topic/flights.*", True),
        ("topic/flights.*", "topic/flights.#", False),
        ("topic/flights.JFK", "topic/flights.*", False),
        ("topic/flights.JFK", "topic/#", False),
    ],
)
def test_a_pattern_asked_for_must_be_covered_whole(
    permission: str, request_pattern: str, covered: bool
) -> None:
    assert matches(permission, request_pattern) is covered


words = st.lists(st.sampled_from(["a", "b", "*", "#"]), min_size=1, max_size=6).map(".".join)
plain = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=6).map(".".join)


def by_regular_expression(pattern: str, address: str) -> bool:
    """The slow and obvious way: each word with the dot before it."""
    parts = {"*": r"\.[^.]+", "#": r"(?:\.[^.]+)*"}
    expression = "".join(parts.get(word, re.escape(f".{word}")) for word in pattern.split("."))
    return re.fullmatch(expression, f".{address}") is not None


@given(words, plain)
def test_it_agrees_with_the_regular_expression(pattern: str, address: str) -> None:
    # A leading # takes the first word without a dot before it; the expression puts one there.
    normal = pattern.replace("#", "z.#", 1) if pattern.startswith("#") else pattern
    address = f"z.{address}" if normal != pattern else address
    assert matches(normal, address) is by_regular_expression(normal, address)


@given(words, words, plain)
def test_no_request_gets_more_than_its_permission(
    permission: str, asked: str, address: str
) -> None:
    if matches(permission, asked) and matches(asked, address):
        assert matches(permission, address)


def test_rights_and_virtual_hosts_are_kept_apart() -> None:
    may = Permissions(
        [
            Permission(address="queue/#", rights=["send"]),
            Permission(address="#", rights=["receive"], vhost="blue"),
        ]
    )
    assert may.allows("send", "queue/a")
    assert may.allows("send", "queue/a", "blue")
    assert not may.allows("receive", "queue/a")
    assert may.allows("receive", "queue/a", "blue")
    assert not may.allows("manage", "queue/a")


def test_a_stranger_has_no_permissions_and_anonymous_has_its_own() -> None:
    alice = User(name="alice", permissions=[Permission(address="a", rights=["send"])])
    configuration = Configuration(users=[alice])
    of_alice = permissions_of(configuration, "alice")
    anonymous = permissions_of(configuration, None)
    assert of_alice is not None
    assert of_alice.allows("send", "a")
    assert not of_alice.allows("send", "b")
    assert anonymous is not None
    assert anonymous.allows("manage", "b")
    assert permissions_of(configuration, "mallory") is None


@pytest.mark.parametrize(
    ("pattern", "word"), [("a.*.#", None), ("a.b*", "b*"), ("##", "##"), ("a/#b", "#b")]
)
def test_wildcards_are_whole_words(pattern: str, word: str | None) -> None:
    assert misplaced_wildcard(pattern) == word
