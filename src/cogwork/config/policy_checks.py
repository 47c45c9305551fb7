"""Checks of `[[policy]]`, and of policies that a cluster declares: RabbitMQ's keys and values."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from cogwork.config.problems import Problem, each, twice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cogwork.config.settings import Configuration, Policy, Vhost

__all__ = ("EXCHANGE_KEYS", "IGNORED_KEYS", "POLICY_KEYS", "check_policies", "find_policy_problems")

INT_MAX: Final = 2**63 - 1
TTL_MAX_MS: Final = 2**32 - 1
"""RabbitMQ's longest time to live, some 49 days."""

OVERFLOWS: Final = ("drop-head", "reject-publish", "reject-publish-dlx")

PATTERN_CHARACTERS_MAX: Final = 1_024


class PolicyKey(NamedTuple):
    """What a key of a policy may be.

    Attributes:
        fits: Tells whether a value is one.
        expected: What would be right.
    """

    fits: Callable[[object], bool]
    expected: str


def _whole(least: int, most: int = INT_MAX) -> PolicyKey:
    def fits(value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most

    return PolicyKey(fits, f"an integer from {least}" + ("" if most == INT_MAX else f" to {most}"))


def _text(value: object) -> bool:
    return isinstance(value, str)


QUEUE_KEYS: Final[dict[str, PolicyKey]] = {
    "message-ttl": _whole(0, TTL_MAX_MS),
    "expires": _whole(1, TTL_MAX_MS),
    "max-length": _whole(0),
    "max-length-bytes": _whole(0),
    "overflow": PolicyKey(OVERFLOWS.__contains__, f"one of {', '.join(OVERFLOWS)}"),
    "dead-letter-exchange": PolicyKey(_text, "the name of an exchange"),
    "dead-letter-routing-key": PolicyKey(_text, "a routing key"),
    "delivery-limit": _whole(0),
}

EXCHANGE_KEYS: Final[dict[str, PolicyKey]] = {
    "alternate-exchange": PolicyKey(_text, "the name of an exchange"),
}

IGNORED_KEYS: Final = frozenset(
    {"queue-mode", "queue-version", "queue-master-locator", "queue-leader-locator"}
    | {"consumer-timeout"}
)
"""About how RabbitMQ keeps messages: taken, without effect."""

POLICY_KEYS: Final = {**QUEUE_KEYS, **EXCHANGE_KEYS}


def check_policies(vhost: Configuration | Vhost) -> Iterator[Problem]:
    """Find what is wrong with the policies of a virtual host."""
    yield from each("policy", vhost.policies, find_policy_problems)
    yield from twice("policy", "name", [policy.name for policy in vhost.policies])


def find_policy_problems(policy: Policy) -> Iterator[Problem]:
    """Find what is wrong with a policy."""
    if not policy.name.isprintable():
        yield Problem(("name",), f"{policy.name!r:.80}", "printable characters")
    yield from _pattern(policy.pattern)
    definition = policy.definition
    if not definition:
        yield Problem(("definition",), "empty", f"at least one of {', '.join(POLICY_KEYS)}")
    for key, value in definition.items():
        yield from _entry(key, value)


def _pattern(pattern: str) -> Iterator[Problem]:
    if len(pattern) > PATTERN_CHARACTERS_MAX:
        expected = f"at most {PATTERN_CHARACTERS_MAX}"
        yield Problem(("pattern",), f"{len(pattern)} characters", expected)
        return
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        yield Problem(("pattern",), f'"{pattern:.80}": {error}', "a regular expression")


def _entry(key: str, value: object) -> Iterator[Problem]:
    if key in IGNORED_KEYS:
        return
    known = POLICY_KEYS.get(key)
    if known is None:
        close = difflib.get_close_matches(key, POLICY_KEYS, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        expected = f"one of {', '.join(POLICY_KEYS)}{hint}"
        yield Problem(("definition", key), f"the unknown key {key!r:.80}", expected)
    elif not known.fits(value):
        yield Problem(("definition", key), f"{value!r:.80}", known.expected)
