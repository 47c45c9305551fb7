"""What must hold in a quiet world; each says what is wrong, by an exception that people can read.

The truth is taken from the world: its connections, costs and clients. Nothing here uses the mesh's
own computations.
"""

from __future__ import annotations

from copy import copy
from functools import cache
from math import inf
from typing import TYPE_CHECKING

from cogwork.router.mesh.messages import InterestKind
from cogwork.router.patterns import matches

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogwork.router.mesh.database import Record
    from cogwork.router.mesh.messages import Advertisement
    from cogwork.sim.world import World

__all__ = ("SUBJECTS", "Broken", "check_all", "check_nothing_left", "components", "run_quietly")

SUBJECTS = ("flights.JFK.LAX", "flights.JFK", "prices.EUR", "weather")
"""What checkers publish."""

HELLO_BYTES_MAX = 160
"""A hello of a container with a short id, and nothing configured."""

ECHO_S = 1.0
"""How long an advertisement goes round in a calm world, at most."""

Distances = dict[str, dict[str, float]]


class Broken(AssertionError):
    """A rule does not hold.

    Attributes:
        seed: What leads there again.
    """

    def __init__(self, world: World, what: str) -> None:
        super().__init__(f"seed {world.seed}, at {world.clock.now_s:.3f} s: {what}")
        self.seed = world.seed


def components(world: World) -> list[set[str]]:
    """Return the containers that can reach each other, by the connections that there are."""
    links: dict[str, set[str]] = {name: set() for name in world.alive}
    for wire in world.wires:
        one, other = wire.ends
        if not world.network.is_separated(one, other):
            links[one].add(other)
            links[other].add(one)
    found: list[set[str]] = []
    left = set(links)
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
    """Check every rule.

    Raises:
        Broken: One does not hold.
    """
    for group in components(world):
        edges = _edges(world, group)
        _check_databases(world, group, edges)
        _check_tunnels(world, group)
        _check_paths(world, group, edges)
        _check_copies(world, group)
        _check_interest(world, group)


def _edges(world: World, group: set[str]) -> dict[tuple[str, str], int]:
    """Return the costs of all links; two containers have one pair, and both use it."""
    edges: dict[tuple[str, str], int] = {}
    for wire in world.wires:
        one, other = wire.ends
        if one not in group or world.network.is_separated(one, other):
            continue
        if (one, other) in edges:
            raise Broken(world, f"{one} and {other} have more than one pair of connections")
        for side, name in enumerate(wire.ends):
            used = world.hosts[name].links.get(wire.ends[1 - side])
            if used != wire.links[side]:
                raise Broken(world, f"{name} uses link {used}, not {wire.links[side]}")
        edges[one, other], edges[other, one] = wire.effective_costs
    return edges


def _check_databases(world: World, group: set[str], edges: dict[tuple[str, str], int]) -> None:
    """Everybody has the newest advertisement of each, and that says what is."""
    newest = {}
    for origin in sorted(group):
        mesh = world.alive[origin]
        newest[origin] = mesh.database.records[origin].advertisement
        true = tuple(sorted((to, cost) for (at, to), cost in edges.items() if at == origin))
        if newest[origin].neighbours != true:
            raise Broken(world, f"{origin} advertises {newest[origin].neighbours}, not {true}")
        if newest[origin].incarnation != world.hosts[origin].incarnation:
            raise Broken(world, f"{origin} is outbid in its own name")
    for name in sorted(group):
        mesh = world.alive[name]
        for origin in sorted(group):
            record = mesh.database.records.get(origin)
            known = None if record is None else record.advertisement
            if known is None or not _is_same(known, newest[origin]):
                raise Broken(world, f"{name} knows {known} of {origin}, not {newest[origin]}")


def _is_same(known: Advertisement, newest: Advertisement) -> bool:
    """Return whether a container is up to date.

    What was only repeated may be under way still; who stays behind is sent summaries, out of peace.
    """
    one, other = ((each.origin, each.incarnation, each.neighbours) for each in (known, newest))
    return one == other and newest.sequence - known.sequence in (0, 1)


def _check_tunnels(world: World, group: set[str]) -> None:
    """A tunnel comes from everywhere to everywhere, passed on by one next hop after another."""
    for ingress in sorted(group):
        for egress in sorted(group - {ingress}):
            problem = _tunnel_problem(world, ingress, egress)
            if problem:
                raise Broken(world, f"a tunnel from {ingress} to {egress} {problem}")


def _tunnel_problem(world: World, ingress: str, egress: str) -> str:
    """Return what becomes of a tunnel that does not arrive; nothing of one that does."""
    at, passed = ingress, {ingress}
    while at != egress:
        mesh = world.alive[at]
        hop = mesh.next_hop(egress)
        if hop is None or hop not in mesh.neighbours.active:
            return f"ends at {at}, with no link to {hop}"
        if hop in passed:
            return f"comes to {hop} again"
        passed.add(hop)
        at = hop
    return ""


def _check_paths(world: World, group: set[str], edges: dict[tuple[str, str], int]) -> None:
    """Each next hop lies on a shortest path: with every hop the distance shrinks, so none loops."""
    distances = _floyd_warshall(sorted(group), edges)
    for name in sorted(group):
        host, mesh = world.hosts[name], world.alive[name]
        if host.next_hops != mesh.routes.next_hops:
            raise Broken(world, f"{name} was told other next hops by effects")
        if {*host.next_hops, name} != group:
            raise Broken(world, f"{name} reaches {sorted({*host.next_hops, name} ^ group)} wrongly")
        for goal, hop in host.next_hops.items():
            cost = distances[name][goal]
            if edges.get((name, hop), inf) + distances[hop][goal] != cost:
                raise Broken(world, f"from {name} to {goal} by {hop} is not the way of {cost}")
            if mesh.routes.tree.costs[goal] != cost:
                raise Broken(world, f"{name} takes the way to {goal} for other than {cost}")


def _floyd_warshall(names: list[str], edges: dict[tuple[str, str], int]) -> Distances:
    far: list[list[float]] = [
        [0 if one == other else edges.get((one, other), inf) for other in names] for one in names
    ]
    for middle, beyond in enumerate(far):
        for at, row in enumerate(far):
            step = row[middle]
            if step < inf:
                rows = zip(row, beyond, strict=True)
                far[at] = [old if old <= step + new else step + new for old, new in rows]
    return {one: dict(zip(names, row, strict=True)) for one, row in zip(names, far, strict=True)}


def _check_interest(world: World, group: set[str]) -> None:
    """Everybody knows exactly what each one it can reach wants, and nothing of others' pasts."""
    for origin in sorted(group):
        own = world.alive[origin].interests.table.origins.get(origin)
        told = {} if own is None else own.entries
        host = world.hosts[origin]
        wanted = {(InterestKind.TOPIC.value, "", each) for each in +host.subscriptions}
        wanted.update(host.figures)
        if sorted(entry.key for entry in told.values()) != sorted(wanted):
            raise Broken(world, f"{origin} tells of {len(told)} things, and wants {len(wanted)}")
        for name in sorted(group - {origin}):
            table = world.alive[name].interests.table.origins.get(origin)
            if ({} if table is None else table.entries) != told:
                raise Broken(world, f"{name} does not know what {origin} wants")
            if world.hosts[name].interests.get(origin, {}) != told:
                raise Broken(world, f"{name} was told otherwise of {origin} by effects")
    for name in sorted(group):
        mesh = world.alive[name]
        for origin, table in mesh.interests.table.origins.items():
            if mesh.database.incarnation(origin) != table.incarnation:
                raise Broken(world, f"{name} knows what {origin} wanted in an earlier life")


def _check_copies(world: World, group: set[str]) -> None:
    """Each ingress sends one copy to each who wants it, and none to anybody else."""
    for subject in SUBJECTS:
        wanting = {name for name in group if _takes(+world.hosts[name].subscriptions, subject)}
        for ingress in sorted(group):
            sent = _interested(world, ingress, subject)
            wrong = sorted(sent ^ (wanting - {ingress}))
            if wrong:
                what = "gets" if wrong[0] in sent else "does not get"
                raise Broken(world, f"{wrong[0]} {what} {subject} from {ingress}")


def _interested(world: World, name: str, subject: str) -> set[str]:
    """Return to whom a container opens a tunnel for a subject, by what it was told."""
    mesh = world.alive[name]
    return {
        origin
        for origin, entries in world.hosts[name].interests.items()
        if mesh.next_hop(origin) is not None
        and _takes(
            (entry.address for entry in entries.values() if entry.kind == InterestKind.TOPIC),
            subject,
        )
    }


def _takes(patterns: Iterable[str], subject: str) -> bool:
    return any(_matches(pattern, subject) for pattern in patterns)


_matches = cache(matches)


def run_quietly(world: World, seconds: float) -> None:
    """Let time pass in which nothing changes: hellos are sent, and what is repeated by age.

    Raises:
        Broken: Anything else was sent, or too much of it.
    """
    network = world.network
    before = _advertised(world)
    world.run(ECHO_S)
    kinds, sent_bytes = network.kinds.copy(), network.sent_bytes.copy()
    world.run(seconds)
    kinds, sent_bytes = network.kinds - kinds, network.sent_bytes - sent_bytes
    repeated = _repeated(world, before)
    ways = 2 * len(world.wires)
    hellos = round(seconds / world.timers.hello_s + 1) * ways
    most = {
        "hello": hellos,
        "advertisement": ways * len(repeated),
        "acknowledgement": ways * len(repeated),
    }
    for kind, count in kinds.items():
        if count > most.get(kind, 0):
            raise Broken(world, f"{count} messages of kind {kind} in peace, not {most.get(kind)}")
    if not repeated and sent_bytes.total() > hellos * HELLO_BYTES_MAX:
        raise Broken(world, f"{sent_bytes.total()} bytes in peace for {hellos} hellos")


def _advertised(world: World) -> dict[str, Record]:
    """Return what each container has said last, as it is now."""
    return {name: copy(mesh.database.records[name]) for name, mesh in world.alive.items()}


def _repeated(world: World, before: dict[str, Record]) -> list[str]:
    """Return who has said the same again, as it was time to."""
    found = []
    for name, after in _advertised(world).items():
        was = before[name]
        if was.content != after.content:
            raise Broken(world, f"{name} has other neighbours in peace: {after.advertisement}")
        if was.advertisement.sequence != after.advertisement.sequence:
            found.append(name)
            if after.born_s - was.born_s < world.timers.refresh_s:
                raise Broken(world, f"{name} repeats itself in peace: {after.advertisement}")
    return found


def check_nothing_left(world: World) -> None:
    """Nobody knows the dead, and nobody knows of interests, once all clients have gone.

    Raises:
        Broken: Somebody does.
    """
    for group in components(world):
        for name in sorted(group):
            mesh = world.alive[name]
            leaks = {
                "containers": set(mesh.database.records) - group,
                "tables": set(mesh.interests.table.origins) - group,
                "unreachable": set(mesh.routes.unreachable_since_s),
                "told interests": set(world.hosts[name].interests),
            }
            for what, left in leaks.items():
                if left:
                    raise Broken(world, f"{name} still has {what}: {sorted(left)}")
            if mesh.interests.table.count:
                raise Broken(world, f"{name} still knows what nobody wants")
