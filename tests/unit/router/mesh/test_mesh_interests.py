"""Who wants what: many subscriptions, few entries, told in deltas, made good where missed."""

from __future__ import annotations

import itertools
from typing import TypeVar

import pytest
from meshes import Lab

from cogwork.router.mesh import bounds
from cogwork.router.mesh.effects import Close, InterestChanged, Send
from cogwork.router.mesh.interests import Change, Interests, InterestTable, Outcome
from cogwork.router.mesh.local_interest import DECLINE_S
from cogwork.router.mesh.mesh import Mesh
from cogwork.router.mesh.messages import (
    Interest,
    InterestDelta,
    InterestKind,
    InterestRequest,
    InterestSnapshot,
)
from cogwork.router.mesh.wire import decode

T = TypeVar("T")

QUEUE = Interest(InterestKind.QUEUE, "", "work/x")


def line(*names: str) -> Lab:
    lab = Lab(*names)
    for one, other in itertools.pairwise(names):
        lab.link(one, other)
    lab.run(1)
    for name in names:
        lab.stations[name].effects.clear()
    return lab


def known(lab: Lab, name: str, origin: str) -> set[str]:
    """Return the addresses that a container takes another one to want."""
    table = lab[name].interests.table.origins.get(origin)
    return set() if table is None else {each.address for each in table.entries.values()}


def figures(lab: Lab, name: str, origin: str) -> list[tuple[int, int, int]]:
    table = lab[name].interests.table.origins[origin]
    return [(each.consumers, each.producers, each.backlog) for each in table.entries.values()]


def sent(lab: Lab, name: str, kind: type[T]) -> list[T]:
    found = (decode(each.data) for each in lab.stations[name].of(Send))
    return [message for message in found if isinstance(message, kind)]


def test_everybody_hears_what_one_container_wants_and_wants_no_more() -> None:
    lab = line("a", "b", "c")
    lab.do("a", Mesh.subscribe, "", "x.#")
    lab.do("a", Mesh.subscribe, "red", "x.#")
    lab.run(0.1)
    for name in "bc":
        assert lab.interested(name, (0, "", "x.#")) == {"a"}
        assert lab.interested(name, (0, "red", "x.#")) == {"a"}
        assert lab.interested(name, (0, "blue", "x.#")) == set()
    lab.do("a", Mesh.unsubscribe, "", "x.#")
    lab.run(0.1)
    for name in "bc":
        assert lab.interested(name, (0, "", "x.#")) == set()
        first, second, removed = lab.stations[name].of(InterestChanged)
        added = [*first.added.values(), *second.added.values()]
        assert [each.virtual_host for each in added] == ["", "red"]
        assert list(removed.removed.values()) == [Interest(0, "", "x.#")]
        assert removed.origin == "a"


def test_a_hundred_thousand_subscriptions_cost_others_their_distinct_patterns() -> None:
    lab = line("a", "b", "c")
    for at in range(100_000):
        lab.do("a", Mesh.subscribe, "", f"flights.{at % 10}.#")
    lab.run(1)
    for name in "bc":
        assert len(known(lab, name, "a")) == 10
        assert sum(len(each.added) for each in lab.stations[name].of(InterestChanged)) == 10
    assert sum(len(each.data) for each in lab.stations["a"].of(Send)) < 5000
    for at in range(99_990):
        lab.do("a", Mesh.unsubscribe, "", f"flights.{at % 10}.#")
    lab.run(1)
    assert len(known(lab, "c", "a")) == 10
    for at in range(10):
        lab.do("a", Mesh.unsubscribe, "", f"flights.{at % 10}.#")
    lab.run(1)
    assert known(lab, "c", "a") == set()


def test_one_who_comes_and_goes_at_once_is_never_told() -> None:
    lab = line("a", "b")
    lab.do("a", Mesh.subscribe, "", "first")  # the next ones wait for the end of the pause
    lab.do("a", Mesh.subscribe, "", "x")
    lab.do("a", Mesh.unsubscribe, "", "x")
    lab.run(1)
    added = [
        e.address for each in lab.stations["b"].of(InterestChanged) for e in each.added.values()
    ]
    assert added == ["first"]


def test_in_a_steady_state_a_change_costs_a_delta_and_not_the_table() -> None:
    lab = line("a", "b", "c")
    for at in range(1000):
        lab.do("a", Mesh.subscribe, "", f"x.{at}")
    lab.run(2)
    for name in "abc":
        lab.stations[name].effects.clear()
    lab.do("a", Mesh.subscribe, "", "one more")
    lab.run(2)
    for name in "ab":
        (delta,) = sent(lab, name, InterestDelta)
        assert len(delta.added) == 1
        assert sent(lab, name, InterestSnapshot) == []
    assert len(known(lab, "c", "a")) == 1001


@pytest.mark.parametrize("missed", [1, bounds.HISTORY_DELTAS_MAX + 5])
def test_what_was_missed_is_made_good(missed: int) -> None:
    lab = line("a", "b", "c")
    lab.do("a", Mesh.subscribe, "", "first")
    lab.run(1)
    lab.stations["a"].effects.clear()
    lab.wires[0].lost = (InterestDelta, InterestSnapshot)
    for at in range(missed):
        lab.do("a", Mesh.subscribe, "", f"x.{at}")
        lab.run(0.2)
    assert known(lab, "b", "a") == {"first"}
    lab.wires[0].lost = ()
    lab.stations["a"].effects.clear()
    lab.do("a", Mesh.subscribe, "", "last")
    lab.run(1)
    for name in "bc":
        assert known(lab, name, "a") == {"first", *(f"x.{at}" for at in range(missed)), "last"}
    is_whole = bool(sent(lab, "a", InterestSnapshot))
    assert is_whole == (missed > bounds.HISTORY_DELTAS_MAX)


def test_a_gap_is_noticed_by_the_next_delta() -> None:
    lab = line("a", "b")
    lab.do("a", Mesh.subscribe, "", "x")
    lab.now_s += 0.2
    lab.tick()
    lab.wires[0].waiting[1].clear()
    lab.do("a", Mesh.subscribe, "", "y")
    lab.run(0.1)
    (request,) = sent(lab, "b", InterestRequest)
    assert (request.origin, request.sequence) == ("a", 0)
    assert known(lab, "b", "a") == {"x", "y"}


def test_one_who_comes_late_gets_all_in_parts() -> None:
    lab = line("a", "b")
    for at in range(950):
        lab.do("a", Mesh.subscribe, "", f"x.{at}")
    lab.run(1)
    lab.start("c")
    lab.link("b", "c")
    lab.run(1)
    assert len(known(lab, "c", "a")) == 950
    parts = [each for each in sent(lab, "b", InterestSnapshot) if each.origin == "a"]
    assert [(each.part, each.parts) for each in parts] == [(at, 10) for at in range(10)]
    (change,) = lab.stations["c"].of(InterestChanged)
    assert len(change.added) == 950


def test_parts_may_come_in_any_order_and_more_than_once() -> None:
    lab = line("a", "b")
    for at in range(350):
        lab.do("a", Mesh.subscribe, "", f"x.{at}")
    lab.run(1)
    lab.start("c")
    wire = lab.link("b", "c")
    lab.wires.remove(wire)
    for _ in range(300):
        lab.now_s += 0.01
        lab.tick()
        lab.wires.append(wire)
        for side, waiting in enumerate(wire.waiting):
            came = list(waiting)
            waiting.clear()
            for data in [*reversed(came), *came]:
                lab.hand_over(wire, side, data)
    assert len(known(lab, "c", "a")) == 350


def test_a_life_that_ended_leaves_no_interests() -> None:
    lab = line("a", "b", "c")
    lab.do("a", Mesh.subscribe, "", "old")
    lab.run(0.5)
    lab.kill("a")
    lab.run(0.5)
    assert known(lab, "c", "a") == {"old"}  # it may only be cut off
    lab.start("a", 2)
    lab.link("a", "b")
    lab.run(1)
    for name in "bc":
        assert known(lab, name, "a") == set()
    lab.do("a", Mesh.subscribe, "", "new")
    lab.run(1)
    for name in "bc":
        assert known(lab, name, "a") == {"new"}


def test_a_partition_that_heals_leaves_no_difference() -> None:
    lab = line("a", "b", "c", "d")
    lab.do("a", Mesh.subscribe, "", "x")
    lab.run(0.5)
    lab.cut(lab.wires[1])
    lab.run(0.5)
    lab.do("a", Mesh.unsubscribe, "", "x")
    lab.do("d", Mesh.subscribe, "", "y")
    lab.run(1)
    assert known(lab, "d", "a") == {"x"}
    lab.link("b", "c")
    lab.run(1)
    assert known(lab, "d", "a") == set()
    assert known(lab, "a", "d") == {"y"}


def test_figures_of_a_queue_are_told_roughly() -> None:
    lab = line("a", "b")

    def told(backlog: int, wait_s: float = 0.2) -> int:
        lab.do("a", Mesh.set_interest, QUEUE._replace(backlog=backlog))
        lab.run(wait_s)
        found = figures(lab, "b", "a")
        return found[0][2] if found else 0

    assert told(100) == 100
    assert told(199) == 100
    assert told(200) == 200
    assert told(101, 2 * DECLINE_S) == 200
    assert told(100) == 200  # halved, but not for long
    assert told(150, 2 * DECLINE_S) == 200
    assert told(100, 2 * DECLINE_S) == 100
    assert told(0) == 0  # nothing but zeros removes it
    assert told(1) == 1


def test_a_decline_must_last_without_a_break() -> None:
    lab = line("a", "b")
    for backlog, wait_s in ((100, 0.5), (50, 0.9), (100, 0.05), (50, 0.5)):
        lab.do("a", Mesh.set_interest, QUEUE._replace(backlog=backlog))
        lab.run(wait_s)
    assert figures(lab, "b", "a") == [(0, 0, 100)]
    lab.run(0.7)
    assert figures(lab, "b", "a") == [(0, 0, 50)]


def test_a_queue_that_flaps_is_not_told_each_time() -> None:
    lab = line("a", "b")
    lab.do("a", Mesh.set_interest, QUEUE._replace(consumers=4, backlog=8))
    lab.run(0.5)
    lab.stations["a"].effects.clear()
    for at in range(100):
        lab.do("a", Mesh.set_interest, QUEUE._replace(consumers=4, backlog=(8, 0)[at % 2]))
        lab.run(0.02)
    assert sent(lab, "a", InterestDelta) == []


def test_an_anycast_address_is_told_exactly() -> None:
    lab = line("a", "b")
    anycast = Interest(InterestKind.ANYCAST, "", "rpc")
    for shown in ((1, 0, 0), (1, 1, 0), (0, 1, 0)):
        lab.do("a", Mesh.set_interest, anycast._replace(consumers=shown[0], producers=shown[1]))
        lab.run(0.3)
        assert figures(lab, "b", "a") == [shown]
    lab.do("a", Mesh.set_interest, anycast)
    lab.run(0.3)
    assert lab.interested("b", anycast.key) == set()


def test_figures_that_do_not_fit_are_told_as_the_most_there_is() -> None:
    lab = line("a", "b")
    lab.do("a", Mesh.set_interest, QUEUE._replace(backlog=2**40))
    lab.run(0.5)
    assert figures(lab, "b", "a") == [(0, 0, 2**32 - 1)]


@pytest.mark.parametrize(
    ("virtual_host", "pattern"),
    [("", ""), ("", "x" * 2049), ("", "ä" * 1025), ("v" * 257, "x")],
)
def test_what_is_too_long_to_be_told_is_an_error_here_and_not_at_the_neighbour(
    virtual_host: str, pattern: str
) -> None:
    lab = line("a", "b")
    with pytest.raises(ValueError, match="fit the mesh"):
        lab.do("a", Mesh.subscribe, virtual_host, pattern)
    with pytest.raises(ValueError, match="fit the mesh"):
        lab.do("a", Mesh.set_interest, Interest(2, virtual_host, pattern, consumers=1))
    lab.do("a", Mesh.subscribe, "v" * 256, "ä" * 1024)
    lab.run(1)
    assert known(lab, "b", "a") == {"ä" * 1024}


def test_more_patterns_than_the_mesh_takes_are_kept_back_and_said() -> None:
    lab = line("a", "b")
    for at in range(bounds.INTERESTS_MAX + 50):
        lab["a"].interests.local.subscribe("", f"x.{at}", lab.now_s)
    lab.run(2)
    count = len(known(lab, "b", "a"))
    assert bounds.INTERESTS_MAX - bounds.PART_INTERESTS_MAX < count <= bounds.INTERESTS_MAX
    assert lab.stations["a"].said == [
        "container a has more patterns and addresses than the mesh can carry: other containers do "
        "not learn of the rest"
    ]
    for at in range(200):
        lab.do("a", Mesh.unsubscribe, "", f"x.{at}")
    lab.run(2)
    assert len(known(lab, "b", "a")) == bounds.INTERESTS_MAX - 150


def test_what_the_whole_mesh_wants_is_bounded_and_fits_when_others_have_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cogwork.router.mesh.interests.MESH_INTERESTS_MAX", 300)
    lab = line("a", "b", "c")
    for name, count in (("a", 200), ("c", 150)):
        for at in range(count):
            lab.do(name, Mesh.subscribe, "", f"{name}.{at}")
        lab.run(1)
    assert len(known(lab, "b", "a")) == 200
    assert len(known(lab, "b", "c")) <= 100
    assert lab.stations["b"].said == [
        "the mesh has too many patterns and addresses: some of container c are ignored here"
    ]
    for at in range(100):
        lab.do("a", Mesh.unsubscribe, "", f"a.{at}")
    lab.run(6)
    assert len(known(lab, "b", "c")) == 150
    assert len(known(lab, "a", "c")) == 150
    assert lab["b"].interests.table.count == 250
    lab.do("b", Mesh.subscribe, "", "one more")
    assert lab.stations["b"].of(Close) == lab.stations["c"].of(Close) == []


def test_a_table_counts_what_is_in_it() -> None:
    whole = InterestTable()
    for origin in ("x", "y"):
        table = whole.open(origin, 1)
        whole.commit(table, Change(table, {}, {1: Interest(0, "", "äb"), 2: Interest(0, "v", "c")}))
        whole.commit(table, Change(table, {}, {1: Interest(0, "", "longer")}))
        whole.commit(table, Change(table, {2: table.entries[2]}, {}))
    assert (whole.count, whole.size_bytes) == (2, 12)
    whole.drop("x")
    assert (whole.count, whole.size_bytes) == (1, 6)
    whole.open("y", 2)
    assert (whole.count, whole.size_bytes) == (0, 0)


def test_a_new_incarnation_tells_all_anew() -> None:
    lab = line("a", "b", "c")
    lab.do("c", Mesh.subscribe, "", "x")
    lab.run(0.5)
    lab["c"].own.incarnation = 7  # as after an outbid
    lab.do("c", Mesh.set_cost, 1, 2)
    lab.run(2)
    assert lab["a"].database.incarnation("c") == 7
    assert known(lab, "a", "c") == {"x"}
    assert lab["c"].neighbours.active


def delta_of(
    table: Interests, sequence: int, *added: str, digest: int | None = None
) -> InterestDelta:
    entries = tuple((at + 1, Interest(0, "", each)) for at, each in enumerate(added))
    right = table.digest
    for label, entry in entries:
        right ^= entry.digest(label)
    return InterestDelta(
        origin="x",
        incarnation=1,
        sequence=sequence,
        digest=right if digest is None else digest,
        added=entries,
    )


def test_a_delta_applies_to_the_table_before_it_and_to_no_other() -> None:
    whole = InterestTable()
    table = whole.open("x", 1)
    first = delta_of(table, 1, "p")
    change = table.change_of(first)
    assert isinstance(change, Change)
    whole.commit(table, change)
    table.remember(first)
    assert table.change_of(first) is Outcome.KNOWN
    assert table.change_of(delta_of(table, 3, "q")) is Outcome.GAP
    assert table.change_of(delta_of(table, 2, "q", digest=5)) is Outcome.CONFLICT
    assert table.change_of(delta_of(table, 2**32 - 1, "q")) is Outcome.OLD
    missing = InterestDelta(origin="x", incarnation=1, sequence=2, digest=0, removed=(99,))
    assert table.change_of(missing) is Outcome.CONFLICT
    assert table.deltas_after(0) == [first]
    assert table.deltas_after(1) == []
    assert table.deltas_after(2) is None


def test_of_two_tables_with_one_sequence_the_greater_digest_holds() -> None:
    table = Interests(1)
    table.sequence, table.digest = 5, 100
    assert table.weigh(5, 100) is Outcome.KNOWN
    assert table.weigh(5, 101) is Outcome.APPLIED
    assert table.weigh(5, 99) is Outcome.OLD
    assert table.weigh(6, 0) is Outcome.APPLIED
    assert table.weigh(4, 2**31) is Outcome.OLD


def test_a_table_has_so_many_bytes_of_addresses_and_no_more() -> None:
    whole = InterestTable()
    table = whole.open("x", 1)
    digest, at = 0, 0
    for sequence in range(1, 1000):
        entry = Interest(0, "", f"{sequence:02048}")
        digest ^= entry.digest(sequence)
        delta = InterestDelta(
            origin="x",
            incarnation=1,
            sequence=sequence,
            digest=digest,
            added=((sequence, entry),),
        )
        found = table.change_of(delta)
        if found is Outcome.REFUSED:
            break
        assert isinstance(found, Change)
        whole.commit(table, found)
        table.remember(delta)
        at = sequence
    assert at == bounds.INTEREST_BYTES_MAX // bounds.ADDRESS_BYTES_MAX


def test_sequences_of_deltas_wrap_without_a_zero() -> None:
    whole = InterestTable()
    table = whole.open("x", 1)
    table.replaced(2**32 - 1)
    delta = delta_of(table, 1, "p")
    change = table.change_of(delta)
    assert isinstance(change, Change)
    whole.commit(table, change)
    table.remember(delta)
    assert table.deltas_after(2**32 - 1) == [delta]
    assert [entry.address for entry in whole.drop("x").values()] == ["p"]
    assert whole.count == 0


def test_what_is_told_already_does_not_wait_for_what_is_too_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(f"{Change.__module__}.INTERESTS_MAX", 150)
    lab = Lab("a", "b")
    lab.link("a", "b")
    lab.do("a", Mesh.set_interest, Interest(InterestKind.QUEUE, "", "q", backlog=1))
    lab.run(1)
    for number in range(200):
        lab.do("a", Mesh.subscribe, "", f"x.{number}")
    lab.run(2)
    known = lab["b"].interests.table.origins["a"]
    assert len(known.entries) == 150  # to the last place
    lab.do("a", Mesh.set_interest, Interest(InterestKind.QUEUE, "", "q", backlog=1024))
    lab.run(2)
    label = known.labels[InterestKind.QUEUE.value, "", "q"]
    assert known.entries[label].backlog == 1024
