"""A selector, compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, structs

from cogwork.router.selectors.evaluator import STEPS_MAX, Evaluate, Lookup, Meter, evaluator
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

    __slots__ = ("_evaluate", "_meter", "_steps_left", "identifiers", "text")

    def __init__(
        self,
        text: str,
        evaluate: Evaluate,
        identifiers: frozenset[str],
        meter: Meter | None = None,
        steps: int = 0,
    ) -> None:
        """Make it of its parts.

        Args:
            text: As it was given.
            evaluate: Works out the condition.
            identifiers: The names that its lookup is asked for.
            meter: Counts the steps of an evaluation; None for one of its own.
            steps: What an evaluation takes of them whatever the message is.
        """
        self.text = text
        self.identifiers = identifiers
        self._evaluate = evaluate
        self._meter = meter or Meter(STEPS_MAX)
        self._steps_left = self._meter.steps_max - steps

    def matches(self, lookup: Lookup) -> bool:
        """Return whether the condition holds; where it is unknown it does not.

        Args:
            lookup: Gives the value of an identifier, None where the message has none; see
                `section_lookup`.

        Raises:
            SelectorCostError: It takes more than `STEPS_MAX` steps for this message.
        """
        self._meter.left = self._steps_left
        return self._evaluate(lookup) is True

    def __repr__(self) -> str:
        return f"Selector({self.text!r})"


def compile_selector(text: str, parts_max: int | None = None) -> Selector:
    """Make a selector of its text; an empty text takes every message (JMS 1.1 §3.8.1.1).

    Args:
        text: The selector.
        parts_max: How many words, literals and signs it may have, commas aside, which is what
            compiling takes; None for any.

    Raises:
        SelectorSyntaxError: The text is no selector; the error says where, and what could stand
            there. Also above `MAX_SELECTOR_LENGTH` characters or `MAX_NESTING` levels.
    """
    tree = parse(text, parts_max)
    if tree is None:
        return Selector(text, lambda _lookup: True, frozenset())
    meter = Meter(STEPS_MAX)
    # Each part, with what parts it from the next one, has two characters at least.
    steps = len(text) // 2
    return Selector(text, evaluator(tree, meter), frozenset(_identifiers(tree)), meter, steps)


def _identifiers(part: object) -> Iterator[str]:
    if isinstance(part, Identifier):
        yield part.name
    elif isinstance(part, tuple):
        for each in part:
            yield from _identifiers(each)
    elif isinstance(part, Struct):
        for each in structs.astuple(part):
            yield from _identifiers(each)
