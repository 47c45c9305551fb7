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
from cogwork.config.limits import Limits, UserLimits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.cluster.declarations import Declarations, Value
    from cogwork.config.settings import User

__all__ = (
    "VALUE_MAX",
    "declared_limits",
    "declared_user_limits",
    "problem_of_limit",
    "problem_of_value",
    "with_limits",
    "with_user_limits",
)

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
        name: Its key in `[limits]`, or `user/NAME/KEY` for one of a single user.
        value: What it is to be.
    """
    user, key = _parted(name)
    return _problem(key, value, Limits if user is None else UserLimits)


def _parted(name: str) -> tuple[str | None, str]:
    """Return the user whose limit a name is, if it is one's, and the key of the limit."""
    if not name.startswith("user/") or name.count("/") < 2:
        return None, name
    user, _, key = name.removeprefix("user/").rpartition("/")
    return user, key


def _problem(name: str, value: object, table: type[Limits | UserLimits]) -> str:
    known = table.__struct_fields__
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        return f"unknown limit {name!r:.80} (expected one of {', '.join(known)}{hint})"
    try:
        msgspec.convert({name: value}, table)
    except msgspec.ValidationError as error:
        return f"{name} cannot be {value!r:.80}: {error}"
    return ""


def declared_limits(declarations: Declarations) -> dict[str, Value]:
    """Return the limits that the cluster has declared, and that this version can take."""
    values = {each.name: each.options.get("value") for each in declarations.all(LIMIT)}
    return {name: value for name, value in values.items() if not _problem(name, value, Limits)}


def declared_user_limits(declarations: Declarations) -> dict[str, dict[str, Value]]:
    """Return those of single users: by the user's name, and then by key."""
    found: dict[str, dict[str, Value]] = {}
    for each in declarations.all(LIMIT):
        user, key = _parted(each.name)
        value = each.options.get("value")
        if user is not None and value is not None and not _problem(key, value, UserLimits):
            found.setdefault(user, {})[key] = value
    return found


def with_user_limits(user: User, declared: Mapping[str, Value] | None) -> User:
    """Return a user with the limits that the cluster has declared for it."""
    if not declared:
        return user
    own = {} if user.limits is None else structs.asdict(user.limits)
    return structs.replace(user, limits=msgspec.convert({**own, **declared}, UserLimits))


def with_limits(limits: Limits, declared: Mapping[str, Value]) -> Limits:
    """Return the limits that hold: the cluster's, and for all others the container's own."""
    if not declared:
        return limits
    return msgspec.convert({**structs.asdict(limits), **declared}, Limits)
