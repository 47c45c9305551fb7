"""Leaders that are lost for good at a moment when the others depend on one certain member."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.sim.raft.members import change_members, unused_name
from cogwork.sim.raft.moments import SOON_S, after, settled, when

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.sim.raft.world import World

__all__ = ("lose_leaver", "lose_promoter", "lose_sleeper")

CATCH_UP_LOOKS = 1000
"""While a new voter gets the log, and two memberships are committed."""


def lose_leaver(world: World, doom: Callable[..., None]) -> None:
    """Have a leader that leaves crash while it alone has the membership without it.

    The others are joint, need it for their majority of the old voters where one more of these is
    lost, and do not get its vote, as its log is fresher than theirs: it has to stand itself.

    Args:
        world: Where.
        doom: Is told who is gone for good.
    """
    random, leader = world.random, world.leader
    group = settled(world, leader)
    if group is None:
        return
    stay = [voter for voter in group.membership.voters if voter != leader]
    change_members(world, [*stay, unused_name(world)])

    def has_left() -> bool:
        membership = group.membership
        return leader not in membership.all_voters and world.leader == leader

    def is_written() -> bool:
        return group.durable_index == group.last_index

    def lose() -> None:
        gone = random.sample(stay, 1) if len(stay) > 1 else []
        for name in (leader, *gone):
            world.crash(name)
        doom(*gone)

    def cut() -> None:
        world.separate([leader])
        when(world, is_written, lose)

    when(world, has_left, cut, looks=CATCH_UP_LOOKS)


def lose_promoter(world: World, doom: Callable[..., None]) -> None:
    """Have a new voter alone hear of the membership that makes it one, before the leader is lost.

    Where nobody is elected without its vote, and it refuses whoever lacks its last entry, it has
    to stand itself, and as soon as a voter does.

    Args:
        world: Where.
        doom: Is told who is gone for good.
    """
    random, leader = world.random, world.leader
    group = settled(world, leader)
    if group is None or len(group.membership.voters) < 3:
        return
    learners = [name for name in group.membership.learners if name in world.replicas]
    new = random.choice(learners) if learners else unused_name(world)
    voters = list(group.membership.voters)
    if random.random() < 0.3:
        voters.remove(random.choice([voter for voter in voters if voter != leader]))
    change_members(world, [*voters, new])

    def is_promoted() -> bool:
        membership = group.membership
        return new in membership.voters and not membership.is_joint and world.leader == leader

    def cut() -> None:
        for other in sorted(world.disks.keys() - {leader, new}):
            world.block(leader, other)
        after(world, random.uniform(0.0, 0.02), lose)

    def lose() -> None:
        world.crash(leader)
        doom(leader)

    when(world, is_promoted, cut)


def lose_sleeper(world: World, doom: Callable[..., None]) -> None:
    """Have the leader of a sleeping group be lost, or leave while one that sleeps is stopped.

    The leader's successor is lost then. Who was stopped goes on in its sleep: the container of its
    leader lives and beats, and only those that miss a leader can tell that it leads no more.

    Args:
        world: Where.
        doom: Is told who is gone for good.
    """
    leader = world.leader
    group = settled(world, leader)
    if group is not None:

        def sleeps() -> bool:
            return group.is_quiescent and world.leader == leader

        when(world, sleeps, lambda: _disturb_sleep(world, leader, doom), SOON_S)


def _disturb_sleep(world: World, leader: str, doom: Callable[..., None]) -> None:
    random, voters = world.random, world.replicas[leader].group.membership.voters
    others = [voter for voter in voters if voter != leader and voter in world.replicas]
    if len(others) > 3 and random.random() < 0.4:
        _lose_both(world, leader, random.choice(others), doom)
    elif len(others) < 2 or random.random() < 0.2:
        world.crash(leader)
        doom(leader)
    else:
        _lose_successor(world, leader, random.sample(others, len(others)), doom)


def _lose_both(world: World, leader: str, heir: str, doom: Callable[..., None]) -> None:
    """Have a sleeping leader hand over; both are lost when others know of the election."""
    group = world.replicas[heir].group
    term = group.term
    world.transfer(heir)

    def lose() -> None:
        world.crash(leader)
        world.crash(heir)
        doom(leader, heir)

    def has_begun() -> bool:
        return group.term > term

    when(world, has_begun, lambda: after(world, world.random.uniform(0.001, 0.005), lose))


def _lose_successor(
    world: World, leader: str, others: list[str], doom: Callable[..., None]
) -> None:
    """Have another one lead while one is stopped that sleeps; then that leader is lost."""
    voters = world.replicas[leader].group.membership.voters
    sleeper, heir, *rest = others
    world.pause(sleeper)
    world.separate([sleeper])
    if rest and world.random.random() < 0.4:
        world.transfer(heir)
    else:
        new = [] if rest else [unused_name(world)]
        change_members(world, [*(voter for voter in voters if voter != leader), *new])

    def is_followed() -> bool:
        return world.leader != leader and settled(world, world.leader) is not None

    def lose() -> None:
        successor = world.leader
        world.crash(successor)
        doom(successor)

    when(world, is_followed, lose, SOON_S)
