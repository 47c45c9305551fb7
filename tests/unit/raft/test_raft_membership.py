"""Who takes part, and what a majority is."""

from __future__ import annotations

import pytest

from cogwork.raft.errors import Malformed
from cogwork.raft.membership import LEARNERS_MAX, VOTERS_MAX, Membership

THREE = Membership(("a", "b", "c"), ("d",))
JOINT = Membership(("c", "d", "e"), (), ("a", "b", "c"))


@pytest.mark.parametrize(
    ("members", "is_quorum"),
    [("ab", True), ("abc", True), ("a", False), ("ad", False), ("d", False), ("", False)],
)
def test_a_majority_of_the_voters_decides_and_learners_count_for_nothing(
    members: str, is_quorum: bool
) -> None:
    assert THREE.is_quorum(set(members)) is is_quorum


@pytest.mark.parametrize(
    ("members", "is_quorum"),
    [("abc", False), ("cde", False), ("abde", True), ("acd", True), ("abd", False), ("cd", False)],
)
def test_a_joint_membership_needs_a_majority_of_both_halves(members: str, is_quorum: bool) -> None:
    assert JOINT.is_quorum(set(members)) is is_quorum


def test_nobody_is_no_majority() -> None:
    assert not Membership().is_quorum(set())
    assert Membership().quorum_index(lambda _: 9) == 0


def test_the_quorum_index_is_what_a_majority_has_reached() -> None:
    assert THREE.quorum_index({"a": 9, "b": 5, "c": 3}.__getitem__) == 5
    four = Membership(("a", "b", "c", "d"))
    assert four.quorum_index({"a": 9, "b": 7, "c": 5, "d": 3}.__getitem__) == 5
    index_of = {"a": 9, "b": 9, "c": 1, "d": 4, "e": 3}.__getitem__
    assert JOINT.quorum_index(index_of) == 3


def test_the_first_voter_is_the_preferred_leader() -> None:
    assert [THREE.rank(each) for each in "abcd"] == [0, 1, 2, 3]


@pytest.mark.parametrize("membership", [THREE, JOINT, Membership(), Membership(("ü" * 32,))])
def test_it_survives_encoding(membership: Membership) -> None:
    assert Membership.from_bytes(membership.to_bytes()) == membership


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (Membership((), ("a",)), "at least one voter"),
        (Membership(("a", "a")), "named twice"),
        (Membership(("a",), ("a",)), "named twice"),
        (Membership(("a",), (), ("b", "b")), "named twice"),
        (Membership(("",)), "64 octets"),
        (Membership(("ü" * 33,)), "64 octets"),
        (Membership(tuple(f"v{n}" for n in range(VOTERS_MAX + 1))), "at most 9 voters"),
        (Membership(("a",), tuple(f"l{n}" for n in range(LEARNERS_MAX + 1))), "1024 learners"),
    ],
)
def test_what_no_group_can_have_is_refused(wrong: Membership, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        wrong.check()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0",
        THREE.to_bytes() + b"\0",
        THREE.to_bytes()[:-1],
        b"\0\1\2\xff\xff\0\0\0\0",
        b"\xff\xff\1a\0\0\0\0",
        b"\0\2\1a\1a\0\0\0\0",
        b"\0\0\0\1\1a\0\0",
    ],
)
def test_hostile_octets_are_malformed(data: bytes) -> None:
    with pytest.raises(Malformed):
        Membership.from_bytes(data)
