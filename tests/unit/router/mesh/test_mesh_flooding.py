"""How everybody gets to hear who is whose neighbour: sent once, and again until it has arrived."""

from __future__ import annotations

import pytest
from adverts import advert, sent
from meshes import Lab, Stranger

from cogwork.router.mesh import bounds
from cogwork.router.mesh.adjacency import ACKNOWLEDGEMENTS_MAX, Adjacency
from cogwork.router.mesh.bounds import Timers
from cogwork.router.mesh.link import Link
from cogwork.router.mesh.mesh import Mesh
from cogwork.router.mesh.messages import Acknowledgement, Advertisement, Summary, Version
from cogwork.router.mesh.meter import Meter


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
