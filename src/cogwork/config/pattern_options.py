"""`--queue-patterns` and `--topic-patterns`: addresses that are queues or topics.

A broker is configured so. A name without wildcards is a prefix, as in `--queue-patterns unicast`,
behind which each address is a queue of its own; one with `*` or `#` as whole words is a pattern.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.config.errors import OptionError
from cogwork.config.settings import Address
from cogwork.router.patterns import misplaced_wildcard

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ("with_patterns",)

OPTIONS = {"queue": "--queue-patterns", "topic": "--topic-patterns"}
SEPARATORS = "/."


def with_patterns(
    addresses: Iterable[Address], queue_patterns: Sequence[str], topic_patterns: Sequence[str]
) -> list[Address]:
    """Add rules for these names; they replace those that a file has for the very same.

    Args:
        addresses: What the file says.
        queue_patterns: Each `--queue-patterns`.
        topic_patterns: Each `--topic-patterns`.

    Raises:
        OptionError: A name is no pattern, or is given twice; names the option.
    """
    rules: dict[str, Address] = {}
    for kind, names in (("queue", queue_patterns), ("topic", topic_patterns)):
        for name in names:
            rule = _rule(kind, name)
            place = _place(rule)
            if place in rules:
                raise _error(kind, f'"{name}" twice', "each name once, for queues or for topics")
            rules[place] = rule
    return [*(each for each in addresses if _place(each) not in rules), *rules.values()]


def _rule(kind: str, name: str) -> Address:
    word = misplaced_wildcard(name)
    if word is not None:
        raise _error(kind, f'the word "{word}"', "* and # as whole words only")
    if not name.strip(SEPARATORS):
        raise _error(kind, f'"{name}"', "the words that addresses begin with, or a pattern")
    if "*" in name or "#" in name:
        return Address(pattern=name, kind=kind)
    return Address(prefix=name, kind=kind)


def _place(address: Address) -> str:
    """Write what a rule is for in one way."""
    if address.prefix is not None:
        return address.prefix.removeprefix("/").rstrip(SEPARATORS)
    return (address.pattern or "").removeprefix("/")


def _error(kind: str, found: str, expected: str) -> OptionError:
    return OptionError(OPTIONS[kind], found, expected)
