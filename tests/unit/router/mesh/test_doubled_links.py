"""Several connections between two containers: one pair is kept."""

from __future__ import annotations

import pytest
from meshes import Lab, Wire

from cogwork.router.mesh.effects import Close, NeighbourDown, Reason


def active_pair(lab: Lab) -> list[Wire]:
    """Return the wires that both ends use."""
    found = []
    for name, other in (("a", "b"), ("b", "a")):
        number = lab.stations[name].active[other]
        found.append(next(w for w in lab.wires if (lab.stations[name], number) in w.ends))
    return found


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
    assert active_pair(lab) == [later, later]
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
    assert active_pair(lab) == [new, new]


def test_a_broken_connection_of_the_better_rank_does_not_close_a_good_one() -> None:
    lab = Lab("a", "b")
    broken = lab.link("a", "b")
    lab.run(1.5)
    broken.is_silent = True
    good = lab.link("b", "a")
    lab.run(4)
    assert lab.wires == [good]
    assert active_pair(lab) == [good, good]
    closes = lab.stations["a"].of(Close) + lab.stations["b"].of(Close)
    assert {close.reason for close in closes} == {Reason.DEAD}
    assert lab.stations["a"].of(NeighbourDown) == lab.stations["b"].of(NeighbourDown) == []
