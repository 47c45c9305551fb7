"""The ways that follow from who is whose neighbour, and what becomes of them."""

from __future__ import annotations

from typing import Any

import pytest
from adverts import advert, never
from meshes import Lab

from cogwork.router.mesh.bounds import Timers
from cogwork.router.mesh.database import Database
from cogwork.router.mesh.effects import PathsChanged
from cogwork.router.mesh.mesh import Mesh
from cogwork.router.mesh.messages import Advertisement
from cogwork.router.mesh.paths import graph_of, shortest_paths
from cogwork.router.mesh.routes import Routes


def fields_of(origin: str, sequence: int) -> dict[str, Any]:
    return {"origin": origin, "incarnation": 1, "sequence": sequence}


def test_a_link_counts_where_both_ends_tell_of_it() -> None:
    graph = graph_of(
        [("a", (("a", 1), ("b", 2), ("ghost", 1))), ("b", (("a", 5), ("c", 1))), ("c", ())]
    )
    assert graph == {"a": {"b": 2}, "b": {"a": 5}, "c": {}}


def test_of_equal_paths_everybody_takes_the_same() -> None:
    graph = {
        "s": {"x": 1, "b": 1},
        "x": {"s": 1, "t": 1},
        "b": {"s": 1, "t": 1},
        "t": {"x": 1, "b": 1, "u": 1},
        "u": {"t": 1},
    }
    tree = shortest_paths(graph, "s")
    assert tree.parents == {"x": "s", "b": "s", "t": "b", "u": "t"}
    assert tree.costs == {"s": 0, "x": 1, "b": 1, "t": 2, "u": 3}
    assert tree.next_hops() == {"x": "x", "b": "b", "t": "b", "u": "b"}
    assert [tree.path_to(each) for each in "sxu"] == [("s",), ("s", "x"), ("s", "b", "t", "u")]
    assert tree.path_to("nowhere") == ()


def test_of_equal_paths_it_does_not_matter_which_is_found_first() -> None:
    for far, near in (("b", "x"), ("x", "b")):
        graph = {"s": {near: 1, far: 3}, near: {"t": 3}, far: {"t": 1}, "t": {}}
        assert shortest_paths(graph, "s").parents["t"] == "b"


def square() -> Lab:
    """Return a-b-d and a-c-d, where the way over b costs 2 and that over c 4."""
    lab = Lab("a", "b", "c", "d")
    for one, other, cost in (("a", "b", 1), ("b", "d", 1), ("a", "c", 2), ("c", "d", 2)):
        lab.link(one, other, cost=cost)
    lab.run(1)
    return lab


def test_next_hops_follow_the_cheapest_way() -> None:
    lab = square()
    assert [lab["a"].next_hop(each) for each in "bcd"] == ["b", "c", "b"]
    assert lab["a"].routes.tree.costs == {"a": 0, "b": 1, "c": 2, "d": 2}


def test_the_cost_of_one_end_holds_for_both_where_the_other_has_no_opinion() -> None:
    lab = square()
    assert lab["d"].routes.graph["d"] == {"b": 1, "c": 2}
    assert lab["c"].routes.graph["d"] == {"b": 1, "c": 2}


def test_the_other_end_follows_when_a_cost_changes() -> None:
    lab = Lab("a", "b")
    lab.link("a", "b")
    lab.run(1)
    lab.do("a", Mesh.set_cost, 1, 7)
    lab.run(0.5)
    assert lab["a"].routes.graph == lab["b"].routes.graph == {"a": {"b": 7}, "b": {"a": 7}}
    lab.do("b", Mesh.set_cost, 1, 3)
    lab.run(1.5)
    assert lab["a"].routes.graph == {"a": {"b": 7}, "b": {"a": 3}}


def test_a_change_of_cost_takes_another_way() -> None:
    lab = square()
    lab.stations["a"].effects.clear()
    lab.do("b", Mesh.set_cost, lab.stations["b"].active["d"], 9)
    lab.do("d", Mesh.set_cost, lab.stations["d"].active["b"], 9)
    lab.run(1)
    assert lab["a"].next_hop("d") == "c"
    assert {"d": "c"} in [each.next_hops for each in lab.stations["a"].of(PathsChanged)]
    assert lab["a"].routes.tree.costs["d"] == 4


def test_a_change_of_cost_is_told_only_where_a_way_from_here_has_it() -> None:
    lab = square()
    for station in lab.stations.values():
        station.effects.clear()
    lab.do("c", Mesh.set_cost, lab.stations["c"].active["d"], 3)
    lab.run(1)
    assert lab["b"].routes.graph["c"] == {"a": 2, "d": 3}
    assert lab.stations["b"].of(PathsChanged) == []
    told = lab.stations["c"].of(PathsChanged)
    assert told
    assert not any(each.next_hops for each in told)


@pytest.mark.parametrize(
    ("path", "is_best"), [("abd", True), ("acd", False), ("ab", True), ("abcd", False)]
)
def test_a_path_is_the_best_while_its_links_are_there_and_none_is_cheaper(
    path: str, is_best: bool
) -> None:
    lab = square()
    assert lab["a"].routes.is_best(tuple(path)) == is_best
    lab.kill("b")
    lab.run(0.5)
    assert lab["a"].routes.is_best(tuple(path)) == (path == "acd")


def test_ways_tell_whether_any_of_them_has_changed() -> None:
    database = Database(max_age_s=180)
    for each in (advert("a", 1, "b"), advert("b", 1, "a", "c"), advert("c", 1, "b")):
        database.offer(each, 0, never)
    routes = Routes("a", database)
    assert routes.compute(0) == {"b": "b", "c": "b"}
    assert routes.compute(0) is None
    back = {**fields_of("c", 2), "neighbours": (("b", 9),)}
    database.offer(Advertisement(**back), 0, never)
    assert routes.compute(0) is None
    forth = {**fields_of("b", 2), "neighbours": (("a", 1), ("c", 9))}
    database.offer(Advertisement(**forth), 0, never)
    assert routes.compute(0) == {}
    database.offer(advert("c", 3), 0, never)
    assert routes.compute(5) == {"c": None}
    assert routes.unreachable_since_s == {"c": 5}
    database.offer(advert("b", 3), 0, never)
    assert routes.compute(9) == {"b": None}
    assert routes.unreachable_since_s == {"b": 9, "c": 5}


def way(lab: Lab, ingress: str, egress: str) -> list[str]:
    """Pass a tunnel on as containers do; return whom it comes to."""
    found = [ingress]
    while found[-1] != egress:
        hop = lab[found[-1]].next_hop(egress)
        assert hop in lab[found[-1]].neighbours.active
        assert hop not in found
        found.append(hop)
    return found


@pytest.mark.parametrize("expected", ["abd", "ac", "bac", "bd", "cd", "dba", "db", "ca"])
def test_a_tunnel_takes_the_cheapest_way(expected: str) -> None:
    assert way(square(), expected[0], expected[-1]) == list(expected)


def test_nobody_knows_a_way_to_nobody() -> None:
    assert square()["a"].next_hop("nobody") is None


def test_a_container_that_dies_is_gone_around() -> None:
    lab = square()
    lab.kill("b")
    lab.run(0.2)
    assert lab["a"].next_hop("d") == "c"
    assert lab["a"].next_hop("b") is None
    assert way(lab, "a", "d") == ["a", "c", "d"]
    assert set(lab["a"].routes.unreachable_since_s) == {"b"}


def test_how_long_a_container_is_lost_leaves_out_the_time_that_the_asker_was_stopped() -> None:
    lab = square()
    lab.kill("b")
    lab.run(2)
    asker = lab["a"]
    assert asker.lost_for(1.5, lab.now_s) == {"b"}
    assert asker.lost_for(2.5, lab.now_s) == set()
    after_s = lab.now_s + 60
    asker.tick(after_s)
    assert asker.lost_for(10, after_s) == set(), "it has not looked for sixty seconds"


def test_a_container_is_known_for_as_long_as_its_advertisement_is() -> None:
    lab = Lab("a", "b")
    lab.run(3)
    assert lab["a"].known_for_s("b", lab.now_s) == 0
    lab.link("a", "b")
    lab.run(3)
    assert 2 < lab["a"].known_for_s("b", lab.now_s) <= 3


def test_the_dead_are_forgotten_and_the_living_never() -> None:
    timers = Timers(refresh_s=2, max_age_s=6)
    lab = Lab("a", "b", "c", timers=timers)
    lab.link("a", "b")
    lab.link("b", "c")
    lab.do("c", Mesh.subscribe, "", "x")
    lab.run(1)
    lab.kill("c")
    lab.run(5)
    assert "c" in lab["a"].database.records
    lab.run(4)
    for name in "ab":
        assert set(lab[name].database.records) == {"a", "b"}
        assert lab.interested(name, (0, "", "x")) == set()
    lab.kill("b")
    lab.run(10)
    assert set(lab["a"].database.records) == {"a"}


def test_one_that_leaves_is_not_gone_through_any_more() -> None:
    lab = square()
    lab.do("b", Mesh.leave)
    lab.run(0.3)
    assert lab["a"].next_hop("d") == "c"
    assert lab["a"].next_hop("b") is None
    assert lab["b"].neighbours.active  # the connections are still there
    lab.do("b", Mesh.set_cost, lab.stations["b"].active["a"], 7)
    lab.run(0.5)
    assert lab["a"].next_hop("b") is None
    lab.kill("b")
    lab.run(0.3)
    assert lab["a"].next_hop("d") == "c"
