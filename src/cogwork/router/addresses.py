"""The address table: which rule holds for an address.

A leading `/` is optional, and there is one at most: what is normalised stays as it is when it is
normalised again, wherever that is done. A prefix ends at `/` or `.`: `queue` holds for `queue`,
`queue/orders` and `queue.orders`, not for `queues`. Of several rules the most specific one holds:

1. the one with more literal words, so the longest prefix;
2. then the one with more `*`;
3. then the one without `#`, where a prefix counts as if it ended in `#`;
4. then the one whose literal words come first, then whose `*` come first;
5. then a pattern before a prefix.

So an exact name (a pattern without wildcards) is before everything that begins with it. A name that
no rule knows is `balanced`, without a node. Each virtual host has a table of its own.

The subject of an address is what follows the prefix and its separator, as written: that of
`topic/flights.JFK` is `flights.JFK`. A rule by pattern has no prefix to cut, so the subject is the
whole address.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from cogwork.router.patterns import ANY_WORD, ANY_WORDS, address_words, takes
from cogwork.router.rules import (
    Accept,
    AddressRule,
    AddressRuleError,
    Distribution,
    SlowSubscriber,
    Unmatched,
    parse_rule,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = (
    "DEFAULT_RULES",
    "EXCHANGE_RULE",
    "MAX_ADDRESS_LENGTH",
    "Accept",
    "AddressRule",
    "AddressRuleError",
    "AddressTable",
    "Distribution",
    "InvalidAddressError",
    "SlowSubscriber",
    "Unmatched",
    "is_default",
    "normalize",
    "parse_rule",
)

MAX_ADDRESS_LENGTH = 2048
"""Characters. Far above what people name things; it bounds what one attach can cost."""

_WILDCARDS = frozenset({ANY_WORD, ANY_WORDS})
_KNOWN_MAX = 1024
"""Addresses whose rule a table remembers, the latest ones."""

_SEPARATORS = ("/", ".")


def _rule(
    prefix: str, distribution: Distribution, kind: str = "direct", **options: str
) -> AddressRule:
    return AddressRule(prefix=prefix, distribution=distribution, kind=kind, options=options)


EXCHANGE_RULE = _rule("exchange", Distribution.MULTICAST, "exchange")

DEFAULT_RULES = (
    _rule("", Distribution.BALANCED),
    _rule("topic", Distribution.MULTICAST, "topic"),
    _rule("queue", Distribution.BALANCED, "queue", in_doubt="redeliver"),
    _rule("work", Distribution.BALANCED, "queue", in_doubt="park"),
    _rule("unicast", Distribution.CLOSEST),
    _rule("exclusive", Distribution.CLOSEST),
    _rule("broadcast", Distribution.MULTICAST),
    _rule("anycast", Distribution.BALANCED),
    _rule("openstack.org/om/rpc/multicast", Distribution.MULTICAST),
    _rule("openstack.org/om/rpc/unicast", Distribution.CLOSEST),
    _rule("openstack.org/om/rpc/anycast", Distribution.BALANCED),
    _rule("openstack.org/om/notify/multicast", Distribution.MULTICAST),
    _rule("openstack.org/om/notify/unicast", Distribution.CLOSEST),
    _rule("openstack.org/om/notify/anycast", Distribution.BALANCED, "queue", in_doubt="redeliver"),
    _rule("sink", Distribution.CLOSEST, "sink"),
    _rule("$management", Distribution.CLOSEST, "management"),
    _rule("$cbs", Distribution.CLOSEST, "cbs"),
    _rule("stream", Distribution.CLOSEST, "stream"),
    EXCHANGE_RULE,
)
"""What holds where the configuration says nothing else."""


def is_default(rule: AddressRule) -> bool:
    """Return whether a rule holds for every address that no other one knows."""
    return rule.prefix == "" or rule.pattern == ANY_WORDS


class InvalidAddressError(ValueError):
    """An address that names nothing: empty, too long, or of several leading `/`."""


def normalize(address: str) -> str:
    """Return the address as tables and nodes know it: without the optional leading `/`.

    Raises:
        InvalidAddressError: The address is empty, longer than `MAX_ADDRESS_LENGTH`, or begins with
            more than one `/`.
    """
    if len(address) > MAX_ADDRESS_LENGTH:
        raise InvalidAddressError(
            f"an address of {len(address)} characters; at most {MAX_ADDRESS_LENGTH} are allowed"
        )
    name = address.removeprefix("/")
    if not name:
        raise InvalidAddressError(
            f'the address "{address}" is empty; expected a name, such as queue/orders'
        )
    if name.startswith("/"):
        raise InvalidAddressError(
            f"the address {address!r:.200} begins with several /; expected one at most"
        )
    return name


class AddressTable:
    """The rules of one virtual host. Does not change: a new configuration is a new table."""

    def __init__(self, rules: Iterable[AddressRule] = DEFAULT_RULES) -> None:
        """Take exactly these rules; name that none of them knows are `balanced`.

        Raises:
            AddressRuleError: Two rules hold for the same prefix or pattern.
        """
        self._prefixes: dict[str, AddressRule] = {}
        self._patterns: dict[tuple[str, ...], AddressRule] = {}
        for rule in rules:
            self._add(rule)
        self._prefixes.setdefault("", DEFAULT_RULES[0])
        ordered = sorted(self._patterns.items(), key=lambda item: _specificity(item[0]))
        self._patterns = dict(reversed(ordered))
        # One without wildcards is looked up: each queue of the configuration has one.
        self._wild = [words for words in self._patterns if not _WILDCARDS.isdisjoint(words)]
        self._plain = self._patterns.keys() - self._wild
        self._remembered = lru_cache(_KNOWN_MAX)(self.split)

    @classmethod
    def with_defaults(cls, rules: Iterable[AddressRule]) -> AddressTable:
        """Take these rules, and the defaults for what they leave open.

        Raises:
            AddressRuleError: Two of the given rules hold for the same prefix or pattern.
        """
        given = list(rules)
        prefixes = {rule.prefix for rule in given}
        return cls([*given, *(rule for rule in DEFAULT_RULES if rule.prefix not in prefixes)])

    @property
    def rules(self) -> tuple[AddressRule, ...]:
        """All rules, for status."""
        return (*self._prefixes.values(), *self._patterns.values())

    def resolve(self, address: str) -> AddressRule:
        """Return the rule that holds for an address.

        Raises:
            InvalidAddressError: The address names nothing.
        """
        return self._remembered(address)[0]

    def split(self, address: str) -> tuple[AddressRule, str]:
        """Return the rule that holds for an address, and the subject: what follows the prefix.

        Raises:
            InvalidAddressError: The address names nothing.
        """
        name = normalize(address)
        prefix = next(each for each in _prefixes(name) if each in self._prefixes)
        words = tuple(address_words(name))
        pattern = self._pattern_of(words)
        if pattern is not None and _specificity(pattern) >= _specificity(_as_pattern(prefix)):
            return self._patterns[pattern], name
        return self._prefixes[prefix], name[len(prefix) + 1 :] if prefix else name

    def _pattern_of(self, words: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return the pattern that says most of those that take an address."""
        if words in self._plain:
            return words
        return next((each for each in self._wild if takes(each, words)), None)

    def _add(self, rule: AddressRule) -> None:
        if rule.pattern is None:
            taken = rule.prefix in self._prefixes
            self._prefixes[rule.prefix or ""] = rule
        else:
            words = tuple(address_words(rule.pattern))
            taken = words in self._patterns
            self._patterns[words] = rule
        if taken:
            key = "prefix" if rule.pattern is None else "pattern"
            raise AddressRuleError(rule.name, key, "used by two rules", "each only once")


def _prefixes(name: str) -> Iterator[str]:
    """Yield what the table may hold for a name, the longest first; at last the empty prefix."""
    yield name
    for at in range(len(name) - 1, 0, -1):
        if name[at] in _SEPARATORS:
            yield name[:at]
    yield ""


def _as_pattern(prefix: str) -> tuple[str, ...]:
    return (*address_words(prefix), ANY_WORDS)


def _specificity(words: tuple[str, ...]) -> tuple[int, int, bool, tuple[int, ...]]:
    """Order patterns by how much they say; the rule is in the module's docstring."""
    ranks = tuple(0 if word == ANY_WORDS else 1 if word == ANY_WORD else 2 for word in words)
    return (ranks.count(2), ranks.count(1), 0 not in ranks, ranks)
