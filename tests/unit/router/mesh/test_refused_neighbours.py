"""Neighbours that are refused, and what both ends are told."""

from __future__ import annotations

from typing import Any

import pytest
from meshes import Lab, Stranger

from cogwork.router.mesh.effects import (
    Close,
    Hosts,
    NeighbourDown,
    NeighbourUp,
    Reason,
    Report,
    Send,
    Severity,
)
from cogwork.router.mesh.mesh import Mesh
from cogwork.router.mesh.messages import RedirectHint


def test_a_link_to_oneself_is_refused() -> None:
    lab = Lab("a")
    lab.link("a", "a")
    lab.run(0.1)
    station = lab.stations["a"]
    assert {close.reason for close in station.of(Close)} == {Reason.SELF}
    assert station.said == ["link to itself: container a is linked to itself"]
    assert station.of(Report)[0].severity is Severity.ERROR
    assert station.of(NeighbourUp) == []
    assert lab["a"].neighbours.links == {}


def test_two_containers_with_one_id_are_refused_and_told_so_at_both_ends() -> None:
    lab = Lab()
    lab.start("one", 5, as_name="a")
    lab.start("two", 7, as_name="a")
    lab.link("one", "two")
    lab.run(0.1)
    for name, own, other in (("one", 5, 7), ("two", 7, 5)):
        (close,) = lab.stations[name].of(Close)
        assert close.reason is Reason.DUPLICATE_ID
        assert close.description == (
            f"two containers have the id a: give each its own (incarnations {own} and {other})"
        )
        assert lab.stations[name].said == [f"duplicate container id: {close.description}"]


@pytest.mark.parametrize("first", ["one", "two"])
def test_of_two_with_one_id_a_neighbour_keeps_the_later_one_and_tells_the_other(first: str) -> None:
    lab = Lab("b")
    lab.start("one", 5, as_name="a")
    lab.start("two", 7, as_name="a")
    for name in sorted(["one", "two"], key=lambda name: name != first):
        lab.link(name, "b")
        lab.run(0.5)
    assert [link.incarnation for link in lab["b"].neighbours.active.values()] == [7]
    lab.link("one", "b")
    lab.run(0.5)
    text = "two containers have the id a: a later one is linked with b already"
    assert lab.stations["b"].of(Close)[-1].description == text
    assert f"duplicate container id: {text}" in lab.stations["b"].said
    assert lab["two"].next_hop("b") == "b"


def test_two_containers_with_one_id_that_never_meet_hear_of_each_other() -> None:
    lab = Lab("b", "c")
    lab.start("one", 5, as_name="a")
    lab.start("two", 7, as_name="a")
    lab.link("one", "b")
    lab.link("two", "c")
    lab.run(0.5)
    lab.link("b", "c")
    lab.run(8)
    for name, neighbour in (("one", "b"), ("two", "c")):
        assert [text for text in lab.stations[name].said if "two containers have the id a" in text]
        assert f"through container {neighbour}" in lab.stations[name].said[0]
    assert len(lab.stations["one"].said) <= 2  # it is not said again and again
    assert lab["b"].next_hop("c") == "c"


def test_another_protocol_version_is_refused_at_both_ends() -> None:
    lab = Lab("a")
    lab.start("b", version=2)
    lab.link("a", "b")
    lab.run(0.1)
    assert lab.stations["a"].said == [
        "protocol version mismatch: container b speaks version 2 of the mesh protocol; "
        "a speaks version 1"
    ]
    assert lab.stations["b"].said == [
        "protocol version mismatch: container a speaks version 1 of the mesh protocol; "
        "b speaks version 2"
    ]
    assert [each.reason for each in lab.stations["b"].of(Close)] == [Reason.VERSION]


def test_other_virtual_hosts_are_refused_at_both_ends() -> None:
    lab = Lab()
    lab.start("a", virtual_hosts=frozenset({"red", "blue"}))
    lab.start("b", virtual_hosts=frozenset({"red", "green"}))
    lab.link("a", "b")
    lab.run(0.1)
    assert lab.stations["a"].said == [
        "virtual host mismatch: container b lacks 'blue', container a lacks 'green': "
        "all containers of a mesh need the same virtual hosts"
    ]
    assert [each.reason for each in lab.stations["b"].of(Close)] == [Reason.VIRTUAL_HOSTS]


def test_another_cluster_is_refused_at_both_ends_with_both_names() -> None:
    lab = Lab()
    lab.start("a", cluster="1f")
    lab.start("b", cluster="2e")
    lab.link("a", "b")
    lab.run(0.1)
    assert lab.stations["a"].said == [
        "another cluster: container b is in the cluster 2e, and a in 1f: containers of different "
        "clusters are not linked; give one of them an empty data directory to have it join the "
        "other's cluster"
    ]
    assert [each.reason for each in lab.stations["b"].of(Close)] == [Reason.CLUSTER]


def test_who_is_in_no_cluster_is_linked_until_it_says_that_it_is_in_another() -> None:
    lab = Lab()
    lab.start("a", cluster="1f")
    lab.start("b")
    lab.link("a", "b")
    lab.run(2)
    assert lab.stations["a"].mesh.next_hop("b") == "b"
    lab.stations["b"].mesh.own.cluster = "2e"
    lab.run(2)
    assert [each.reason for each in lab.stations["a"].of(Close)] == [Reason.CLUSTER]
    assert lab.stations["a"].mesh.next_hop("b") is None


def test_a_refusal_quotes_a_few_words_of_a_stranger_and_no_more() -> None:
    lab = Lab("a")
    stranger = Stranger(lab, "a")
    stranger.hello(virtual_hosts=tuple(f"{at:0250}" for at in range(256)))
    assert stranger.closed is not None
    assert stranger.closed.description.count("0000") < 100
    assert "and 251 more" in stranger.closed.description
    assert len(stranger.closed.description) < 500


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"interval_ms": 9}, "says hello every 9 ms; 10 to 60000 are allowed"),
        ({"interval_ms": 60_001}, "says hello every 60001 ms; 10 to 60000 are allowed"),
    ],
)
def test_a_hello_without_manners_is_refused(changes: dict[str, object], text: str) -> None:
    lab = Lab("a")
    stranger = Stranger(lab, "a")
    stranger.hello(**changes)
    assert stranger.closed is not None
    assert stranger.closed.reason is Reason.MALFORMED
    assert text in stranger.closed.description


def test_a_neighbour_that_changes_its_name_is_refused() -> None:
    lab = Lab("a")
    stranger = Stranger(lab, "a")
    stranger.hello()
    stranger.hello(id="y")
    assert stranger.closed is not None
    assert stranger.closed.description == "container z now calls itself y on the same link"
    assert lab.stations["a"].of(NeighbourDown) == [NeighbourDown("z")]


def test_bytes_that_are_no_message_end_a_link_and_nothing_else() -> None:
    lab = Lab("a", "b")
    lab.link("a", "b")
    lab.run(0.5)
    stranger = Stranger(lab, "a")
    stranger.say(b"\xff\xff")
    assert stranger.closed is not None
    assert stranger.closed.reason is Reason.MALFORMED
    assert "the other end sends what is no message" in stranger.closed.description
    assert lab["a"].next_hop("b") == "b"


def test_the_same_complaint_is_logged_once_a_minute_at_most() -> None:
    lab = Lab("a")
    for _ in range(20):
        Stranger(lab, "a").hello(version=9)
        lab.run(1)
    assert len(lab.stations["a"].said) == 1
    lab.run(60)
    Stranger(lab, "a").hello(version=9)
    assert len(lab.stations["a"].said) == 2


def test_what_is_not_a_hello_counts_for_nothing_before_the_link_is_in_use() -> None:
    lab = Lab("a")
    stranger = Stranger(lab, "a")
    stranger.hello(heard=0)
    stranger.say(RedirectHint(hosts=("h",)))
    assert lab.stations["a"].of(Hosts) == []


def test_messages_on_a_link_that_is_refused_or_unknown_do_nothing() -> None:
    lab = Lab("a")
    assert lab["a"].on_message(99, b"\xff", lab.now_s) == []
    assert [e for e in lab["a"].on_closed(99, lab.now_s) if not isinstance(e, Send)] == []


def test_one_who_says_much_but_no_hello_is_given_up() -> None:
    lab = Lab("a")
    stranger = Stranger(lab, "a")
    for _ in range(40):
        stranger.say(RedirectHint())
        lab.run(0.1)
    assert stranger.closed is not None
    assert stranger.closed.reason is Reason.DEAD


def test_one_who_hears_us_and_forgets_it_again_and_again_is_refused() -> None:
    lab = Lab("a")
    stranger = Stranger(lab, "a")
    for _ in range(100):
        stranger.hello()
        stranger.hello(heard=0)
        if stranger.closed is not None:
            break
    assert stranger.closed is not None
    assert stranger.closed.reason is Reason.FLOOD
    assert stranger.closed.description == "container z repeatedly reports that it does not hear a"
    assert len(lab.stations["a"].of(NeighbourUp)) < 70


def test_strangers_with_ever_new_names_do_not_fill_the_log() -> None:
    lab = Lab("a")
    for at in range(300):
        Stranger(lab, "a", own_id=f"n{at}").hello(version=9)
    assert len(lab.stations["a"].said) == 100


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"as_name": "x" * 65}, "hello.id: text of 1 to 64 bytes"),
        ({"as_name": "a\nb"}, "hello.id: a printable name"),
        ({"incarnation": 0}, "hello.incarnation: 1 to"),
        ({"virtual_hosts": frozenset({"v" * 257})}, "hello.virtual-hosts: text of 1 to 256"),
    ],
)
def test_what_no_neighbour_would_take_is_an_error_at_the_start(
    changes: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        Lab().start("a", **changes)


def test_costs_and_hosts_that_no_neighbour_would_take_are_errors_here() -> None:
    lab = Lab("a", "b")
    with pytest.raises(ValueError, match="a link costs 1 to 65535, or 0 for no opinion"):
        lab.link("a", "b", cost=65_536)
    lab.wires.clear()
    lab.link("a", "b")
    for cost in (-1, 65_536):
        with pytest.raises(ValueError, match="a link costs 1 to 65535, or 0 for no opinion"):
            lab.do("a", Mesh.set_cost, lab.stations["a"].links, cost)
    with pytest.raises(ValueError, match=r"redirect-hint\.hosts: at most 64"):
        lab.do("a", Mesh.set_hosts, ("h",) * 65)
    lab.run(1)
    assert lab["b"].next_hop("a") == "a"
