"""The checkers see what is broken: each rule once, in a mesh of three that was right before."""

from __future__ import annotations

import pytest

from cogwork.router.mesh.messages import Figures, Interest, InterestKind
from cogwork.sim import topologies
from cogwork.sim.checkers import Broken, check_all, check_nothing_left, components, run_quietly
from cogwork.sim.clock import Clock, Stuck
from cogwork.sim.world import World

NAMES = ["a", "b", "c"]


@pytest.fixture
def world() -> World:
    made = World(seed=1)
    made.add(*NAMES)
    made.join(topologies.line(NAMES))
    made.subscribe("c", "flights.#")
    made.run(5)
    check_all(made)
    run_quietly(made, 1)
    return made


def test_a_wrong_next_hop_is_seen(world: World) -> None:
    world.hosts["a"].next_hops["c"] = "c"
    with pytest.raises(Broken, match="told other next hops"):
        check_all(world)


def test_a_tunnel_that_ends_on_the_way_is_seen(world: World) -> None:
    del world.alive["b"].neighbours.active["c"]
    with pytest.raises(Broken, match="a tunnel from a to c ends at b, with no link to c"):
        check_all(world)


def test_a_tunnel_that_goes_in_a_circle_is_seen(world: World) -> None:
    world.alive["b"].routes.next_hops["c"] = "a"
    with pytest.raises(Broken, match="a tunnel from a to c comes to a again"):
        check_all(world)


def test_a_way_that_is_not_the_shortest_is_seen(world: World) -> None:
    world.join([("a", "c")])
    world.run(5)
    check_all(world)
    world.alive["a"].routes.next_hops["c"] = world.hosts["a"].next_hops["c"] = "b"
    with pytest.raises(Broken, match="from a to c by b is not the way of 1"):
        check_all(world)


def test_a_container_that_is_not_known_is_seen(world: World) -> None:
    world.alive["a"].database.remove("c")
    with pytest.raises(Broken, match="a knows None of c"):
        check_all(world)


def test_a_false_cost_is_seen(world: World) -> None:
    (wire, side) = next(iter(world.hosts["a"].wires.values()))
    wire.costs[side] = 7
    with pytest.raises(Broken, match=": a advertises"):
        check_all(world)


def test_a_lost_subscription_is_seen(world: World) -> None:
    world.hosts["c"].subscriptions["prices"] += 1
    with pytest.raises(Broken, match="c tells of 1 things, and wants 2"):
        check_all(world)


def test_a_neighbour_that_was_told_otherwise_is_seen(world: World) -> None:
    world.subscribe("c", "what no checker publishes")
    world.run(5)
    check_all(world)
    world.hosts["a"].interests["c"].popitem()
    with pytest.raises(Broken, match="a was told otherwise of c"):
        check_all(world)


def test_a_copy_that_does_not_come_is_seen(world: World) -> None:
    del world.hosts["a"].interests["c"]
    with pytest.raises(Broken, match=r"c does not get flights\.JFK\.LAX from a"):
        check_all(world)


def test_a_copy_too_many_is_seen(world: World) -> None:
    world.hosts["a"].interests["b"] = world.hosts["a"].interests["c"]
    with pytest.raises(Broken, match=r"b gets flights\.JFK\.LAX from a"):
        check_all(world)


def test_chatter_is_seen(world: World) -> None:
    def chat() -> None:
        world.set_cost("a", 1, 9)

    world.clock.at(world.clock.now_s + 1.5, chat)
    with pytest.raises(Broken, match="has other neighbours in peace"):
        run_quietly(world, 1)


def test_a_message_too_many_is_seen(world: World) -> None:
    world.clock.at(world.clock.now_s + 1.5, lambda: world.subscribe("a", "prices"))
    with pytest.raises(Broken, match="messages of kind interest"):
        run_quietly(world, 1)


def test_what_is_left_of_the_dead_is_seen(world: World) -> None:
    world.crash("c")
    world.run(10)
    check_all(world)
    with pytest.raises(Broken, match="containers"):
        check_nothing_left(world)
    world.run(world.timers.max_age_s)
    check_nothing_left(world)


def test_a_connection_that_is_not_used_is_seen(world: World) -> None:
    world.hosts["a"].links.pop("b")
    with pytest.raises(Broken, match="a uses link None"):
        check_all(world)


def test_time_that_does_not_go_on_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cogwork.sim.clock.EVENTS_AT_ONCE_MAX", 10)
    clock = Clock()

    def again() -> None:
        clock.at(clock.now_s, again)

    clock.at(1.0, again)
    with pytest.raises(Stuck):
        clock.run_until(2.0)


def test_components_follow_wires_and_partitions(world: World) -> None:
    assert components(world) == [{"a", "b", "c"}]
    world.network.partition({"c": 1})
    assert components(world) == [{"a", "b"}, {"c"}]
    world.network.partition({})
    world.crash("b")
    assert components(world) == [{"a"}, {"c"}]


def test_figures_reach_everybody(world: World) -> None:
    world.set_interest("a", Interest(InterestKind.QUEUE, "", "work", 2, 0, 50))
    world.alive["b"].set_figures(Figures(connections=3))
    world.run(3)
    check_all(world)
    known = world.hosts["c"].interests["a"].values()
    assert [(each.consumers, each.backlog) for each in known] == [(2, 50)]
    heard = [link.figures for link in world.alive["c"].neighbours.links.values()]
    assert heard == [Figures(connections=3, peers=2)]
