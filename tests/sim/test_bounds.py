"""What a change costs, and how soon everybody knows: in messages and in the world's own time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cogwork.sim import topologies
from cogwork.sim.checkers import Broken, check_all, run_quietly
from cogwork.sim.world import World

if TYPE_CHECKING:
    from collections import Counter

CONTAINERS = 12


@pytest.fixture
def world() -> World:
    """A ring with chords."""
    made = World(seed=3)
    names = [f"c{at:02}" for at in range(CONTAINERS)]
    made.add(*names)
    made.join(topologies.random(names, made.random))
    made.subscribe("c03", "news")
    made.run(6)
    check_all(made)
    return made


def sent_in(world: World, seconds: float) -> Counter[str]:
    before = world.network.kinds.copy()
    world.run(seconds)
    return world.network.kinds - before


def is_right(world: World) -> bool:
    try:
        check_all(world)
    except Broken:
        return False
    return True


def right_after_s(world: World, limit_s: float) -> float:
    """Return when everybody knows."""
    began_s = world.clock.now_s
    while not is_right(world):
        world.run(0.005)
        assert world.clock.now_s - began_s < limit_s
    return world.clock.now_s - began_s


def test_a_subscription_crosses_each_link_once_in_either_direction(world: World) -> None:
    world.subscribe("c03", "flights.#")
    sent = sent_in(world, 2)
    ways = 2 * len(world.wires)
    assert CONTAINERS - 1 <= sent["interest-delta"] <= ways
    assert sent["acknowledgement"] <= ways
    assert set(sent) == {"hello", "interest-delta", "acknowledgement"}
    check_all(world)


def test_the_same_subscription_again_is_told_to_nobody(world: World) -> None:
    world.subscribe("c03", "flights.#")
    world.run(2)
    for _ in range(1000):
        world.subscribe("c03", "flights.#")
    assert set(sent_in(world, 1)) == {"hello"}


def test_one_who_comes_and_goes_at_once_costs_no_entry(world: World) -> None:
    world.subscribe("c03", "flights.#")
    world.unsubscribe("c03", "flights.#")
    world.run(1)
    check_all(world)
    told = [len(host.interests["c03"]) for host in world.hosts.values() if host.name != "c03"]
    assert told == [1] * (CONTAINERS - 1)


def test_a_new_cost_costs_each_link_two_advertisements_at_most(world: World) -> None:
    world.set_cost("c03", min(world.hosts["c03"].wires), 7)
    sent = sent_in(world, 3)
    ways = 2 * len(world.wires)
    assert CONTAINERS - 1 <= sent["advertisement"] <= 2 * ways
    assert set(sent) == {"hello", "advertisement", "acknowledgement"}
    check_all(world)


def test_a_hundred_changes_of_a_cost_are_told_as_few(world: World) -> None:
    link = min(world.hosts["c03"].wires)
    before = world.network.kinds["advertisement"]
    for cost in range(100):
        world.set_cost("c03", link, 1 + cost % 2)
        world.run(0.01)
    world.run(3)
    check_all(world)
    ways = 2 * len(world.wires)
    # Pauses of 50 ms, 100 ms, … up to a second: six of them in the time of the changes.
    assert world.network.kinds["advertisement"] - before <= 2 * 8 * ways


def test_a_broken_connection_is_routed_around_within_100_ms(world: World) -> None:
    world.part("c03", "c04")
    assert not is_right(world)
    assert right_after_s(world, 1) <= 0.1


def test_a_killed_container_is_routed_around_within_100_ms(world: World) -> None:
    world.crash("c03")
    assert not is_right(world)
    assert right_after_s(world, 1) <= 0.1


def test_a_silent_container_is_routed_around_within_four_seconds(world: World) -> None:
    world.network.partition({"c03": 1})
    assert not is_right(world)
    assert 2 < right_after_s(world, 5) <= 4


def test_a_container_that_says_good_bye_is_routed_around_before_it_goes(world: World) -> None:
    world.leave("c03")
    world.run(0.15)
    assert "c03" in world.alive
    hops = [host.next_hops for host in world.hosts.values() if host.name != "c03"]
    assert [hop for each in hops for hop in each.values() if hop == "c03"] == []


def test_many_subscriptions_cost_others_no_more_than_their_patterns(world: World) -> None:
    patterns = [f"flights.{at}.#" for at in range(10)]
    before = world.network.kinds["interest-delta"]
    for at in range(100_000):
        world.hosts["c03"].subscriptions[patterns[at % 10]] += 1
        mesh = world.alive["c03"]
        if at < 10:
            world.hosts["c03"].subscriptions[patterns[at]] -= 1
            world.subscribe("c03", patterns[at])
        else:
            mesh.interests.local.subscribe("", patterns[at % 10], 0.0)
    world.run(2)
    check_all(world)
    for host in world.hosts.values():
        if host.name != "c03":
            assert len(host.interests["c03"]) == 11  # and news
    ways = 2 * len(world.wires)
    assert world.network.kinds["interest-delta"] - before <= 2 * ways  # the first, then the rest


def test_peace_is_only_hellos(world: World) -> None:
    run_quietly(world, 3)
    assert set(sent_in(world, 3)) == {"hello"}
