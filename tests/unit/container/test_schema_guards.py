"""Which addresses are held to schemas."""

import pytest

from cogwork.config.reading import ConfigurationError, parse
from cogwork.container.schemas import guards
from cogwork.container.schemas.guards import ENFORCE, ENFORCE_REGISTERED, IGNORE, Guards

RULES = """
[[schema]]
address = "topic/orders.#"

[[schema]]
address = "topic/orders.debug"
policy = "ignore"

[[schema]]
address = "/queue/#"
policy = "enforce-registered"
"""


def guards_of(text: str) -> Guards:
    return Guards(parse(text).schemas)


@pytest.mark.parametrize(
    ("address", "policy"),
    [
        (b"topic/orders.new", ENFORCE),
        (b"/topic/orders.new", ENFORCE),
        (b"topic/orders", ENFORCE),
        (b"topic/orders.debug", IGNORE),
        (b"topic/prices", IGNORE),
        (b"queue/a", ENFORCE_REGISTERED),
        (b"elsewhere", IGNORE),
        (b"", IGNORE),
        (b"/", IGNORE),
        (b"\xff\xfe", IGNORE),
        (b"x" * 5000, IGNORE),
    ],
)
def test_the_most_specific_rule_holds(address: bytes, policy: int) -> None:
    found = guards_of(RULES)
    assert found.is_any
    assert found[address] == policy
    assert found[address] == policy


@pytest.mark.parametrize(
    "address", [b"$management", b"_reply/north.1/2", b"stream/$schemas", b"/stream/$schemas"]
)
def test_the_containers_own_addresses_are_free(address: bytes) -> None:
    assert guards_of('[[schema]]\naddress = "#"')[address] == IGNORE


def test_without_rules_nothing_is_held() -> None:
    assert not guards_of("").is_any
    assert not guards_of('[[schema]]\naddress = "#"\npolicy = "ignore"').is_any
    assert guards_of("")[b"topic/a"] == IGNORE


def test_other_rules_hold_at_once() -> None:
    found = guards_of(RULES)
    assert found[b"topic/orders.new"] == ENFORCE
    found.replace(())
    assert not found.is_any
    assert found[b"topic/orders.new"] == IGNORE


def test_decisions_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards, "KNOWN_MAX", 10)
    found = guards_of(RULES)
    for number in range(100):
        assert found[b"queue/%d" % number] == ENFORCE_REGISTERED
    assert len(found) <= 10


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('[[schema]]\naddress = "a*.b"', r'schema\[0\].address: found the word "a\*"'),
        ('[[schema]]\naddress = "a"\n[[schema]]\naddress = "/a"', r"schema\[1\].address"),
        ('[[schema]]\npolicy = "enforce"', "address"),
        ('[[schema]]\naddress = "a"\npolicy = "refuse"', "policy"),
        ('[[vhost]]\nname = "blue"\n[[vhost.schema]]\naddress = "#a"', r"vhost\[0\].schema\[0\]"),
    ],
)
def test_what_cannot_be_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        parse(text)
