"""Address rules: what holds for the addresses under a prefix, or for those that match a pattern.

A rule says how deliveries are shared out (`Distribution`), which kind of node stands behind the
address, and the policies of data plane and node. Rules come from `DEFAULT_RULES` in `addresses`,
from configuration (`parse_rule`), also in the router idiom: `fanout` and `bias` in place of
`distribution`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import StrEnum
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from cogwork.router.patterns import is_pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = (
    "Accept",
    "AddressRule",
    "AddressRuleError",
    "Distribution",
    "SlowSubscriber",
    "Unmatched",
    "parse_rule",
)

BLOCK_BYTES = 16 * 1024 * 1024
"""What one slow subscriber may leave unsent: a few seconds of a busy topic of small messages."""


UNAVAILABLE = "unavailable"
"""The kind of addresses that nobody may use: what attaches or sends there is refused."""


class Distribution(StrEnum):
    """How an address shares deliveries out among its receivers."""

    MULTICAST = "multicast"
    """To each."""
    CLOSEST = "closest"
    """To one of the nearest, in turn; the others get nothing while one of these is there."""
    BALANCED = "balanced"
    """To the one that has least to do, wherever it is."""


class SlowSubscriber(StrEnum):
    """What a multicast address does when a subscriber does not keep up."""

    BLOCK = "block"
    """Withholds the publishers' window, at most `block_timeout_s`, then detaches the subscriber."""
    DROP_OLDEST = "drop-oldest"
    DETACH = "detach"


class Unmatched(StrEnum):
    """What becomes of a multicast message that nobody takes."""

    ACCEPT = "accept"
    RELEASE = "release"


class Accept(StrEnum):
    """When a multicast address accepts a message."""

    SENT = "sent"
    """Once each container has put it on its subscribers' links, or queued it for them."""
    SETTLED = "settled"
    """Once every subscriber has settled it; the outcome is the worst of theirs."""


class AddressRuleError(ValueError):
    """A rule that cannot be used.

    Attributes:
        rule: Which rule, as the configuration shows it.
        key: Which of its keys.
        problem: What is wrong.
        expected: What would be right.
    """

    def __init__(self, rule: str, key: str, problem: str, expected: str) -> None:
        super().__init__(f"address rule {rule}: {key}: {problem}; expected {expected}")
        self.rule = rule
        self.key = key
        self.problem = problem
        self.expected = expected


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressRule:
    """What holds for some addresses; either `prefix` or `pattern` says for which.

    Attributes:
        prefix: The addresses that are or begin with these words; `""` means all. A leading and a
            trailing separator may be written and are dropped.
        pattern: The addresses that match; words end at `/` and `.`, `*` is one word, `#` any
            number of words.
        distribution: How deliveries are shared out.
        kind: The kind of node: `direct` for the data plane alone, else a plug-in's name.
        slow_subscriber: Multicast: what a subscriber without credit gets.
        block_timeout_s: `BLOCK`: how long publishers wait for one subscriber, in seconds.
        block_bytes: What may wait for one subscriber, in bytes, before the policy steps in.
        accept: Multicast: when a publisher's message is accepted.
        unmatched: Multicast: what becomes of a message that nobody takes.
        ttl_s: The longest a message may live, in seconds; None for as long as it says itself.
        dead_letter: The address for expired, rejected and unroutable messages; None for nowhere.
        options: What the node of this kind wants to know; the node checks it.

    Raises:
        AddressRuleError: A value is of the wrong type or out of range.
    """

    prefix: str | None = None
    pattern: str | None = None
    distribution: Distribution = Distribution.CLOSEST
    kind: str = "direct"
    slow_subscriber: SlowSubscriber = SlowSubscriber.BLOCK
    block_timeout_s: float = 5.0
    block_bytes: int = BLOCK_BYTES
    accept: Accept = Accept.SENT
    unmatched: Unmatched = Unmatched.ACCEPT
    ttl_s: float | None = None
    dead_letter: str | None = None
    options: Mapping[str, object] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        self._check_place()
        _check(self.name, "kind", self.kind, _is_name, "the name of a node kind")
        _check(self.name, "block_timeout_s", self.block_timeout_s, _is_positive, "seconds above 0")
        _check(self.name, "block_bytes", self.block_bytes, _is_count, "a whole number above 0")
        if self.ttl_s is not None:
            _check(self.name, "ttl_s", self.ttl_s, _is_positive, "seconds above 0")
        if self.dead_letter is not None:
            _check(self.name, "dead_letter", self.dead_letter, _is_plain, "a plain address")
        object.__setattr__(self, "options", MappingProxyType(dict(self.options)))

    @property
    def name(self) -> str:
        """How messages to people name this rule."""
        return _label(self.prefix, self.pattern)

    def serves_like(self, other: AddressRule) -> bool:
        """Return whether a node made by this rule is what one made by another would be."""
        return all(getattr(self, key) == getattr(other, key) for key in _OF_NODES)

    def _check_place(self) -> None:
        if self.prefix is not None and self.pattern is not None:
            _fail(self.name, "pattern", "stands beside prefix", "one of the two")
        if self.prefix is not None:
            if not isinstance(self.prefix, str) or is_pattern(self.prefix):
                _fail(self.name, "prefix", _shown(self.prefix), "words without * or #; see pattern")
            if self.prefix.startswith("//"):
                _fail(self.name, "prefix", _shown(self.prefix), "one leading / at most")
            object.__setattr__(self, "prefix", self.prefix.removeprefix("/").rstrip("/."))
        elif self.pattern is None:
            _fail(self.name, "prefix", "missing", "a prefix or a pattern")
        else:
            _check(self.name, "pattern", self.pattern, _is_address, "words, * and # among them")
            object.__setattr__(self, "pattern", self.pattern.removeprefix("/"))


_OF_NODES = ("kind", "distribution", "accept", "unmatched", "ttl_s", "dead_letter", "options")
"""What a node is made by; the rest is looked up for each link."""

_ENUMS = {
    "distribution": Distribution,
    "slow_subscriber": SlowSubscriber,
    "accept": Accept,
    "unmatched": Unmatched,
}
_KIND_DISTRIBUTIONS = {
    "direct": Distribution.BALANCED,
    "queue": Distribution.BALANCED,
    "topic": Distribution.MULTICAST,
}
_IDIOM = {
    ("single", None): Distribution.CLOSEST,
    ("single", "closest"): Distribution.CLOSEST,
    ("single", "spread"): Distribution.BALANCED,
    ("multiple", None): Distribution.MULTICAST,
}
_KEYS = (*(each.name for each in fields(AddressRule)), "fanout", "bias")


def parse_rule(table: Mapping[str, object]) -> AddressRule:
    """Make a rule of one configuration table.

    Args:
        table: The keys of `AddressRule`, enumerations by their value. In place of `distribution`,
            the router idiom: `fanout` (single, multiple) and `bias` (closest, spread). Without
            either, topics are multicast, queues and plain addresses balanced, all others closest.

    Raises:
        AddressRuleError: The table is no rule.
    """
    rule = _label(table.get("prefix"), table.get("pattern"))
    for key in table:
        if key not in _KEYS:
            _fail(rule, key, "unknown", f"one of {', '.join(_KEYS)}")
    values: dict[str, Any] = {
        key: value for key, value in table.items() if key not in ("fanout", "bias")
    }
    for key, choices in _ENUMS.items():
        if key in values:
            values[key] = _choice(rule, key, values[key], choices)
    values.setdefault("distribution", _idiom(rule, table))
    if not hasattr(values.get("options", {}), "items"):
        _fail(rule, "options", _shown(values["options"]), "a table")
    return AddressRule(**values)  # __post_init__ checks the types


def _idiom(rule: str, table: Mapping[str, object]) -> Distribution:
    """Read `fanout` and `bias`; without them, the kind of node says the distribution."""
    if "distribution" in table and ("fanout" in table or "bias" in table):
        _fail(rule, "distribution", "stands beside fanout or bias", "one or the other")
    if "fanout" not in table and "bias" not in table:
        kind = str(table.get("kind", "direct"))
        return _KIND_DISTRIBUTIONS.get(kind, Distribution.CLOSEST)
    fanout, bias = table.get("fanout", "single"), table.get("bias")
    if fanout not in ("single", "multiple"):
        _fail(rule, "fanout", _shown(fanout), "single or multiple")
    if bias not in (None, "closest", "spread"):
        _fail(rule, "bias", _shown(bias), "closest or spread")
    if (fanout, bias) not in _IDIOM:
        _fail(rule, "bias", "says nothing for fanout multiple", "no bias, or fanout single")
    return _IDIOM[(str(fanout), None if bias is None else str(bias))]


def _choice(rule: str, key: str, value: object, choices: type[StrEnum]) -> StrEnum:
    try:
        return choices(str(value))
    except ValueError:
        return _fail(
            rule, key, _shown(value), "one of " + ", ".join(each.value for each in choices)
        )


def _check(rule: str, key: str, value: object, test: Callable[[object], bool], right: str) -> None:
    if not test(value):
        _fail(rule, key, _shown(value), right)


def _fail(rule: str, key: str, problem: str, expected: str) -> NoReturn:
    raise AddressRuleError(rule, key, problem, expected)


def _label(prefix: object, pattern: object) -> str:
    if pattern is not None:
        return f'pattern "{pattern}"'
    return "without prefix" if prefix is None else f'prefix "{prefix}"'


def _shown(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else f"{value!r}"


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < inf


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_name(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _is_address(value: object) -> bool:
    return isinstance(value, str) and value.removeprefix("/") != "" and not value.startswith("//")


def _is_plain(value: object) -> bool:
    return isinstance(value, str) and _is_address(value) and not is_pattern(value)
