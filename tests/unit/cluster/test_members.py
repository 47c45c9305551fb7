"""What members say of themselves: seniority, the root, and what an operator is warned of."""

from __future__ import annotations

from typing import Any

import msgspec

from cogwork.cluster.members import Member, MemberFacts, root_of, spid_of, warnings_of

START_MS = 1_796_006_349_704


def facts(**changes: Any) -> MemberFacts:
    told: dict[str, Any] = {
        "incarnation": START_MS,
        "version": "1.0",
        "next": 17,
        "digest": "d1",
        "is_current": True,
        "root": "a",
        "term": 3,
    }
    return MemberFacts(**(told | changes))


def active(name: str, **changes: Any) -> Member:
    return Member(name, True, "active", None, facts(**changes))


THREE = [active("a"), active("b"), active("c")]


def test_the_lower_spid_is_the_senior_one() -> None:
    spids = [spid_of(START_MS + later, "b") for later in (0, 1, 999, 1_000, 86_400_000)]
    assert spids == sorted(spids)
    assert spids[0] == "20261130T023909.704Z-b"


def test_equal_starts_are_told_apart_by_the_id() -> None:
    assert spid_of(START_MS, "a") < spid_of(START_MS, "b")


def test_the_root_is_that_of_the_highest_term() -> None:
    assert root_of([active("a", root="a", term=3), active("b", root="b", term=4)]) == ("b", 4)


def test_who_knows_no_root_has_no_say() -> None:
    assert root_of([active("a", root="", term=9), active("b")]) == ("a", 3), "its own term"
    assert root_of([active("a", root="")]) == ("", 3)


def test_who_has_no_vote_is_asked_where_no_voter_answers() -> None:
    secondary = Member("d", False, "active", None, facts(root="a", term=0))
    assert root_of([active("a", root="", term=4), secondary]) == ("", 4)
    assert root_of([secondary]) == ("a", 0)


def test_a_cluster_that_is_well_has_no_warnings() -> None:
    assert warnings_of([*THREE, Member("d", False, "active", None, facts(term=0))]) == []


def test_a_member_that_does_not_answer_is_named() -> None:
    members = [active("a"), active("b"), Member("c", True, "gone", 4.0)]
    assert warnings_of(members) == ["no answer from c"]


def test_a_lost_majority_comes_first() -> None:
    members = [active("a", root=""), Member("b", True, "gone"), Member("c", True, "connected")]
    first, second = warnings_of(members)
    assert first.startswith("only 1 of 3 primaries answer")
    assert second == "no answer from b, c"


def test_half_of_the_primaries_are_no_majority() -> None:
    members = [*(active(each) for each in "ab"), *(Member(each, True, "gone") for each in "cd")]
    assert warnings_of(members)[0].startswith("only 2 of 4 primaries answer")


def test_a_missing_root_is_told_where_a_majority_answers() -> None:
    members = [active(each, root="") for each in "abc"]
    assert warnings_of(members) == ["no root is known: the primaries are electing one"]


def test_too_few_and_an_even_number_of_primaries_are_told() -> None:
    assert "it takes 3 to survive the loss of one" in warnings_of(THREE[:1])[0]
    assert "use an odd number" in warnings_of([*THREE, active("d")])[0]


def test_differing_versions_are_told_by_member() -> None:
    members = [active("a"), active("b"), active("c", version="1.1")]
    assert warnings_of(members) == ["the versions differ: a has 1.0, b has 1.0, c has 1.1"]


def test_digests_are_compared_at_equal_offsets_alone() -> None:
    behind = [active("a"), active("b"), active("c", next=16, digest="d0")]
    assert warnings_of(behind) == []
    (warning,) = warnings_of([active("a"), active("b"), active("c", digest="d2")])
    assert warning.startswith("the declarations of a, b, c differ")


def test_clocks_that_differ_are_named() -> None:
    offsets = {"a": 0.0, "b": 0.9, "c": None, "d": 1.6, "e": -90.0}
    members = [Member(name, True, "active", None, facts(), each) for name, each in offsets.items()]
    assert warnings_of(members) == [
        "the clock of d is 1.6 s ahead of that of the container asked: have NTP set it",
        "the clock of e is 90.0 s behind that of the container asked: have NTP set it",
    ]


def test_facts_of_older_versions_have_no_clock() -> None:
    told = msgspec.msgpack.encode([START_MS, "1.0", 17, "d1", True, "a", 3])
    assert msgspec.msgpack.decode(told, type=MemberFacts).time_ms == 0
