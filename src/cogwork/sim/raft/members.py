"""Who is asked to be a member of the group, and who gives everything up."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.raft.membership import Membership
    from cogwork.sim.raft.world import World

__all__ = ("change_members", "draw_members", "may_return", "retire", "unused_name")

MEMBERS_MAX = 6


def change_members(world: World, voters: Sequence[str], learners: Sequence[str] = ()) -> None:
    """Ask the leader for other members; those that are new start with nothing."""
    leader = world.leader
    if not leader or not voters:
        return
    for name in (*voters, *learners):
        if name not in world.disks and name not in world.wiped:
            world.add(name)
    world.note(leader, f"is asked for voters {voters}, learners {learners}")
    world.replicas[leader].change(voters, learners)


def draw_members(world: World, membership: Membership) -> tuple[list[str], list[str]]:
    """Return other voters and learners; who is lost goes first."""
    random, gone = world.random, world.lost
    voters = [name for name in membership.voters if name not in gone]
    learners = [name for name in membership.learners if name not in gone]
    if not gone & membership.everyone:
        if random.random() < 0.4 and len(voters) > 1:
            voters.remove(random.choice(voters))
        elif learners and random.random() < 0.5:
            learners.remove(learners[0])
    spare = [name for name in world.disks if name not in membership.everyone | gone]
    spare += sorted(name for name in world.floors if may_return(world, name))
    if len(world.disks) < MEMBERS_MAX and random.random() < 0.5:
        spare.append(unused_name(world))
    if spare and random.random() < 0.7:
        (voters if random.random() < 0.7 else learners).append(random.choice(spare))
    elif learners and random.random() < 0.5:
        voters.append(learners.pop())
    if random.random() < 0.2:
        random.shuffle(voters)
    return voters, learners


def unused_name(world: World) -> str:
    """Return a name that nobody has, or ever had."""
    away = (world.floors.keys() | world.wiped) - world.disks.keys()
    return f"n{len(world.disks) + len(away) + 1}"


def may_return(world: World, name: str) -> bool:
    """Return whether one has given up everything, and nothing that it has said is under way.

    Connections keep their order: what it said in its life before has come, or never will.
    """
    return name in world.floors and name not in world.disks and not world.network.under_way[name]


def retire(world: World, name: str = "") -> None:
    """Have one give up everything that is no member any more, as all may know.

    Args:
        world: Where.
        name: Who; anyone where nobody is named.
    """
    leader, logs = world.leader, world.checker.shadows
    group = world.replicas[leader].group if leader else None
    if group is None or group.leadership is None or group.leadership.changes.is_under_way:
        return
    newest = logs[leader].log.quorums[-1][0]
    if any(shadow.log.quorums[-1][0] > newest for shadow in logs.values()):
        return
    strangers = world.disks.keys() - group.membership.everyone - world.lost - world.excused
    chosen = sorted(strangers & {name} if name else strangers)
    if chosen and group.commit >= group.leadership.first_index:
        name = world.random.choice(chosen)
        world.note(name, "has left, and gives up everything")
        world.crash(name)
        del world.disks[name]
        world.checker.on_retired(name)
        world.floors[name] = (group.term, group.commit)
