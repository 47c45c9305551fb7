"""The mesh over random graphs, where every message may be late, early, or come twice."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st
from mesh_messages import messages
from meshes import Lab, Stranger

from cogwork.router.mesh.effects import Close
from cogwork.router.mesh.mesh import Mesh
from cogwork.router.mesh.messages import Advertisement, Message
from cogwork.router.mesh.serial import is_newer, next_number

NAMES = "abcdef"
EDGES = st.lists(
    st.tuples(st.sampled_from(list(combinations(NAMES, 2))), st.integers(0, 4)),
    min_size=1,
    max_size=10,
)
PATTERNS = ["#", "x.#", "y"]
SEQUENCE = st.integers(1, 2**32 - 1)


class Shuffle:
    """Hands over what waits in an order that the example draws, some of it twice."""

    def __init__(self, lab: Lab, draw: st.DataObject) -> None:
        self.lab = lab
        self.random = draw.draw(st.randoms(use_true_random=False))

    def run(self, rounds: int) -> None:
        for _ in range(rounds):
            waiting = [
                (wire, side, data)
                for wire in self.lab.wires
                for side in (0, 1)
                for data in wire.waiting[side]
            ]
            for wire in self.lab.wires:
                for each in wire.waiting:
                    each.clear()
            self.random.shuffle(waiting)
            waiting += self.random.sample(waiting, len(waiting) // 4)
            for wire, side, data in waiting:
                if wire in self.lab.wires:
                    self.lab.hand_over(wire, side, data)
            self.lab.now_s += 0.01
            self.lab.tick()


def groups(lab: Lab) -> list[set[str]]:
    """Return the containers that hang together."""
    found = [{name} for name in NAMES]
    for wire in lab.wires:
        ends = {station.name for station, _ in wire.ends}
        touched = [group for group in found if group & ends]
        found = [group for group in found if not group & ends] + [set().union(*touched)]
    return found


def assert_same(lab: Lab, group: set[str]) -> None:
    """All databases and tables of interests of a group are equal, as far as it reaches."""

    def adverts(name: str) -> dict[str, object]:
        records = lab[name].database.records
        return {
            each: (
                records[each].advertisement.incarnation,
                records[each].advertisement.sequence,
                records[each].advertisement.neighbours,
            )
            for each in group
        }

    def wanted(name: str) -> dict[str, object]:
        origins = lab[name].interests.table.origins
        found = {each: origins[each].entries for each in group if each in origins}
        return {each: entries for each, entries in found.items() if entries}

    first = min(group)
    for name in group:
        assert adverts(name) == adverts(first)
        assert wanted(name) == wanted(first)
        assert set(lab[name].routes.next_hops) == group - {name}


def assert_no_loop(lab: Lab, group: set[str]) -> None:
    """Next hops are neighbours and lead to the goal, and each of them is nearer to it."""
    for start in group:
        for goal in group - {start}:
            at, left = start, lab[start].routes.tree.costs[goal]
            while at != goal:
                hop = lab[at].next_hop(goal) or "nowhere"
                assert hop in lab[at].neighbours.active
                at = hop
                now_left = lab[at].routes.tree.costs[goal] if at != goal else 0
                assert now_left < left
                left = now_left


@given(EDGES, st.data())
@settings(max_examples=30, deadline=None)
def test_in_any_order_everybody_ends_with_the_same_and_every_way_arrives(
    edges: list[tuple[tuple[str, str], int]], draw: st.DataObject
) -> None:
    lab = Lab(*NAMES)
    for (one, other), cost in edges:
        lab.link(one, other, cost=cost)
    for name in NAMES:
        for pattern in draw.draw(st.lists(st.sampled_from(PATTERNS), max_size=3)):
            lab.do(name, Mesh.subscribe, "", pattern)
    shuffle = Shuffle(lab, draw)
    shuffle.run(20)
    cut = draw.draw(st.sampled_from(lab.wires))
    lab.cut(cut)
    for station, number in draw.draw(st.sampled_from([wire.ends for wire in lab.wires] or [[]])):
        lab.do(station.name, Mesh.set_cost, number, draw.draw(st.integers(1, 9)))
    shuffle.run(20)
    lab.run(10)  # in peace, for what was overtaken to be repeated
    for group in groups(lab):
        assert_same(lab, group)
        assert_no_loop(lab, group)


FEW = st.integers(0, 4)
NEAR = messages(
    names=st.sampled_from("abz"),
    incarnations=st.integers(1, 3),
    sequences=st.integers(1, 4),
    texts=st.sampled_from(["x", "y"]),
    numbers=FEW | st.just(2**32 - 1),
)


@given(st.lists(st.tuples(NEAR, st.sampled_from([0, 0, 0.1, 1, 50]), st.booleans()), max_size=30))
@settings(max_examples=40, deadline=None)
def test_whatever_a_neighbour_says_the_others_go_on(
    said: list[tuple[Message, float, bool]],
) -> None:
    lab = Lab("a", "b", "c")
    lab.link("a", "b")
    lab.link("b", "c")
    lab.do("c", Mesh.subscribe, "", "wanted")
    lab.run(0.5)
    liar = Stranger(lab, "a")
    liar.hello()
    liar.say(Advertisement(origin="z", incarnation=1, sequence=1, neighbours=(("a", 1),)))
    for message, pause_s, is_well_mannered in said:
        if liar.closed is not None:
            liar = Stranger(lab, "a")
        if is_well_mannered:
            liar.hello()
        liar.say(message)
        lab.run(pause_s, step_s=0.01 if pause_s < 1 else 0.2)
    if liar.closed is None:
        lab.do("a", Mesh.on_closed, liar.number)
    lab.run(12)
    group = {"a", "b", "c"}
    assert_same(lab, group)
    assert_no_loop(lab, group)
    assert lab.interested("a", (0, "", "wanted")) == {"c"}
    for name in "ab":
        assert [
            each.address for each in lab[name].interests.table.origins["c"].entries.values()
        ] == ["wanted"]
    for name in "bc":
        assert lab.stations[name].of(Close) == []


@given(SEQUENCE, st.integers(1, 2**31 - 2))
def test_a_later_number_is_newer_also_around_the_end_of_the_circle(number: int, steps: int) -> None:
    later = (number + steps) % 2**32
    assert is_newer(later, number)
    assert not is_newer(number, later)
    assert not is_newer(number, number)


@given(SEQUENCE)
def test_the_next_number_is_newer_and_never_zero(number: int) -> None:
    assert next_number(number) != 0
    assert is_newer(next_number(number), number)
