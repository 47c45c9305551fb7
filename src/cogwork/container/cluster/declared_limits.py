"""Limits that the cluster has declared, in the place of those of the container's own file.

The cluster's state takes any name and number, so that all versions decide alike; what a name means,
and which numbers it may have, each container looks up itself.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

import msgspec
from msgspec import structs

from cogwork.cluster.declarations import LIMIT
from cogwork.container.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.cluster.declarations import Declarations, Value

__all__ = ("VALUE_MAX", "declared_limits", "problem_of_limit", "problem_of_value", "with_limits")

VALUE_MAX = 2.0**63


def problem_of_value(value: object) -> str:
    """Say what is wrong with a number that no container could take; empty where nothing is."""
    is_flag = isinstance(value, bool)
    if isinstance(value, int | float) and not is_flag and 0 <= value < VALUE_MAX:
        return ""
    return f"value is {value!r:.80} (expected a number from 0, below 2^63)"


def problem_of_limit(name: str, value: object) -> str:
    """Say what is wrong with a limit, as this version knows them; empty where nothing is.

    Args:
        name: Its key in `[limits]`.
        value: What it is to be.
    """
    known = Limits.__struct_fields__
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        return f"unknown limit {name!r:.80} (expected one of {', '.join(known)}{hint})"
    try:
        msgspec.convert({name: value}, Limits)
    except msgspec.ValidationError as error:
        return f"{name} cannot be {value!r:.80}: {error}"
    return ""


def declared_limits(declarations: Declarations) -> dict[str, Value]:
    """Return the limits that the cluster has declared, and that this version can take."""
    values = {each.name: each.options.get("value") for each in declarations.all(LIMIT)}
    return {name: value for name, value in values.items() if not problem_of_limit(name, value)}


def with_limits(limits: Limits, declared: Mapping[str, Value]) -> Limits:
    """Return the limits that hold: the cluster's, and for all others the container's own."""
    if not declared:
        return limits
    return msgspec.convert({**structs.asdict(limits), **declared}, Limits)
