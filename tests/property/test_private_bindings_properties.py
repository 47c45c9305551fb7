"""Private queues of three containers under random histories: as if all were at one container."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st
from test_exchanges_properties import (
    ALTERNATES,
    HEADERS,
    KEYS,
    MODES,
    NAMES,
    PATTERNS,
    TYPES,
    made,
    octets,
)

from cogwork.container.vhost.declared_exchange import DeclaredExchange
from cogwork.container.vhost.private_bindings import PrivateBindings
from cogwork.container.vhost.remote_bindings import RemoteBindings
from cogwork.plugin.exchange_types import exchange_type
from cogwork.router.exchanges.binding import EXCHANGE, QUEUE, Binding, Destination, Routed
from cogwork.router.exchanges.forwards import ForwardRoute, keys_in, route_in
from cogwork.router.exchanges.graph import ExchangeGraph

if TYPE_CHECKING:
    from cogwork.plugin.exchange_types import ExchangeType

CONTAINERS = ("a", "b/%", "c")
QUEUES = {f"{name}-{number}": name for name in CONTAINERS for number in range(2)}
TYPES_HERE = {**TYPES, "hash": "x-consistent-hash"}


class Graph(ExchangeGraph):
    """One with all exchanges."""

    def __init__(self) -> None:
        super().__init__()
        for name in TYPES_HERE:
            self.add(name, matcher_of(name), ALTERNATES.get(name))


def matcher_of(name: str) -> ExchangeType:
    factory = exchange_type(TYPES_HERE[name])
    assert factory is not None
    return factory({}, lambda _below: 0)


class Container:
    """What a container has of exchanges, and how it hears of the private queues of others."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.private = PrivateBindings(lambda _name: None)
        for name, kind in TYPES_HERE.items():
            self.private.add_exchange(DeclaredExchange(name, kind), matcher_of(name))
        self.remote = RemoteBindings(
            self.graph, TYPES_HERE.get, lambda: None, lambda _exchange: None
        )

    def bind(self, source: str, binding: Binding) -> None:
        if self.graph.bind(source, binding):
            self.private.bound(source, binding)

    def unbind(self, source: str, binding: Binding) -> None:
        if self.graph.unbind(source, binding):
            self.private.unbound(source, binding)

    def take(self, route: ForwardRoute, message: Routed) -> set[str]:
        """Look up what another container sends, as it comes over the wire."""
        return set(self.private.matching(route_in(route.octets), message))


class World:
    """Three containers that hear of each other at once."""

    def __init__(self) -> None:
        self.containers = {name: Container() for name in CONTAINERS}
        for name, container in self.containers.items():
            container.private.announce_all(self._teller(name))
        for queue, name in QUEUES.items():
            self.containers[name].private.add_queue(queue, is_reserved=True)

    def _teller(self, name: str) -> Any:
        def tell(address: str, is_there: bool) -> None:
            assert len(address) < 2048
            for other, container in self.containers.items():
                if other != name:
                    change = container.remote.take if is_there else container.remote.lose
                    change(name, address)

        return tell

    def change(self, step: str, source: str, binding: Binding) -> None:
        kind, name = binding.destination
        where = self.containers.values() if kind == EXCHANGE else [self.containers[QUEUES[name]]]
        for container in where:
            getattr(container, step)(source, binding)

    def deliveries(self, at: str, start: str, message: Routed) -> Counter[str]:
        """Count what each queue gets of a message that comes in at a container."""
        route = self.containers[at].graph.route(start, message)
        found = Counter(name for name in route.queues if name in QUEUES)
        for container, where in route.forwards:
            assert container != at
            found.update(self.containers[container].take(where, message))
        return found


DESTINATIONS = st.one_of(
    st.builds(Destination, st.just(QUEUE), st.sampled_from(sorted(QUEUES))),
    st.builds(Destination, st.just(QUEUE), st.sampled_from(sorted(QUEUES))),
    st.builds(Destination, st.just(EXCHANGE), NAMES),
)
BINDINGS = st.one_of(
    st.tuples(NAMES, st.builds(made, DESTINATIONS, st.one_of(KEYS, PATTERNS), HEADERS, MODES)),
    st.tuples(
        st.just("hash"),
        st.builds(Binding, DESTINATIONS.filter(lambda each: each.kind == QUEUE), st.just(b"1")),
    ),
)
STEPS = st.lists(st.tuples(st.sampled_from(["bind", "bind", "unbind"]), BINDINGS), max_size=12)
STARTS = st.one_of(NAMES, st.just("hash"))


@given(STEPS, STARTS, KEYS, HEADERS)
def test_private_queues_get_what_they_would_at_one_container(
    steps: list[tuple[str, tuple[str, Binding]]], start: str, key: str, headers: dict[str, object]
) -> None:
    world, alone = World(), Graph()
    message = Routed((octets(key),), lambda: headers)
    for step, (source, binding) in steps:
        world.change(step, source, binding)
        getattr(alone, step)(source, binding)
        wanted = Counter(name for name in alone.route(start, message).queues if name in QUEUES)
        for name in CONTAINERS:
            assert world.deliveries(name, start, message) == wanted


@given(STEPS)
def test_nothing_is_left_of_bindings_that_have_gone(
    steps: list[tuple[str, tuple[str, Binding]]],
) -> None:
    world = World()
    for step, (source, binding) in steps:
        world.change(step, source, binding)
    for _, (source, binding) in steps:
        world.change("unbind", source, binding)
    for container in world.containers.values():
        assert container.graph.binding_count == 0
        for queue in QUEUES:
            container.private.remove_queue(queue)
    for one, other in itertools.permutations(CONTAINERS, 2):
        for queue in (queue for queue, home in QUEUES.items() if home == other):
            assert world.containers[one].remote.holder_of(queue) is None


@given(STEPS, KEYS, HEADERS)
def test_a_container_that_cannot_be_reached_gets_nothing_until_it_can(
    steps: list[tuple[str, tuple[str, Binding]]], key: str, headers: dict[str, object]
) -> None:
    world = World()
    message = Routed((octets(key),), lambda: headers)
    here = world.containers["a"]
    for step, (source, binding) in steps:
        here.remote.set_unreachable({"c"})
        world.change(step, source, binding)
        for start in TYPES_HERE:
            found = here.graph.route(start, message).forwards
            assert "c" not in {container for container, _ in found}
        here.remote.set_unreachable(())
        there = world.containers["c"]
        for start in TYPES:
            direct = {name for name, _ in there.graph.route(start, message).forwards}
            back = {name for name, _ in here.graph.route(start, message).forwards}
            mine = {
                QUEUES[each] for each in here.graph.route(start, message).queues if each in QUEUES
            }
            theirs = {
                QUEUES[each] for each in there.graph.route(start, message).queues if each in QUEUES
            }
            assert direct | theirs == back | mine


@given(st.lists(st.binary(max_size=20)), st.lists(st.text(max_size=5)), st.lists(st.text()))
def test_routes_and_keys_come_back_from_octets(
    keys: list[bytes], exchanges: list[str], queues: list[str]
) -> None:
    route = ForwardRoute(tuple(exchanges), tuple(queues))
    assert route_in(route.octets) == route
    packed = b"".join(len(key).to_bytes(4, "big") + key for key in keys)
    assert keys_in(packed) == tuple(keys)
