"""Which primaries are not to become the root, as the cluster has declared it.

Theory of operation. The setting is one entry of the declarations, with the ids of those that are
disabled: two operators who disable the last two primaries at once cannot both succeed. Raft is told
of them, and has one of them lead only as long as another voter needs to get what it alone has; or
for as long as nobody else can. Such a leader is no root. What is declared meanwhile waits, at the
container that declares it, as it does without a majority; but for what gives the cluster a root
again.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cogwork.cluster.declarations import (
    ROOT,
    ROOT_NAME,
    Apply,
    Delete,
    Primaries,
    PrimariesMoved,
    Set,
)
from cogwork.plugin.engine.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping

    from cogwork.cluster.declarations import Command, Declarations, Value

__all__ = (
    "brings_root",
    "demand_enabled",
    "demand_root",
    "disabled_roots",
    "problem_of_roots",
    "with_root",
)

ROOT_TIMEOUT_S = 3.0
"""So long a root is waited for: several elections, and less than whoever declares waits."""

PAUSE_S = 0.05

DISABLED_MAX = 100
"""More than a cluster can have primaries: secondaries may be disabled before they are promoted."""

ID_BYTES_MAX = 64


def disabled_roots(declarations: Declarations) -> frozenset[str]:
    """Return who is not to become the root."""
    found = declarations.find(ROOT, "", ROOT_NAME)
    disabled = [] if found is None else found.options.get("disabled")
    return frozenset(disabled if isinstance(disabled, list) else ())


def problem_of_roots(name: str, options: Mapping[str, Value]) -> str:
    """Say what is wrong with the setting; empty where nothing is.

    Args:
        name: What it is called: there is but one.
        options: `disabled`, the ids; `allow_none`, whether there may be no root.
    """
    disabled = options.get("disabled")
    if name != ROOT_NAME:
        return f"the setting is called {ROOT_NAME!r}, not {name!r:.80}"
    if not isinstance(disabled, list) or len(disabled) > DISABLED_MAX:
        return f"disabled is a list of at most {DISABLED_MAX} ids of containers"
    if len(set(disabled)) != len(disabled) or disabled != sorted(disabled):
        return "disabled has each id once, sorted"
    if not all(each and len(each.encode()) <= ID_BYTES_MAX for each in disabled):
        return f"a container's id has 1 to {ID_BYTES_MAX} octets"
    if not isinstance(options.get("allow_none", False), bool):
        return "allow_none is true or false"
    return ""


def with_root(
    disabled: Collection[str], container: str, *, is_enabled: bool, allows_none: bool
) -> dict[str, Value]:
    """Return the setting's options once a container is enabled, or is not; none if all are.

    Raises:
        ValueError: It is so already.
    """
    if is_enabled and container not in disabled:
        raise ValueError(f"{container!r:.80} is not disabled as root")
    if not is_enabled and container in disabled:
        raise ValueError(f"{container!r:.80} is disabled as root already")
    changed = sorted({*disabled} ^ {container})
    options: dict[str, Value] = {"disabled": changed}
    if not changed:
        return {}
    return options | {"allow_none": True} if allows_none else options


def demand_enabled(
    options: Mapping[str, Value], voters: Collection[str], live: Collection[str]
) -> None:
    """See that somebody who answers may still become the root.

    Args:
        options: The setting's, as it is to be.
        voters: The primaries.
        live: Who answers.

    Raises:
        ValueError: Nobody may, and that is not allowed.
    """
    disabled = options.get("disabled")
    others = set(voters) - set(disabled if isinstance(disabled, list) else ())
    if options.get("allow_none") or not others.isdisjoint(live):
        return
    silent = f": {', '.join(sorted(others))} would be left, and no answer comes" if others else ""
    raise ValueError(
        f"no primary that answers would be left to become the root{silent}; use --allow-none, or "
        "allow_none = true, to do it all the same: what is declared then waits"
    )


def brings_root(command: Command) -> bool:
    """Return whether a command may be what gives a cluster without a root one again."""
    match command:
        case Apply(commands):
            return any(map(brings_root, commands))
        case Set(kind=kind) | Delete(kind=kind):
            return kind == ROOT
    return isinstance(command, Primaries | PrimariesMoved)


async def demand_root(
    find_leader: Callable[[], Awaitable[str | None]], is_disabled: Callable[[str], bool]
) -> None:
    """Wait a while until nobody leads who is disabled as root.

    Args:
        find_leader: Returns who leads, as far as that is known.
        is_disabled: Tells who is.

    Raises:
        Unavailable: Somebody disabled does.
    """
    deadline_s = asyncio.get_running_loop().time() + ROOT_TIMEOUT_S
    while (leader := await find_leader()) is not None and is_disabled(leader):
        if asyncio.get_running_loop().time() >= deadline_s:
            raise Unavailable(
                f"the cluster has no root: {leader} is disabled as root, and no other primary can "
                "take over; `cogwork cluster root URL --enable ID` lets one be it again"
            )
        await asyncio.sleep(PAUSE_S)
