"""Waiting for the moment at which something is to happen."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.raft.group import Group
    from cogwork.sim.raft.world import World

__all__ = ("SOON_S", "after", "settled", "when")

AT_ONCE_S = 0.0004
"""Between two looks at what a replica does: no message arrives sooner."""

SOON_S = 0.01
"""The same, where it need not be seen before others hear of it."""

LOOKS_MAX = 300
"""After so many without what was waited for, nothing happens."""


def settled(world: World, leader: str) -> Group | None:
    """Return the group as a leader has it that changes no members."""
    group = world.replicas[leader].group if leader else None
    if group is None or group.leadership is None or group.leadership.changes.is_under_way:
        return None
    return group if group.commit >= group.leadership.first_index else None


def when(
    world: World,
    is_so: Callable[[], bool],
    then: Callable[[], object],
    every_s: float = AT_ONCE_S,
    looks: int = LOOKS_MAX,
) -> None:
    """Do something when something is so for the first time, if that is soon."""
    left = looks

    def look() -> None:
        nonlocal left
        left -= 1
        if is_so():
            then()
        elif left:
            after(world, every_s, look)

    look()


def after(world: World, seconds: float, action: Callable[[], object]) -> None:
    """Have something done later, unless what disturbs has come to its end."""
    world.after(seconds, lambda: None if world.is_healed else action())
