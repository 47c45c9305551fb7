"""What leaders do where nothing is wrong any more, or only one does not hear the leader.

- The voter of highest priority that is there comes to lead, and nobody takes the lead from it after
  that.
- Who hears a leader disturbs it for nobody: one that alone does not hear it begins no term, and
  whoever leads goes on with it (dissertation §4.2.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.raft.leader_priority import CHANGES_MAX

if TYPE_CHECKING:
    from cogwork.sim.raft.world import World

__all__ = ("stay_calm",)

STEP_S = 0.1

DEAF_S = 2.0
"""How long one does not hear the leader: some time-outs."""

HOLDS = 2.5
"""The preferred voter leads after so many of the longest times that one must have been there: it
may come to that by way of another one, and clocks go wrong."""


def stay_calm(world: World) -> None:
    """Let time pass in which nobody but a member of higher priority may take the lead.

    Args:
        world: Where all has converged.

    Raises:
        Broken: Somebody else does, or nobody of highest priority.
    """
    _await_preferred(world)
    leader = world.leader
    voters = world.replicas[leader].group.membership.voters
    others = [voter for voter in voters if voter not in (leader, *world.lost)]
    if len(others) < 2 or world.lost & {*voters}:
        return  # nobody can be spared
    deaf = world.random.choice(others)
    world.block(leader, deaf)
    _keep_leader(world, DEAF_S)
    world.heal_network()
    _keep_leader(world, DEAF_S)


def _await_preferred(world: World) -> None:
    """Wait until the preferred voter leads; until then only voters of higher priority lead."""
    hold_s = world.limits.settings.priority_hold_s * 2.0 ** (CHANGES_MAX - 1)
    end_s = world.clock.now_s + HOLDS * hold_s
    leader = world.leader
    while leader != (candidate := _preferred(world)):
        if world.clock.now_s >= end_s:
            raise world.broken(f"{leader} leads, and has not handed over to {candidate}")
        world.run(STEP_S)
        before, leader = leader, world.leader or leader
        voters = world.replicas[leader].group.membership.voters
        if voters.index(leader) > voters.index(before):
            raise world.broken(
                f"{leader} has taken the lead from {before}, which has a higher priority"
            )


def _preferred(world: World) -> str:
    voters = world.replicas[world.leader].group.membership.voters if world.leader else ()
    return next((voter for voter in voters if voter not in world.lost), "")


def _keep_leader(world: World, seconds: float) -> None:
    leader = world.leader
    term, before = world.replicas[leader].group.term, world.checker.last_term
    world.run(seconds)
    if world.leader != leader or world.checker.last_term != before:
        raise world.broken(
            f"term {world.checker.last_term} has come, led by {world.leader or 'nobody'}, though "
            f"{leader} led term {term} and a majority heard it"
        )
