"""Neighbours: who is taken, who is refused and what both ends are told, who is gone and when."""

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
    Severity,
)
from cogwork.router.mesh.link import LINK, Event, State
from cogwork.router.mesh.mesh import Mesh
from cogwork.router.mesh.messages import Figures, Hello, RedirectHint


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
        assert f"by way of container {neighbour}" in lab.stations[name].said[0]
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
        "all of a mesh have the same virtual hosts"
    ]
    assert [each.reason for each in lab.stations["b"].of(Close)] == [Reason.VIRTUAL_HOSTS]


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


def active_pair(lab: Lab) -> tuple[object, object]:
    """Returns the wires that both ends use."""
    found = []
    for name, other in (("a", "b"), ("b", "a")):
        number = lab.stations[name].active[other]
        found.append(next(w for w in lab.wires if (lab.stations[name], number) in w.ends))
    return tuple(found)


@pytest.mark.parametrize("first", ["a", "b"])
def test_containers_that_dial_each_other_keep_the_one_that_the_smaller_id_dialled(
    first: str,
) -> None:
    lab = Lab("a", "b")
    second = "b" if first == "a" else "a"
    lab.link(first, second)
    lab.link(second, first)
    lab.run(3)
    one, other = active_pair(lab)
    assert one is other
    assert one.ends[0][0].name == "a"
    assert lab.wires == [one]
    closes = lab.stations["a"].of(Close) + lab.stations["b"].of(Close)
    assert {close.reason for close in closes} == {Reason.DUPLICATE_LINK}
    assert lab.stations["a"].said == []
    assert lab.stations["a"].of(NeighbourDown) == lab.stations["b"].of(NeighbourDown) == []


def test_a_container_dialled_under_two_names_keeps_the_later_connection() -> None:
    lab = Lab("a", "b")
    lab.link("b", "a")
    lab.run(1)
    later = lab.link("b", "a")
    lab.run(3)
    assert lab.wires == [later]
    assert active_pair(lab) == (later, later)
    assert lab.stations["a"].of(NeighbourDown) == lab.stations["b"].of(NeighbourDown) == []


def test_a_duplicate_that_is_broken_is_never_preferred() -> None:
    lab = Lab("a", "b")
    good = lab.link("a", "b")
    lab.run(1)
    broken = lab.link("a", "b")
    for waiting in broken.waiting:
        waiting.clear()
    broken.is_silent = True
    lab.run(10)
    assert lab.wires == [good]
    assert lab.stations["a"].of(NeighbourDown) == []


def test_a_broken_connection_is_replaced_by_a_new_one_before_it_is_missed() -> None:
    lab = Lab("a", "b")
    old = lab.link("b", "a")
    lab.run(1)
    old.is_silent = True
    new = lab.link("b", "a")
    lab.run(1.5)
    assert active_pair(lab) == (new, new)


def test_a_broken_connection_of_the_better_rank_does_not_close_a_good_one() -> None:
    lab = Lab("a", "b")
    broken = lab.link("a", "b")
    lab.run(1.5)
    broken.is_silent = True
    good = lab.link("b", "a")
    lab.run(4)
    assert lab.wires == [good]
    assert active_pair(lab) == (good, good)
    closes = lab.stations["a"].of(Close) + lab.stations["b"].of(Close)
    assert {close.reason for close in closes} == {Reason.DEAD}
    assert lab.stations["a"].of(NeighbourDown) == lab.stations["b"].of(NeighbourDown) == []


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
    assert last.closed.description == "container a has 256 neighbours, and takes no more"
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
    assert stranger.closed.description == "container z goes on forgetting that it heard a"
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


def test_every_state_of_a_link_has_a_way_out() -> None:
    for state in State:
        if state is not State.DOWN:
            assert LINK[state, Event.CLOSED] is State.DOWN
    reached = {State.DOWN}
    for _ in State:
        reached |= {after for (before, _), after in LINK.items() if before in reached}
    assert reached == set(State)


def test_the_snapshot_tells_what_people_see() -> None:
    lab = Lab("a", "b")
    lab.link("a", "b", cost=3)
    lab.do("b", Mesh.subscribe, "", "x")
    lab.run(2)
    view = lab["a"].snapshot(lab.now_s)
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
    }
    lab.cut(lab.wires[0])
    lab.run(5)
    other = next(each for each in lab["a"].snapshot(lab.now_s)["containers"] if each["id"] == "b")
    assert other["next_hop"] is None
    assert 4.5 < other["unreachable_s"] < 5.5
