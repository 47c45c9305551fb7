"""Groups, what is denied, and the user's name in patterns."""

from __future__ import annotations

import pytest

from cogwork.config.errors import ConfigurationError
from cogwork.config.reading import parse
from cogwork.config.settings import RIGHTS, Permission
from cogwork.container.security.permissions import Permissions, permissions_of
from cogwork.router.patterns import address_words, overlap


def granted(address: str, user: str | None = None, deny: str = "") -> Permissions:
    denied = [Permission(address=deny, rights=["receive", "manage"])] if deny else []
    return Permissions([Permission(address=address, rights=list(RIGHTS))], denied=denied, user=user)


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        ("a.b", "a.b", True),
        ("a.b", "a.c", False),
        ("a.*", "*.b", True),
        ("a.#", "#.b", True),
        ("a.#.c", "a.b", False),
        ("#", "", True),
        ("*.#", "a", True),
        ("a.*.#", "a", False),
        ("#.x.#", "a.*.c", True),
        ("a.#.b.#", "#.c.b", True),
        ("a.b.#", "*.c.#", False),
    ],
)
def test_two_patterns_overlap_where_a_name_is_taken_by_both(
    one: str, other: str, meet: bool
) -> None:
    assert overlap(one.split("."), other.split(".")) is meet
    assert overlap(other.split("."), one.split(".")) is meet
    assert overlap(address_words("a.b"), address_words("a/b"))


def test_what_is_denied_wins() -> None:
    of_ann = granted("queue/#", deny="queue/secret.#")
    assert of_ann.allows("receive", "queue/open")
    assert not of_ann.allows("receive", "queue/secret.x")
    assert not of_ann.allows("receive", "/queue/secret")
    assert of_ann.allows("send", "queue/secret"), "only what is named is denied"
    assert not of_ann.are_all()


@pytest.mark.parametrize(
    "asked", ["topic/#", "topic/*", "topic/secret", "topic/secret.#", "topic/*.x", "topic/#.y"]
)
def test_a_pattern_that_takes_something_that_is_denied_is_denied(asked: str) -> None:
    """Whoever subscribes to `topic/#` would receive it."""
    of_ann = granted("topic/#", deny="topic/secret.#")
    assert not of_ann.allows("receive", asked)
    assert of_ann.allows("receive", "topic/open.#")


def test_a_wildcard_of_a_topic_takes_words_with_slashes_and_is_denied_for_them() -> None:
    of_ann = granted("topic/#", deny="topic/a.b.c")
    assert not of_ann.allows("receive", "topic/a.*"), "topic/a.b/c is one of them"


def test_the_broker_s_own_can_be_denied_to_its_operator() -> None:
    operator = granted("$management", deny="stream/$audit")
    assert operator.allows("receive", "stream/$telemetry")
    assert not operator.allows("receive", "stream/$audit")
    nobody = granted("$management", deny="#")
    assert not nobody.allows("manage", "$management")


def test_a_user_s_name_stands_in_patterns() -> None:
    of_ann = granted("queue/$user.#", "ann")
    assert of_ann.allows("receive", "queue/ann")
    assert of_ann.allows("send", "queue/ann.orders")
    assert not of_ann.allows("receive", "queue/bob")
    assert not of_ann.allows("receive", "queue/$user")
    assert granted("queue/$user", "ann@example.org").allows("send", "queue/ann@example.org")


@pytest.mark.parametrize("name", ["#", "*", "a.#", "a/*", "a..b", "$management", "x.$audit"])
def test_no_name_makes_more_of_a_pattern(name: str) -> None:
    """Otherwise a user who may choose a name would choose what it may do."""
    for address in ("queue/$user", "$user", "$user/#", "stream/$user"):
        assert granted(address, name).are_none
    denied = granted("queue/#", name, deny="queue/$user")
    assert not denied.allows("receive", "queue/x"), "what is denied is denied to be safe"


def test_a_name_is_no_address_of_the_broker_s_own() -> None:
    assert granted("$user/#", "_arrow").are_none
    assert granted("queue/$user", "_ann").allows("send", "queue/_ann")


ROLES = """
[[group]]
name = "readers"
permissions = [{ address = "topic/#", rights = ["receive"] }]
deny = [{ address = "topic/secret.#", rights = ["receive"] }]
[[group]]
name = "writers"
permissions = [{ address = "queue/$user", rights = ["send"] }]
[[user]]
name = "ann"
groups = ["readers", "writers"]
permissions = [{ address = "topic/secret.#", rights = ["receive"] }]
[[user]]
name = "bob"
groups = ["writers"]
"""


def test_a_user_may_do_what_its_groups_may() -> None:
    configuration = parse(ROLES)
    ann, bob = (permissions_of(configuration, name) for name in ("ann", "bob"))
    assert ann is not None
    assert bob is not None
    assert ann.allows("receive", "topic/a")
    assert ann.allows("send", "queue/ann")
    assert not ann.allows("receive", "topic/secret.x"), "a group denies it, whoever grants it"
    assert bob.allows("send", "queue/bob")
    assert not bob.allows("send", "queue/ann")
    assert not bob.allows("receive", "topic/a")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            '[[user]]\nname = "a"\ngroups = ["x"]',
            'user\\[0\\].groups\\[0\\]: found "x", expected a \\[\\[group\\]\\]',
        ),
        ('[[group]]\nname = "x"\n[[group]]\nname = "x"', "each name once"),
        (
            '[[group]]\nname = "x"\ndeny = [{ address = "a*", rights = ["send"] }]',
            'group\\[0\\].deny\\[0\\].address: found the word "a\\*"',
        ),
        (
            '[anonymous]\npermissions = [{ address = "a/$user", rights = ["send"] }]',
            "where nobody has a name",
        ),
        ('[[user]]\nname = "a"\ncontainers = ["b"]', "mesh = true with it"),
    ],
)
def test_a_mistake_is_told(text: str, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        parse(text)
