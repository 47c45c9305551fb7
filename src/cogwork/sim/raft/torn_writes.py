"""Crashes in the middle of a write, between a hard state and the entries that it may speak of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.sim.raft.moments import when

if TYPE_CHECKING:
    from cogwork.sim.raft.world import World

__all__ = ("tear_write",)

SLOW_S = 0.01
"""So long more a synchronisation takes: writes gather, and can be met before they are durable."""

EVERY_S = 0.002
LOOKS = 400


def tear_write(world: World, name: str) -> None:
    """Have a replica crash when a hard state and entries behind it are written, and not durable.

    Its disk may keep the one without the others. So a commit index that is written beside them must
    not speak of them.

    Args:
        world: Where.
        name: Whose disk.
    """
    disk = world.disks[name]
    disk.slow_s = SLOW_S

    def crash() -> None:
        if not world.is_healed and name in world.replicas:
            world.crash(name)
            disk.slow_s = 0.0
            world.start(name)

    when(world, lambda: bool(disk.seams), crash, every_s=EVERY_S, looks=LOOKS)
