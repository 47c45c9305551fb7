"""Members that leave, give up everything, and come back to one that has heard nothing of it.

That one may still take itself for the leader, and who has come back for a voter that has its log.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cogwork.sim.raft.members import change_members, may_return, retire
from cogwork.sim.raft.moments import SOON_S, after, settled, when

if TYPE_CHECKING:
    from cogwork.sim.raft.world import World

__all__ = ("leave_and_return", "outlast_election")

ANSWERS_S = 0.02
"""In so long followers have answered what the leader sent last."""

ELECTION_LOOKS = 300
"""An election takes a while to come."""


def leave_and_return(world: World) -> None:
    """Have a voter leave and come back, where the leader was stopped, or another voter is cut off.

    Args:
        world: Where.
    """
    random, leader = world.random, world.leader
    if not leader or len(world.replicas[leader].group.membership.voters) < 3:
        return
    if random.random() < 0.3:  # it still takes itself for the leader when it goes on
        world.pause(leader)
        world.after(random.uniform(0.6, 1.2), partial(_leave, world, leader))
    else:
        voters = world.replicas[leader].group.membership.voters
        deaf = random.choice([voter for voter in voters if voter != leader])
        world.separate([deaf])
        _leave(world, deaf)


def outlast_election(world: World) -> None:
    """Stop a leader as it appends; it goes on next to a voter that has left and come back.

    What followers answered comes first then, so that it leads on for a while, and what clients have
    asked it for is in its log alone. Nobody has told it of another term.

    Args:
        world: Where.
    """
    leader = world.leader
    group = settled(world, leader)
    if group is None or len(group.membership.voters) < 3:
        return

    def appends() -> bool:
        return world.leader == leader and group.last_index > group.commit

    def stop() -> None:
        world.pause(leader)
        after(world, ANSWERS_S, cut)

    def cut() -> None:
        world.separate([leader])
        when(world, is_followed, partial(_leave, world, leader), SOON_S, ELECTION_LOOKS)

    def is_followed() -> bool:
        return world.leader != leader and settled(world, world.leader) is not None

    when(world, appends, stop)


def _leave(world: World, deaf: str) -> None:
    """Have a voter leave while one does not hear of it, and come back to that one."""
    random, leader = world.random, world.leader
    voters = list(world.replicas[leader].group.membership.voters) if leader else []
    others = [voter for voter in voters if voter not in (leader, deaf)]
    if world.is_healed or leader == deaf or not others:
        return
    leaver = random.choice(others)
    stay = [voter for voter in voters if voter not in (leaver, deaf)]
    change_members(world, stay)

    def come_back() -> None:
        retire(world, leaver)
        if may_return(world, leaver):
            change_members(world, [*stay, leaver])
            after(world, random.choice((0.0, 0.002, 0.02, 0.1)), meet)

    def meet() -> None:
        world.heal_network()
        world.separate([leaver, deaf])
        world.resume(deaf)

    after(world, random.uniform(0.03, 0.4), come_back)
