"""Neighbours that lie, flood, or offer too much: bounded, named in the log, cut off, outlived."""

from __future__ import annotations

import dataclasses

import pytest
from meshes import Lab, Stranger

from cogwork.router.mesh import bounds
from cogwork.router.mesh.effects import Close, Reason, Report, Severity
from cogwork.router.mesh.interest_flooding import PARTS_MAX
from cogwork.router.mesh.mesh import Mesh
from cogwork.router.mesh.messages import (
    Acknowledgement,
    Advertisement,
    Hello,
    Interest,
    InterestDelta,
    InterestRequest,
    InterestSnapshot,
    Summary,
)
from cogwork.router.mesh.wire import encode


def scene() -> tuple[Lab, Stranger]:
    """Return a-b-c, where c wants something, and a stranger linked to a."""
    lab = Lab("a", "b", "c")
    lab.link("a", "b")
    lab.link("b", "c")
    lab.do("c", Mesh.subscribe, "", "x.#")
    lab.run(1)
    stranger = Stranger(lab, "a")
    stranger.hello()
    stranger.say(Summary(number=1))
    stranger.say(own(1, "a"))
    lab.run(0.5)
    return lab, stranger


def own(sequence: int, *neighbours: str, origin: str = "z", incarnation: int = 1) -> Advertisement:
    links = tuple((each, 1) for each in neighbours)
    return Advertisement(
        origin=origin, incarnation=incarnation, sequence=sequence, neighbours=links
    )


def assert_well(lab: Lab) -> None:
    """The lie is outlived: everybody knows the way, and what c wants."""
    assert lab["a"].next_hop("c") == "b"
    assert lab["a"].routes.graph["c"] == {"b": 1}
    assert lab["c"].next_hop("a") == "b"
    assert lab.interested("a", (0, "", "x.#")) == {"c"}
    assert lab.interested("b", (0, "", "x.#")) == {"c"}
    for name in "bc":
        assert lab.stations[name].of(Close) == []


@pytest.mark.parametrize("leap", [1, 1000, bounds.SEQUENCE_LEAP_MAX + 10, 2**31 - 1])
@pytest.mark.parametrize("victim", ["a", "b", "c"])
def test_a_false_sequence_is_outbid_by_its_owner(victim: str, leap: int) -> None:
    lab, liar = scene()
    true = lab[victim].database.records[victim].advertisement.sequence
    liar.say(own(true + leap, "nobody", origin=victim))
    lab.run(3)
    liar.hello()
    assert_well(lab)
    has_risen = lab[victim].own.incarnation > 1
    assert has_risen == (leap > bounds.SEQUENCE_LEAP_MAX)


def test_a_false_incarnation_is_outbid_by_its_owner() -> None:
    lab, liar = scene()
    liar.say(own(1, "nobody", origin="c", incarnation=50))
    lab.run(3)
    assert lab["a"].database.incarnation("c") == 51
    assert lab["a"].database.records["c"].advertisement.life == 1
    assert_well(lab)


def test_neighbours_hear_of_a_new_incarnation_at_once() -> None:
    lab, liar = scene()
    liar.heard.clear()
    liar.say(own(1, "nobody", origin="a", incarnation=50))
    assert [each.incarnation for each in liar.all(Hello)] == [51]
    assert lab.stations["a"].active.keys() == {"b", "z"}
    liar.hello(heard=1)  # it was under way
    assert lab.stations["a"].active.keys() == {"b", "z"}


@pytest.mark.parametrize("incarnation", [2**42, bounds.INCARNATION_MAX])
def test_an_incarnation_out_of_reach_is_not_believed(incarnation: int) -> None:
    lab, liar = scene()
    liar.say(own(1, "nobody", origin="c", incarnation=incarnation))
    liar.say(own(1, "nobody", origin="a", incarnation=incarnation))
    lab.run(2)
    assert lab["a"].database.incarnation("c") == 1
    assert lab["a"].own.incarnation == 1
    assert_well(lab)
    assert "cannot add container c" in lab.stations["a"].said[0]


def test_one_who_lies_again_and_again_is_reported_by_the_victim() -> None:
    lab, liar = scene()
    for at in range(2, 10):
        liar.say(own(1, "nobody", origin="c", incarnation=at * 100))
        liar.hello()
        lab.run(0.9)
    assert_well(lab)
    (report,) = lab.stations["c"].of(Report)
    assert report.severity is Severity.ERROR
    assert "or another advertises under it" in report.text
    assert "seen through container b" in report.text


@pytest.mark.parametrize("sequence", [2, 3, 1000])
@pytest.mark.parametrize("victim", ["a", "c"])
def test_interests_that_are_said_in_anothers_name_are_outbid(victim: str, sequence: int) -> None:
    lab, liar = scene()
    entry = Interest(0, "", "lie")
    lie = InterestSnapshot(
        origin=victim,
        incarnation=1,
        sequence=sequence,
        digest=entry.digest(1),
        entries=((1, entry),),
    )
    liar.say(lie)
    lab.run(2)
    assert_well(lab)
    for name in "abc":
        assert lab.interested(name, (0, "", "lie")) == set()


def test_a_lie_about_interests_with_the_right_sequence_is_settled_too() -> None:
    lab, liar = scene()
    table = lab["a"].interests.table.origins["c"]
    for at in range(20):  # some digests are greater than the true one, some are not
        entry = Interest(0, "", f"lie {at}")
        liar.say(
            InterestSnapshot(
                origin="c",
                incarnation=1,
                sequence=table.sequence,
                digest=entry.digest(1),
                entries=((1, entry),),
            )
        )
        liar.hello()
        lab.run(1.5)
    assert_well(lab)
    assert len(lab["a"].interests.table.origins["c"].entries) == 1


def advertise_many(liar: Stranger, count: int) -> None:
    """Advertise many addresses, in deltas as they should be."""
    digest, label, sequence = 0, 0, 0
    while label < count and liar.closed is None:
        entries = []
        for _ in range(bounds.PART_INTERESTS_MAX):
            label += 1
            entry = Interest(0, "", f"address {label}")
            digest ^= entry.digest(label)
            entries.append((label, entry))
        sequence += 1
        liar.say(
            InterestDelta(
                origin="z", incarnation=1, sequence=sequence, digest=digest, added=tuple(entries)
            )
        )
        liar.hello()
        liar.lab.run(0.02)


def test_one_who_advertises_a_million_addresses_is_bounded_and_cut_off() -> None:
    lab, liar = scene()
    advertise_many(liar, 1_000_000)
    assert liar.closed is not None
    assert liar.closed.reason is Reason.TOO_MUCH
    assert liar.closed.description == "container z sends more than a mesh can have"
    assert lab.stations["a"].said == [
        "beyond the bounds: container z sends more than a mesh can have"
    ]
    lab.run(3)
    for name in "abc":
        assert len(lab[name].interests.table.origins["z"].entries) <= bounds.INTERESTS_MAX
        assert lab[name].next_hop("z") is None
    assert_well(lab)


def test_one_who_advertises_a_thousand_containers_and_more_is_bounded_and_cut_off() -> None:
    lab, liar = scene()
    for at in range(5000):
        liar.say(own(1, "z", origin=f"ghost {at}"))
        if liar.closed is not None:
            break
        if at % 50 == 0:
            liar.hello()
            lab.run(0.02)
    assert liar.closed is not None
    assert liar.closed.reason is Reason.TOO_MUCH
    assert len(lab["a"].database.records) == bounds.CONTAINERS_MAX
    lab.run(2)
    assert_well(lab)
    lab.run(bounds.ROOM_S)
    lab.start("late")
    lab.link("c", "late")
    lab.run(2)
    assert lab["a"].next_hop("late") == "b"


def test_one_who_floods_is_cut_off() -> None:
    lab, liar = scene()
    data = encode(Acknowledgement())
    for _ in range(int(bounds.TOKENS_BURST) + 100):
        liar.say(data)
        if liar.closed is not None:
            break
    assert liar.closed is not None
    assert liar.closed.reason is Reason.FLOOD
    assert liar.closed.description == "container z sends more than it may"
    assert lab.stations["a"].said == ["too many messages: container z sends more than it may"]
    lab.run(1)
    assert_well(lab)


def test_nobody_is_cut_off_for_what_others_had_it_pass_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in (("link", "TOKENS"), ("adjacency", "PACE")):
        for what in ("BURST", "PER_S"):  # less than usual, to save time
            path = f"cogwork.router.mesh.{module}.{name}_{what}"
            monkeypatch.setattr(path, getattr(bounds, f"{name}_{what}") / 16)
    lab, liar = scene()
    other = Stranger(lab, "a", "y")
    other.hello()
    sequence = 1
    for _ in range(50):
        for _ in range(60):
            sequence += 1
            liar.say(own(sequence, "a"))
            other.say(own(sequence, "a", origin="y"))
        liar.hello()
        other.hello()
        lab.run(0.21)
    assert liar.closed is other.closed is None  # each alone is within the bounds
    assert_well(lab)
    lab.do("c", Mesh.subscribe, "", "y")
    lab.run(1)
    assert lab.interested("a", (0, "", "y")) == {"c"}
    assert lab["c"].database.records["z"].advertisement.sequence == sequence


def test_a_snapshot_that_grows_beyond_the_bounds_is_dropped_before_it_is_whole() -> None:
    _lab, liar = scene()
    fat = Interest(0, "", "x" * bounds.ADDRESS_BYTES_MAX)
    for part in range(50):
        liar.say(
            InterestSnapshot(
                origin="z",
                incarnation=1,
                sequence=9,
                digest=1,
                part=part,
                parts=PARTS_MAX,
                entries=((1, fat),) * bounds.PART_INTERESTS_MAX,
            )
        )
        if liar.closed is not None:
            break
    assert liar.closed is not None
    assert liar.closed.reason is Reason.TOO_MUCH
    assert part == bounds.INTEREST_BYTES_MAX // (fat.size_bytes * bounds.PART_INTERESTS_MAX)


def part_of(sequence: int, part: int, parts: int, *all_of: str) -> InterestSnapshot:
    """Return a part, of one entry, of a snapshot that the stranger makes."""
    entries = [(at, Interest(0, "", each)) for at, each in enumerate(all_of)]
    digest = 0
    for label, entry in entries:
        digest ^= entry.digest(label)
    return InterestSnapshot(
        origin="z",
        incarnation=1,
        sequence=sequence,
        digest=digest,
        part=part,
        parts=parts,
        entries=(entries[part],),
    )


def test_parts_of_two_snapshots_are_not_mixed() -> None:
    lab, stranger = scene()
    stranger.say(part_of(1, 0, 2, "p", "q"))
    stranger.say(part_of(2, 1, 2, "r", "s"))
    stranger.say(part_of(2, 0, 2, "r", "s"))
    assert stranger.closed is None
    assert [each.address for each in lab["a"].interests.table.origins["z"].entries.values()] == [
        "s",
        "r",
    ]


def test_a_neighbour_may_begin_a_few_snapshots_at_once() -> None:
    lab, stranger = scene()
    for at in range(10):
        stranger.say(own(1, "z", origin=f"ghost {at}"))
        stranger.say(dataclasses.replace(part_of(1, 0, 2, "p", "q"), origin=f"ghost {at}"))
    begun = lab["a"]._adjacencies["z"].parts
    assert list(begun) == [f"ghost {at}" for at in range(10 - bounds.SNAPSHOTS_MAX, 10)]


def test_of_many_gaps_one_is_asked_about_at_a_time() -> None:
    lab, stranger = scene()
    stranger.heard.clear()
    for sequence in range(5, 15):
        stranger.say(InterestDelta(origin="z", incarnation=1, sequence=sequence, digest=0))
    assert len(stranger.all(InterestRequest)) == 1
    lab.run(0.1)
    stranger.say(InterestDelta(origin="z", incarnation=1, sequence=15, digest=0))
    assert len(stranger.all(InterestRequest)) == 2


def test_one_who_knows_newer_interests_is_sent_none() -> None:
    lab, stranger = scene()
    lab.run(0.5)
    version = lab["a"]._version("c")
    stranger.heard.clear()
    stranger.say(Summary(number=2, versions=(version._replace(interest=version.interest + 1),)))
    lab.run(0.1)
    assert stranger.all(InterestSnapshot) == []


@pytest.mark.parametrize(("part", "parts"), [(0, PARTS_MAX + 1), (3, 3), (0, 0)])
def test_a_part_that_cannot_be_ends_a_link(part: int, parts: int) -> None:
    lab, liar = scene()
    liar.say(
        InterestSnapshot(origin="z", incarnation=1, sequence=1, digest=0, part=part, parts=parts)
    )
    assert liar.closed is not None
    assert liar.closed.reason is Reason.TOO_MUCH
    assert_well(lab)


def test_a_snapshot_with_a_wrong_digest_is_not_believed() -> None:
    lab, liar = scene()
    entry = Interest(0, "", "y")
    liar.say(
        InterestSnapshot(origin="z", incarnation=1, sequence=1, digest=5, entries=((1, entry),))
    )
    assert lab.interested("a", entry.key) == set()
    assert liar.closed is not None


def test_what_is_said_of_containers_nobody_knows_is_passed_over() -> None:
    lab, liar = scene()
    entry = Interest(0, "", "y")
    liar.say(
        InterestDelta(
            origin="nobody",
            incarnation=1,
            sequence=1,
            digest=entry.digest(1),
            added=((1, entry),),
        )
    )
    liar.say(InterestRequest(origin="nobody", incarnation=1))
    liar.say(InterestRequest(origin="a", incarnation=77, sequence=5))
    lab.run(1)
    assert "nobody" not in lab["a"].interests.table.origins
    assert lab.interested("a", entry.key) == set()
    assert_well(lab)


def test_a_request_is_answered_with_what_there_is_and_never_with_more() -> None:
    lab, liar = scene()
    liar.heard.clear()
    liar.say(InterestRequest(origin="c", incarnation=1, sequence=12345))
    lab.run(0.1)
    assert liar.all(InterestSnapshot) == liar.all(InterestDelta) == []
    liar.say(InterestRequest(origin="c", incarnation=1))
    lab.run(0.1)
    assert [each.address for _, each in liar.last(InterestSnapshot).entries] == ["x.#"]


@pytest.mark.parametrize("ahead", [-1, 0])
def test_the_greatest_leap_that_others_believe_is_outbid(ahead: int) -> None:
    lab, stranger = scene()
    incarnation = lab["c"].own.incarnation + bounds.INCARNATION_LEAP_MAX + ahead
    stranger.say(Advertisement(origin="c", incarnation=incarnation, sequence=1, neighbours=()))
    lab.run(30)
    assert lab["c"].own.incarnation == incarnation + 1
    assert lab["a"].next_hop("c") == "b"
