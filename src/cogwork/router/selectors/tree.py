"""The tree of a selector: what the parser makes and the evaluator turns into a function.

Chains (`a AND b AND c`, `1 + 2 - 3`) are one node with many parts, so the depth of a tree is the
nesting that a person wrote, which the parser bounds. Negated forms are `Not` around the plain one;
BETWEEN is two comparisons.
"""

from __future__ import annotations

from msgspec import Struct

__all__ = (
    "All",
    "AnyOf",
    "Arithmetic",
    "Comparison",
    "Identifier",
    "In",
    "IsNull",
    "Like",
    "Literal",
    "Negative",
    "Not",
    "Tree",
)


class Literal(Struct, frozen=True):
    """A value as written."""

    value: str | int | float | bool


class Identifier(Struct, frozen=True):
    """A value of the message."""

    name: str


class Not(Struct, frozen=True):
    """NOT."""

    condition: Tree


class All(Struct, frozen=True):
    """AND, of two or more."""

    conditions: tuple[Tree, ...]


class AnyOf(Struct, frozen=True):
    """OR, of two or more."""

    conditions: tuple[Tree, ...]


class Comparison(Struct, frozen=True):
    """Two values and one of `=`, `<>`, `<`, `<=`, `>`, `>=`."""

    operator: str
    left: Tree
    right: Tree


class In(Struct, frozen=True):
    """A value among literals."""

    value: Tree
    choices: tuple[str | int | float, ...]


class Like(Struct, frozen=True):
    """A string held to a pattern of `%`, any characters, and `_`, one character."""

    value: Tree
    pattern: str
    escape: str | None


class IsNull(Struct, frozen=True):
    """Whether the message lacks a value."""

    value: Tree


class Arithmetic(Struct, frozen=True):
    """A number, then operators and further numbers, worked out from the left."""

    first: Tree
    steps: tuple[tuple[str, Tree], ...]


class Negative(Struct, frozen=True):
    """A number with its sign changed."""

    value: Tree


Tree = (
    Literal
    | Identifier
    | Not
    | All
    | AnyOf
    | Comparison
    | In
    | Like
    | IsNull
    | Arithmetic
    | Negative
)
