"""Neighbours: who is one, and who is gone and when."""

from __future__ import annotations

from typing import Any

import pytest
from meshes import Lab, Stranger

from cogwork.router.mesh.bounds import NEIGHBOURS_MAX
from cogwork.router.mesh.effects import (
    Close,
    Hosts,
    NeighbourDown,
    NeighbourUp,
    PathsChanged,
    Reason,
    Report,
    Send,
)
from cogwork.router.mesh.link import LINK, Event, State
from cogwork.router.mesh.mesh import Mesh
from cogwork.router.mesh.messages import Figures, Hello


def test_two_containers_that_are_linked_are_neighbours_at_once() -> None:
    lab = Lab("a", "b")
    lab.link("a", "b")
    lab.run(0.2)
    for name, other in (("a", "b"), ("b", "a")):
        assert lab.stations[name].of(NeighbourUp) == [NeighbourUp(other, 1)]
        assert lab[name].next_hop(other) == other
        assert lab.stations[name].of(Report) == []
    lab.run(30)
    assert lab.stations["a"].of(Close) == []


def test_hearing_is_not_enough_a_neighbour_must_hear_us_too() -> None:
    lab = Lab("a")
    stranger = Stranger(lab, "a")
    stranger.hello(heard=0)
    assert lab.stations["a"].of(NeighbourUp) == []
    stranger.hello(heard=99)
    assert lab.stations["a"].of(NeighbourUp) == []
    stranger.hello()
    assert lab.stations["a"].of(NeighbourUp) == [NeighbourUp("z", 1)]
    stranger.hello(heard=0)
    assert lab.stations["a"].of(NeighbourDown) == [NeighbourDown("z")]


def test_a_neighbour_that_is_silent_for_three_hellos_is_gone() -> None:
    lab = Lab("a", "b")
    wire = lab.link("a", "b")
    lab.run(1)
    wire.is_silent = True
    lab.run(2)
    assert lab.stations["a"].of(Close) == []
    lab.run(2)
    (close,) = lab.stations["a"].of(Close)
    assert close.reason is Reason.DEAD
    assert "no hello: container b was silent for 3." in lab.stations["a"].said[0]
    assert lab.stations["a"].of(NeighbourDown) == [NeighbourDown("b")]
    assert lab["a"].next_hop("b") is None
    assert lab.stations["a"].of(PathsChanged)[-1].next_hops == {"b": None}


def test_a_connection_on_which_nothing_ever_comes_is_given_up() -> None:
    lab = Lab("a")
    stranger = Stranger(lab, "a")
    lab.run(3.1)
    assert stranger.closed is not None
    assert stranger.closed.description.startswith("the other end was silent for 3.0")


def test_the_interval_of_a_hello_decides_when_its_sender_is_missed() -> None:
    lab = Lab("a")
    slow = Stranger(lab, "a")
    slow.hello(interval_ms=5000)
    lab.run(14)
    assert slow.closed is None
    lab.run(1.5)
    assert slow.closed is not None


def test_a_container_that_restarts_is_a_neighbour_again() -> None:
    lab = Lab("a", "b")
    lab.link("a", "b")
    lab.run(1)
    old = lab.stations["b"]
    lab.start("b", 2)  # nobody told `a` that the first one died
    lab.link("b", "a")
    lab.run(1)
    assert [each.reason for each in lab.stations["a"].of(Close)] == [Reason.RESTARTED]
    assert lab["a"].database.incarnation("b") == 2
    assert lab["a"].next_hop("b") == "b"
    assert lab["b"].next_hop("a") == "a"
    assert old.mesh.own.incarnation == 1


def test_a_restart_on_the_same_connection_is_understood() -> None:
    lab = Lab("a")
    stranger = Stranger(lab, "a")
    stranger.hello()
    stranger.incarnation = 2
    stranger.hello(heard=0)
    assert stranger.last(Hello).heard == 2
    stranger.incarnation = 1
    stranger.hello(heard=0)  # an old hello that was under way
    assert lab["a"].neighbours.links[1].incarnation == 2


@pytest.mark.parametrize("jump_s", [3600.0, -3600.0])
def test_a_clock_that_jumps_costs_no_neighbour(jump_s: float) -> None:
    lab = Lab("a", "b", "c")
    lab.link("a", "b")
    lab.link("b", "c")
    lab.do("c", Mesh.subscribe, "", "x.#")
    lab.run(2)
    lab.stations["b"].ahead_s += jump_s
    lab.stations["c"].ahead_s -= jump_s
    lab.run(20)
    for name in "abc":
        assert lab.stations[name].of(Close) == []
        assert set(lab[name].database.records) == {"a", "b", "c"}
        assert len(lab.stations[name].of(NeighbourDown)) == 0
    assert lab.interested("a", (0, "", "x.#")) == {"c"}
    lab.do("c", Mesh.unsubscribe, "", "x.#")
    lab.run(1)
    assert lab.interested("a", (0, "", "x.#")) == set()


def test_a_container_that_was_stopped_for_long_takes_nobody_for_dead() -> None:
    lab = Lab("a", "b")
    lab.link("a", "b")
    lab.run(2)
    lab.now_s += 500
    lab.do("a", Mesh.tick)
    assert lab.stations["a"].of(Close) == []
    assert set(lab["a"].database.records) == {"a", "b"}


def test_between_two_events_a_container_may_sleep_until_it_wakes() -> None:
    lab = Lab("a", "b")
    lab.link("a", "b")
    lab.run(5)
    for station in lab.stations.values():
        assert lab.now_s <= station.mesh.wake_s <= lab.now_s + 1


def test_nothing_keeps_a_container_awake() -> None:
    lab = Lab("a", "b")
    lab.link("a", "b")
    lab.run(5)
    station = lab.stations["a"]
    count = len(station.of(Send))
    for _ in range(100):
        station.effects += station.mesh.tick(lab.now_s)
    assert len(station.of(Send)) == count


def test_one_container_has_so_many_neighbours_and_no_more() -> None:
    lab = Lab("a")
    for at in range(NEIGHBOURS_MAX + 1):
        last = Stranger(lab, "a", own_id=f"n{at}")
        last.hello()
    assert last.closed is not None
    assert last.closed.reason is Reason.FULL
    assert last.closed.description == "container a has 256 neighbours, which is the limit"
    assert len(lab["a"].neighbours.active) == NEIGHBOURS_MAX


def test_hellos_carry_figures_and_hints_tell_where_clients_may_go() -> None:
    lab = Lab("a", "b")
    lab["a"].set_figures(Figures(connections=7, messages=8, memory_bytes=9, queues=10))
    lab.link("a", "b")
    lab.run(2)
    link = lab["b"].neighbours.active["a"]
    assert link.figures == Figures(7, 8, 9, 10, peers=1)
    lab.do("a", Mesh.set_hosts, ("a.example:5672",))
    lab.run(0.1)
    assert lab.stations["b"].of(Hosts) == [Hosts("a", ("a.example:5672",))]
    lab.start("c")
    lab.link("a", "c")
    lab.run(0.5)
    assert lab.stations["c"].of(Hosts)[-1] == Hosts("a", ("a.example:5672",))


def test_every_state_of_a_link_has_a_way_out() -> None:
    for state in State:
        if state is not State.DOWN:
            assert LINK[state, Event.CLOSED] is State.DOWN
    reached = {State.DOWN}
    for _ in State:
        reached |= {after for (before, _), after in LINK.items() if before in reached}
    assert reached == set(State)


def seen(lab: Lab, name: str) -> dict[str, Any]:
    """Return what a container shows of its mesh."""
    return lab[name].snapshot(lab.now_s)


def test_the_snapshot_tells_what_people_see() -> None:
    lab = Lab("a", "b")
    lab.link("a", "b", cost=3)
    lab.do("b", Mesh.subscribe, "", "x")
    lab.run(2)
    view = seen(lab, "a")
    (link,) = view["links"]
    assert (link["neighbour"], link["state"], link["in_use"], link["cost"]) == (
        "b",
        "two-way",
        True,
        3,
    )
    other = next(each for each in view["containers"] if each["id"] == "b")
    assert (other["next_hop"], other["cost"], other["unreachable_s"]) == ("b", 3, None)
    assert other["interests"] == {
        "topic": 1,
        "anycast": 0,
        "queue": 0,
        "partitions": 0,
        "owner": 0,
        "disk": 0,
        "claim": 0,
    }
    lab.cut(lab.wires[0])
    lab.run(5)
    view = seen(lab, "a")
    other = next(each for each in view["containers"] if each["id"] == "b")
    assert other["next_hop"] is None
    assert 4.5 < other["unreachable_s"] < 5.5
