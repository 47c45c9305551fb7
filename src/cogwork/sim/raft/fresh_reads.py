"""Reads at a new leader, which does not know yet how far the one before had committed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.sim.raft.moments import AT_ONCE_S, after, settled, when

if TYPE_CHECKING:
    from cogwork.sim.raft.world import World

__all__ = ("read_afresh",)

ELECTION_LOOKS = 3000
"""An election must be seen as it ends, and takes a while to come."""

SLOW_S = 0.04

READS = 30


def read_afresh(world: World) -> None:
    """Cut a leader off as it answers a client, and read at whoever leads next, at once.

    The others have what was answered, and some do not know that it is committed: nobody does in its
    own log before it has committed an entry of its own term (dissertation §6.4). Their disks are
    slow, so that this takes a while.

    Args:
        world: Where.
    """
    leader = world.leader
    if settled(world, leader) is None:
        return
    before = world.checker.answered_end

    def is_answered() -> bool:
        return world.leader == leader and world.checker.answered_end > before

    def is_another() -> bool:
        return world.leader not in ("", leader)

    def lose() -> None:
        world.separate([leader])
        for name in world.disks:
            world.disks[name].slow_s = SLOW_S
        when(world, is_another, lambda: _read_often(world, world.leader), looks=ELECTION_LOOKS)

    when(world, is_answered, lose)


def _read_often(world: World, name: str) -> None:
    for number in range(READS):
        after(world, number * AT_ONCE_S, lambda: world.read(name))
    after(world, READS * AT_ONCE_S, lambda: _let_disks_go_on(world))


def _let_disks_go_on(world: World) -> None:
    for disk in world.disks.values():
        disk.slow_s = 0.0
