"""Figure 8 of the Raft paper among three voters: what two of them have is still overwritten."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cogwork.sim.raft.moments import SOON_S, after, settled, when

if TYPE_CHECKING:
    from cogwork.sim.raft.world import World

__all__ = ("play_figure_8",)

ELECTION_LOOKS = 3000
"""An election must be seen before anybody else hears of it, and takes a while to come."""

SLOW_S = 0.04


def play_figure_8(world: World) -> None:
    """Have two voters have an entry of an earlier term, and then be overruled by the third.

    One leads, and nobody gets its entry; then another one does, and nobody gets its. The first one
    leads again, and the third voter gets its old entry, but not the one of the present term: a
    majority has the old one, and whoever commits it now is wrong (Raft §5.4.2), as the second one
    has a later term in its log, and is elected when the first is gone.

    Args:
        world: Where; it goes on by itself there, as far as it does.
    """
    leader = world.leader
    group = settled(world, leader)
    if group is None or len(group.membership.everyone) != 3:
        return
    first = world.random.choice([each for each in group.membership.voters if each != leader])
    world.transfer(first)
    when(world, lambda: world.leader == first, partial(_hide_first, world, first))


def _hide_first(world: World, first: str) -> None:
    world.separate([first])

    def is_another() -> bool:
        return world.leader not in ("", first)

    when(world, is_another, lambda: _hide_second(world, first, world.leader), looks=ELECTION_LOOKS)


def _hide_second(world: World, first: str, second: str) -> None:
    world.separate([second])
    term = world.checker.last_term

    def is_first_again() -> bool:
        return world.leader == first and world.replicas[first].group.term > term

    def meet() -> None:
        world.heal_network()
        world.separate([second])
        then = partial(_bring_old_entry, world, first, second)
        when(world, is_first_again, then, looks=ELECTION_LOOKS)

    after(world, SOON_S, meet)


def _bring_old_entry(world: World, first: str, second: str) -> None:
    """The third voter has a slow disk, and loses what comes behind the old entry."""
    third = next(each for each in world.disks if each not in (first, second))
    own = world.replicas[first].group.leadership
    follower = world.replicas.get(third)
    if own is None or follower is None:
        return
    world.disks[third].slow_s = SLOW_S

    def has_old_entry() -> bool:
        return follower.group.durable_index == own.first_index - 1

    def lose() -> None:
        world.crash(first)
        world.disks[third].slow_s = 0.0
        world.crash(third)
        world.start(third)
        world.heal_network()

    when(world, has_old_entry, lambda: after(world, world.random.uniform(0.0, SLOW_S), lose))
