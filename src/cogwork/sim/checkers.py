"""What must hold in a quiet world; each says what is wrong, by an exception that people can read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.router.mesh.paths import shortest_paths

if TYPE_CHECKING:
    from cogwork.router.mesh.mesh import Mesh
    from cogwork.sim.world import World

__all__ = ("Broken", "check_all", "check_interest", "check_multicast", "check_paths", "components")


class Broken(AssertionError):
    """A rule does not hold.

    Attributes:
        seed: What leads there again.
    """

    def __init__(self, world: World, what: str) -> None:
        super().__init__(f"seed {world.seed}, at {world.clock.now_s:.3f} s: {what}")
        self.seed = world.seed


def components(world: World) -> list[set[str]]:
    """Returns the containers that can reach each other, by the connections that there are."""
    alive = world.alive
    links: dict[str, set[str]] = {name: set() for name in alive}
    for name, host in world.hosts.items():
        for wire, side in host.wires.values():
            other = wire.ends[1 - side]
            if name in alive and other in alive and wire.is_open and name != other:
                if not world.network.is_separated(name, other):
                    links[name].add(other)
    found: list[set[str]] = []
    left = set(alive)
    while left:
        group, waiting = set[str](), [min(left)]
        while waiting:
            name = waiting.pop()
            if name not in group:
                group.add(name)
                waiting += links[name]
        found.append(group)
        left -= group
    return found


def check_all(world: World) -> None:
    """Checks every rule.

    Raises:
        Broken: One does not hold.
    """
    check_paths(world)
    check_interest(world)
    check_multicast(world)


def check_paths(world: World) -> None:
    """Everybody sees the same links, and every walk by next hops arrives at the lowest cost."""
    alive = world.alive
    for group in components(world):
        first = alive[min(group)].routes.graph
        for name in sorted(group):
            mesh = alive[name]
            graph = {each: mesh.routes.graph.get(each, {}) for each in group}
            if graph != {each: first.get(each, {}) for each in group}:
                raise Broken(world, f"{name} and {min(group)} see different links")
            reached = {*mesh.routes.next_hops, name}
            if reached != group:
                raise Broken(world, f"{name} reaches {sorted(reached ^ group)} wrongly")
        for name in sorted(group):
            tree = shortest_paths(first, name)
            for goal in sorted(group - {name}):
                _walk(world, alive, name, goal, tree.costs[goal])


def _walk(world: World, alive: dict[str, Mesh], start: str, goal: str, cost: int) -> None:
    at, spent, steps = start, 0, [start]
    while at != goal:
        hop = alive[at].next_hop(goal)
        if hop is None or hop not in alive or hop in steps:
            raise Broken(world, f"from {start} to {goal}: {' '.join(steps)} {hop}")
        spent += alive[at].routes.graph[at][hop]
        at = hop
        steps.append(at)
    if spent != cost:
        raise Broken(world, f"from {start} to {goal} costs {spent}, not {cost}")


def check_interest(world: World) -> None:
    """Everybody knows exactly what each one it can reach wants, and nothing of others' pasts."""
    alive = world.alive
    for group in components(world):
        for origin in sorted(group):
            own = alive[origin].interests.table.origins.get(origin)
            wanted = {} if own is None else own.entries
            if len(wanted) != alive[origin].interests.local.counts[1]:
                raise Broken(world, f"{origin} has not told all that it wants")
            for name in sorted(group - {origin}):
                table = alive[name].interests.table.origins.get(origin)
                known = {} if table is None else table.entries
                if known != wanted:
                    raise Broken(world, f"{name} takes {origin} to want {len(known)} things")
                told = world.hosts[name].patterns.get(origin, {})
                if told != {label: entry.address for label, entry in wanted.items()}:
                    raise Broken(world, f"{name} was told otherwise of {origin} by effects")


def check_multicast(world: World) -> None:
    """From every origin one copy comes to each interested container, and to no other end.

    What the containers of a group are interested in is drawn at random.
    """
    alive = world.alive
    for group in components(world):
        for origin in sorted(group):
            wanted = {name for name in sorted(group) if world.random.random() < 0.3}
            copies = _copies(world, alive, origin, wanted)
            for name in group - {origin}:
                if copies.get(name, 0) != 1 and name in wanted:
                    raise Broken(world, f"{name} gets {copies.get(name, 0)} copies from {origin}")


def _copies(world: World, alive: dict[str, Mesh], origin: str, wanted: set[str]) -> dict[str, int]:
    """Forwards one message as the containers would, and counts what each gets."""
    copies: dict[str, int] = {}
    waiting = [origin]
    while waiting:
        at = waiting.pop()
        mesh = alive[at]
        targets = mesh.targets(origin, mesh.bits(wanted))
        if at not in wanted and not targets and at != origin:
            raise Broken(world, f"{at} gets a message from {origin} that nobody behind it wants")
        for neighbour in targets:
            copies[neighbour] = copies.get(neighbour, 0) + 1
            if copies[neighbour] > 1:
                raise Broken(world, f"{neighbour} gets a second copy from {origin}")
            waiting.append(neighbour)
    return copies
