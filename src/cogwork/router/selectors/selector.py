"""A selector, compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, structs

from cogwork.router.selectors.evaluator import Evaluate, Lookup, evaluator
from cogwork.router.selectors.parser import parse
from cogwork.router.selectors.tree import Identifier

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("Lookup", "Selector", "compile_selector")


class Selector:
    """A condition on messages; made by `compile_selector`.

    Attributes:
        text: As it was given.
        identifiers: The names that its lookup is asked for.
    """

    __slots__ = ("_evaluate", "identifiers", "text")

    def __init__(self, text: str, evaluate: Evaluate, identifiers: frozenset[str]) -> None:
        self.text = text
        self.identifiers = identifiers
        self._evaluate = evaluate

    def matches(self, lookup: Lookup) -> bool:
        """Tells whether the condition holds; where it is unknown it does not.

        Args:
            lookup: Gives the value of an identifier, None where the message has none; see
                `section_lookup`.
        """
        return self._evaluate(lookup) is True

    def __repr__(self) -> str:
        return f"Selector({self.text!r})"


def compile_selector(text: str) -> Selector:
    """Makes a selector of its text; an empty text takes every message (JMS 1.1 §3.8.1.1).

    Raises:
        SelectorSyntaxError: The text is no selector; the error says where, and what could stand
            there. Also above `MAX_SELECTOR_LENGTH` characters or `MAX_NESTING` levels.
    """
    tree = parse(text)
    if tree is None:
        return Selector(text, lambda _lookup: True, frozenset())
    return Selector(text, evaluator(tree), frozenset(_identifiers(tree)))


def _identifiers(part: object) -> Iterator[str]:
    if isinstance(part, Identifier):
        yield part.name
    elif isinstance(part, tuple):
        for each in part:
            yield from _identifiers(each)
    elif isinstance(part, Struct):
        for each in structs.astuple(part):
            yield from _identifiers(each)
