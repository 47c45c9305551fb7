"""Who is whose neighbour, told to everybody, and the ways that follow from it."""

from __future__ import annotations

from typing import Any, TypeVar

import pytest
from meshes import Lab, Stranger

from cogwork.router.mesh import bounds
from cogwork.router.mesh.adjacency import ACKNOWLEDGEMENTS_MAX, Adjacency
from cogwork.router.mesh.bounds import CONTAINERS_MAX, ROOM_S, Timers
from cogwork.router.mesh.database import Database, Verdict, supersedes
from cogwork.router.mesh.effects import PathsChanged, Send
from cogwork.router.mesh.link import Link
from cogwork.router.mesh.mesh import Mesh
from cogwork.router.mesh.messages import (
    Acknowledgement,
    Advertisement,
    Summary,
    Version,
)
from cogwork.router.mesh.meter import Meter
from cogwork.router.mesh.paths import graph_of, shortest_paths
from cogwork.router.mesh.routes import Routes
from cogwork.router.mesh.wire import decode


def advert(origin: str, sequence: int = 1, *neighbours: str, **changes: int) -> Advertisement:
    """Returns an advertisement with links of cost 1."""
    fields = {"incarnation": 1, "sequence": sequence, "age_s": 0, **changes}
    links = tuple((each, 1) for each in sorted(neighbours))
    return Advertisement(origin=origin, neighbours=links, **fields)


def fields_of(origin: str, sequence: int) -> dict[str, Any]:
    return {"origin": origin, "incarnation": 1, "sequence": sequence}


def never(_container: str) -> bool:
    return False


T = TypeVar("T")


def sent(lab: Lab, name: str, kind: type[T]) -> list[tuple[int, T]]:
    """Returns what a container has sent of one kind, with the links."""
    found = ((each.link, decode(each.data)) for each in lab.stations[name].of(Send))
    return [(link, message) for link, message in found if isinstance(message, kind)]


def test_newer_is_by_incarnation_then_sequence_then_content() -> None:
    ordered = [
        advert("x", 1),
        advert("x", 1, "a"),
        advert("x", 2),
        advert("x", 1, incarnation=2),
    ]
    for at, one in enumerate(ordered):
        for after, other in enumerate(ordered):
            assert supersedes(one, other) == (at > after)


def test_sequences_wrap() -> None:
    assert supersedes(advert("x", 1), advert("x", 2**32 - 1))
    assert not supersedes(advert("x", 2**32 - 1), advert("x", 1))


def test_what_is_offered_is_taken_where_it_is_news() -> None:
    database = Database(max_age_s=180)
    for offered, verdict in [
        (advert("x", 5, "a"), Verdict.NEW),
        (advert("x", 5, "a"), Verdict.KNOWN),
        (advert("x", 4), Verdict.OLD),
        (advert("x", 6, "a"), Verdict.REPEATED),
        (advert("x", 7), Verdict.NEW),
        (advert("x", 1, incarnation=2), Verdict.NEW),
        (advert("x", 9), Verdict.OLD),
        (advert("x", 1, incarnation=2**62), Verdict.REFUSED),
        (advert("y", 1, age_s=180), Verdict.OLD),
    ]:
        assert database.offer(offered, 0, never) is verdict
    assert set(database.records) == {"x"}


def test_what_is_not_repeated_ages_from_when_its_origin_sent_it() -> None:
    database = Database(max_age_s=180)
    database.offer(advert("x", age_s=100), 1000, never)
    database.offer(advert("y"), 1000, never)
    assert database.records["x"].aged(1010).age_s == 110
    assert database.expired(1079) == []
    assert database.expired(1080) == ["x"]


def test_a_full_database_makes_room_only_of_what_cannot_be_reached_for_some_time() -> None:
    database = Database(max_age_s=180)
    for at in range(CONTAINERS_MAX):
        database.offer(advert(f"x{at}"), at / 1000, never)
    assert database.offer(advert("y"), ROOM_S - 1, never) is Verdict.REFUSED
    assert database.offer(advert("y"), ROOM_S + 1, lambda _: True) is Verdict.REFUSED
    assert database.offer(advert("y"), ROOM_S + 1, never) is Verdict.NEW
    assert database.removed == ["x0"]
    assert len(database.records) == CONTAINERS_MAX


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
    """Returns a-b-d and a-c-d, where the way over b costs 2 and that over c 4."""
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
    """Passes a tunnel on as containers do; returns whom it comes to."""
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


def test_a_link_that_flaps_is_advertised_ever_more_rarely() -> None:
    lab = Lab("a", "b")
    lab.link("a", "b")
    lab.run(2)
    lab.stations["a"].effects.clear()
    for at in range(200):
        lab.do("a", Mesh.set_cost, 1, 1 + at % 2)
        lab.run(0.05)
    assert 10 <= len(sent(lab, "a", Advertisement)) <= 20
    lab.run(2)
    assert lab["b"].routes.graph["a"] == {"b": 2}


def test_over_a_ring_each_change_passes_a_link_twice_at_most() -> None:
    lab = Lab(*"abcdef")
    for one, other in zip("abcdef", "bcdefa", strict=True):
        lab.link(one, other)
    lab.run(2)
    for station in lab.stations.values():
        station.effects.clear()
    lab.do("a", Mesh.set_cost, 1, 7)
    lab.run(2)
    own = sum(
        message.origin == "a" for name in "abcdef" for _, message in sent(lab, name, Advertisement)
    )
    assert 5 <= own <= 12
    assert all(lab[name].routes.graph["a"]["b"] == 7 for name in "abcdef")


def test_what_is_not_acknowledged_is_sent_again_with_growing_pauses() -> None:
    lab = Lab("a")
    stranger = Stranger(lab, "a")
    stranger.hello()
    stranger.say(Acknowledgement(summary=stranger.last(Summary).number))
    stranger.heard.clear()
    for _ in range(10):
        lab.run(1)
        stranger.hello()
    own = [each for each in stranger.all(Advertisement) if each.origin == "a"]
    assert len(own) == 5  # at once, and 0.5, 1.5, 3.5 and 7.5 s later
    version = Version("a", own[-1].incarnation, own[-1].sequence)
    stranger.say(Acknowledgement(advertisements=(version,)))
    stranger.heard.clear()
    for _ in range(10):
        lab.run(1)
        stranger.hello()
    assert stranger.all(Advertisement) == []


def test_many_acknowledgements_do_not_wait_for_more() -> None:
    lab = Lab("a")
    stranger = Stranger(lab, "a")
    stranger.hello()
    for at in range(ACKNOWLEDGEMENTS_MAX - 1):
        stranger.say(advert(f"x{at}"))
    assert stranger.all(Acknowledgement) == []
    stranger.say(advert("y"))
    assert len(stranger.last(Acknowledgement).advertisements) == ACKNOWLEDGEMENTS_MAX


def test_what_may_not_be_sent_now_is_due_a_little_later() -> None:
    timers = Timers(retransmit_s=0.5, retransmit_max_s=4)
    adjacency = Adjacency(Link(1, is_dialled=True, cost=0, interval_s=1, now_s=0))
    retry = adjacency.schedule(None, timers, 10)
    assert retry.due_s == adjacency.due_s == 10.5
    assert adjacency.schedule(retry, timers, 11).due_s == 12
    adjacency.spend(int(bounds.PACE_BURST + 10 * bounds.PACE_PER_S) * 1024)
    for now_s in (12, 12.1, 12.2):
        assert adjacency.schedule(retry, timers, now_s).due_s == now_s + 0.1
    assert adjacency.schedule(None, timers, 12.2).due_s == pytest.approx(12.3)
    adjacency.pace = Meter(1, 1, 13)
    assert adjacency.schedule(retry, timers, 13).due_s == 15  # the pauses go on where they were


def test_what_a_neighbour_sends_itself_is_not_sent_to_it_again() -> None:
    lab = Lab("a")
    first, second = Stranger(lab, "a", "y"), Stranger(lab, "a", "z")
    for stranger in (first, second):
        stranger.hello()
    first.say(advert("x"))
    assert [each.origin for each in second.all(Advertisement)][-1] == "x"
    second.say(advert("x"))
    second.heard.clear()
    for _ in range(5):
        lab.run(1)
        second.hello()
    assert "x" not in {each.origin for each in second.all(Advertisement)}


def test_what_comes_on_a_link_that_is_not_used_does_not_count() -> None:
    lab = Lab("a")
    first, second = Stranger(lab, "a", "z"), Stranger(lab, "a", "z")
    first.hello(connection=1)
    second.hello(connection=2)
    assert lab.stations["a"].active == {"z": second.number}
    first.say(Acknowledgement(summary=second.last(Summary).number))
    first.say(advert("x"))
    lab.run(0.6)
    assert len(second.all(Summary)) == 2
    assert "x" not in lab["a"].database.records


def test_a_summary_is_repeated_until_it_is_acknowledged() -> None:
    lab = Lab("a")
    stranger = Stranger(lab, "a")
    stranger.hello()
    lab.run(1)
    assert len(stranger.all(Summary)) == 2
    digest = lab["a"].neighbours.digest
    stranger.say(Acknowledgement(summary=stranger.last(Summary).number))
    stranger.heard.clear()
    for _ in range(5):
        stranger.hello(digest=digest)
        lab.run(1)
    assert stranger.all(Summary) == []


def test_one_who_lags_behind_is_told_and_one_who_knows_more_is_asked_by_a_summary() -> None:
    lab = Lab("a")
    stranger = Stranger(lab, "a")
    stranger.hello()
    stranger.say(advert("x", 7, "z"))
    lab.run(0.1)
    (version,) = stranger.last(Acknowledgement).advertisements
    assert (version.origin, version.sequence) == ("x", 7)
    stranger.heard.clear()
    stranger.say(advert("x", 5))
    assert [each.sequence for each in stranger.all(Advertisement)] == [7]
    stranger.say(Summary(number=3, versions=(Version("a", 1, 1), Version("x", 1, 6))))
    lab.run(0.1)
    assert stranger.last(Acknowledgement).summary == 3
    assert "x" in {each.origin for each in stranger.all(Advertisement)}


def test_summaries_that_follow_each_other_too_fast_are_passed_over() -> None:
    lab = Lab("a")
    stranger = Stranger(lab, "a")
    stranger.hello()
    stranger.heard.clear()
    for number in range(1, 50):
        stranger.say(Summary(number=number))
    assert len(stranger.all(Advertisement)) == 1
    lab.run(0.5)
    stranger.say(Summary(number=50))
    lab.run(0.1)
    assert stranger.last(Acknowledgement).summary == 50


def test_one_who_knows_the_same_is_told_nothing() -> None:
    lab = Lab("a")
    stranger = Stranger(lab, "a")
    stranger.hello()
    lab.run(0.5)
    own = stranger.last(Summary).versions
    known = lab["a"]._version("a")
    assert [each.origin for each in own] == ["a"]
    stranger.say(Acknowledgement(advertisements=(known,)))
    stranger.heard.clear()
    stranger.say(Summary(number=1, versions=(known,)))
    assert stranger.all(Advertisement) == []
    lab.run(0.3)
    stranger.say(Summary(number=2, versions=(known._replace(content=known.content ^ 1),)))
    assert len(stranger.all(Advertisement)) == 1


def test_a_container_never_forgets_itself() -> None:
    lab = Lab("a", timers=Timers(refresh_s=9, max_age_s=4))
    lab.run(8, step_s=0.1)
    assert set(lab["a"].database.records) == {"a"}


def test_neighbours_whose_hellos_disagree_compare_all_they_know() -> None:
    lab = Lab("a")
    stranger = Stranger(lab, "a")
    stranger.hello()
    stranger.say(Acknowledgement(summary=stranger.last(Summary).number))
    stranger.heard.clear()
    for _ in range(6):
        stranger.hello(digest=12345)
        lab.run(1)
    assert stranger.all(Summary)
