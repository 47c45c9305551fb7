"""Members whose disk is replaced by an empty one, and that begin again by what the others say.

As in a container: all others have to say how far they are, but for those that have forgotten, too,
and have to be a majority of the voters without it (`replication.rejoining`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cogwork.sim.raft.replica import Replica
    from cogwork.sim.raft.world import World

__all__ = ("has_forgotten", "wipe")

LOOK_S = 0.03
"""How often the others are asked."""


def wipe(world: World) -> None:
    """Replace the disk of a voter, where a majority of any membership does without it."""
    leader = world.leader
    voters = sorted(world.replicas[leader].group.membership.all_voters) if leader else []
    chosen = [name for name in voters if name in world.disks and world.can_lose(name)]
    if not chosen or world.lost or has_forgotten(world):
        return
    name = world.random.choice(chosen)
    if world.random.random() < 0.3 and leader in chosen:
        name = leader
    world.note(name, "loses what its disk has")
    world.crash(name)
    del world.disks[name]
    world.floors.pop(name, None)
    world.checker.on_wiped(name)
    world.wiped.add(name)
    world.after(world.random.uniform(0.01, 0.6), partial(_begin_again, world, name, voters))


def has_forgotten(world: World) -> bool:
    """Tell whether somebody has lost its disk and does not have everything again."""
    return bool(world.wiped) or any(_is_below(world, name) for name in world.disks)


def _is_below(world: World, name: str) -> bool:
    """Tell whether one has not come to its floor again, whether or not it runs."""
    store = world.disks[name].store
    return (store.term(store.last) or 0, store.last) < world.floors.get(name, (0, 0))


def _begin_again(world: World, name: str, voters: list[str]) -> None:
    """Start it with an empty disk, once the others have said how far they are."""
    floor = None if world.network.under_way[name] else _floor(world, name, voters)
    if floor is None:
        world.after(LOOK_S, partial(_begin_again, world, name, voters))
        return
    world.note(name, f"begins again with the floor {floor}")
    world.wiped.discard(name)
    world.floors[name] = floor
    world.checker.on_begin_again(floor)
    world.add(name)


def _floor(world: World, name: str, voters: list[str]) -> tuple[int, int] | None:
    """Return the floor; None where somebody does not answer."""
    told = _told(world)
    names = {*voters}.union(*(each.group.membership.all_voters for each in told.values()))
    others = names - {name}
    if not told.keys() >= others:
        return None
    told = {each: told[each] for each in others if not told[each].group.is_below_floor}
    if 2 * len(told) <= len(names):
        return None
    return max(each.group.term for each in told.values()) + 1, 0


def _told(world: World) -> dict[str, Replica]:
    """Return those that answer: a paused one does not."""
    running = world.replicas.items()
    return {name: replica for name, replica in running if replica.waiting is None}
