"""The tree of a selector: what the parser makes and the evaluator turns into a function.

Chains (`a AND b AND c`, `1 + 2 - 3`) are one node with many parts, so the depth of a tree is the
nesting that a person wrote, which the parser bounds. Negated forms are `Not` around the plain one;
BETWEEN is two comparisons.
"""

from __future__ import annotations

from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Literal:
    """A value as written."""

    value: str | int | float | bool


@dataclass(frozen=True, slots=True)
class Identifier:
    """A value of the message."""

    name: str


@dataclass(frozen=True, slots=True)
class Not:
    """NOT."""

    condition: Tree


@dataclass(frozen=True, slots=True)
class All:
    """AND, of two or more."""

    conditions: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """OR, of two or more."""

    conditions: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two values and one of `=`, `<>`, `<`, `<=`, `>`, `>=`."""

    operator: str
    left: Tree
    right: Tree


@dataclass(frozen=True, slots=True)
class In:
    """A value among literals."""

    value: Tree
    choices: tuple[str | int | float, ...]


@dataclass(frozen=True, slots=True)
class Like:
    """A string held to a pattern of `%`, any characters, and `_`, one character."""

    value: Tree
    pattern: str
    escape: str | None


@dataclass(frozen=True, slots=True)
class IsNull:
    """Whether the message lacks a value."""

    value: Tree


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """A number, then operators and further numbers, worked out from the left."""

    first: Tree
    steps: tuple[tuple[str, Tree], ...]


@dataclass(frozen=True, slots=True)
class Negative:
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
