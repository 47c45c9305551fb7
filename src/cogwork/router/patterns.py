"""Patterns: words with the wildcards `*`, exactly one word, and `#`, any number of words.

The same wildcards (AMQP 0-10) serve in two places that differ in what separates words. The words of
a *topic* are separated by `.` alone. In the patterns of *address rules* and *grants* both `/` and
`.` separate, as both end a prefix: `queue/#` takes `queue`, `queue/orders` and `queue.orders.eu`.

These functions decide one pattern at a time; `topics.TopicTrie` finds the matches among many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = (
    "ANY_WORD",
    "ANY_WORDS",
    "address_words",
    "covers",
    "is_pattern",
    "matches",
    "misplaced_wildcard",
    "overlap",
    "takes",
    "topic_words",
)

ANY_WORD = "*"
ANY_WORDS = "#"


def topic_words(text: str) -> list[str]:
    """Split a subject or a topic pattern at its dots; the empty one has no words."""
    return text.split(".") if text else []


def address_words(text: str) -> list[str]:
    """Split an address, or a pattern of addresses, at its dots and slashes."""
    return topic_words(text.replace("/", "."))


def is_pattern(address: str) -> bool:
    """Return whether one of the words of an address or a topic is a wildcard."""
    words = address_words(address)
    return ANY_WORD in words or ANY_WORDS in words


def misplaced_wildcard(pattern: str) -> str | None:
    """Find the first word that mixes a wildcard with other characters; None is a good pattern."""
    for word in address_words(pattern):
        if len(word) > 1 and (ANY_WORD in word or ANY_WORDS in word):
            return word
    return None


def matches(pattern: str, subject: str) -> bool:
    """Return whether the topic pattern takes the subject; in a subject all words are plain."""
    return takes(topic_words(pattern), topic_words(subject))


def takes(pattern: Sequence[str], words: Sequence[str]) -> bool:
    """Return whether a pattern takes a name, both as words."""
    return _run(pattern, words, words_are_pattern=False)


def covers(wide: Sequence[str], narrow: Sequence[str]) -> bool:
    """Return whether a pattern takes everything that another pattern takes.

    Never says yes wrongly. It may say no wrongly where a `#` of `narrow` stands before further
    words and only their number makes up for it, as in `*.#` and `#.a`.

    Args:
        wide: Words of the pattern that should take more.
        narrow: Words of the pattern, or of the plain name, that should be taken.
    """
    return _run(_in_order(wide), _in_order(narrow), words_are_pattern=True)


def overlap(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether there is a name that both patterns take."""
    reached = _skip(other, {0})
    for word in one:
        if word == ANY_WORDS:  # takes whatever `other` has from here on, and nothing, too
            reached = set(range(min(reached), len(other) + 1)) if reached else reached
            continue
        stays = {at for at in reached if at < len(other) and other[at] == ANY_WORDS}
        moves = {
            at + 1
            for at in reached - stays
            if at < len(other) and (word == ANY_WORD or other[at] in (ANY_WORD, word))
        }
        reached = _skip(other, stays | moves)
    return len(other) in reached


def _in_order(words: Sequence[str]) -> list[str]:
    """Write wildcards that touch in one way: `*` first, then one `#`; the meaning is the same."""
    ordered: list[str] = []
    pending = False
    for word in words:
        if pending and word not in (ANY_WORD, ANY_WORDS):
            ordered.append(ANY_WORDS)
            pending = False
        if word == ANY_WORDS:
            pending = True
        else:
            ordered.append(word)
    return [*ordered, ANY_WORDS] if pending else ordered


def _run(pattern: Sequence[str], words: Sequence[str], *, words_are_pattern: bool) -> bool:
    """Run the pattern over the words, from all positions it can have reached at once."""
    reached = _skip(pattern, {0})
    for word in words:
        wild = words_are_pattern and word == ANY_WORDS
        stays = {at for at in reached if at < len(pattern) and pattern[at] == ANY_WORDS}
        moves = {
            at + 1
            for at in reached - stays
            if at < len(pattern) and not wild and pattern[at] in (ANY_WORD, word)
        }
        reached = _skip(pattern, stays | moves)
    return len(pattern) in reached


def _skip(pattern: Sequence[str], reached: set[int]) -> set[int]:
    """Add the positions reached by letting a `#` take nothing."""
    skipped = set(reached)
    for at in sorted(reached):
        following = at
        while following < len(pattern) and pattern[following] == ANY_WORDS:
            following += 1
            skipped.add(following)
    return skipped
