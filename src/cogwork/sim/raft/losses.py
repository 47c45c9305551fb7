"""Leaders that are lost for good at a moment when the others depend on one certain member."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.sim.raft.members import change_members, unused_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.consensus.raft.group import Group
    from cogwork.sim.raft.world import World

__all__ = ("lose_promoter", "lose_sleeper")

AT_ONCE_S = 0.0004
"""Between two looks at what a leader does: no message arrives sooner."""

SOON_S = 0.01
"""The same, where it need not be seen before others hear of it."""

LOOKS_MAX = 300
"""After so many without what was waited for, nobody is lost."""


def lose_promoter(world: World, doom: Callable[..., None]) -> None:
    """Has a new voter alone hear of the membership that makes it one, before the leader is lost.

    Where nobody is elected without its vote, and it refuses whoever lacks its last entry, it has
    to stand itself, and as soon as a voter does.

    Args:
        world: Where.
        doom: Is told who is gone for good.
    """
    random, leader = world.random, world.leader
    group = _settled(world, leader)
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
        _after(world, random.uniform(0.0, 0.02), lose)

    def lose() -> None:
        world.crash(leader)
        doom(leader)

    _when(world, is_promoted, cut)


def lose_sleeper(world: World, doom: Callable[..., None]) -> None:
    """Has the leader of a sleeping group be lost, or leave while one that sleeps is stopped.

    The leader's successor is lost then. Who was stopped goes on in its sleep: the container of its
    leader lives and beats, and only those that miss a leader can tell that it leads no more.

    Args:
        world: Where.
        doom: Is told who is gone for good.
    """
    leader = world.leader
    group = _settled(world, leader)
    if group is not None:

        def sleeps() -> bool:
            return group.is_quiescent and world.leader == leader

        _when(world, sleeps, lambda: _disturb_sleep(world, leader, doom), SOON_S)


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
    """Has a leader hand over in its sleep; both are lost when others have heard of the election."""
    group = world.replicas[heir].group
    term = group.term
    world.transfer(heir)

    def lose() -> None:
        world.crash(leader)
        world.crash(heir)
        doom(leader, heir)

    def has_begun() -> bool:
        return group.term > term

    _when(world, has_begun, lambda: _after(world, world.random.uniform(0.001, 0.005), lose))


def _lose_successor(
    world: World, leader: str, others: list[str], doom: Callable[..., None]
) -> None:
    """Has another one lead while one is stopped that sleeps; then that leader is lost."""
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
        return world.leader != leader and _settled(world, world.leader) is not None

    def lose() -> None:
        successor = world.leader
        world.crash(successor)
        doom(successor)

    _when(world, is_followed, lose, SOON_S)


def _settled(world: World, leader: str) -> Group | None:
    """Returns the group as a leader has it that changes no members."""
    group = world.replicas[leader].group if leader else None
    if group is None or group.leadership is None or group.leadership.changes.is_under_way:
        return None
    return group if group.commit >= group.leadership.first_index else None


def _when(
    world: World, is_so: Callable[[], bool], then: Callable[[], object], every_s: float = AT_ONCE_S
) -> None:
    """Does something when something is so for the first time, if that is soon."""
    left = LOOKS_MAX

    def look() -> None:
        nonlocal left
        left -= 1
        if is_so():
            then()
        elif left:
            _after(world, every_s, look)

    look()


def _after(world: World, seconds: float, action: Callable[[], object]) -> None:
    """Has something done later, unless what disturbs has come to its end."""
    world.after(seconds, lambda: None if world.is_healed else action())
