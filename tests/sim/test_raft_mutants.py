"""The simulator is graded here by the mistakes that it finds soon; `make sim` grades it by all."""

from __future__ import annotations

import pytest
from mutants.catalogue import MUTANTS
from mutants.grading import grade
from mutants.mutant import Mutant, Stale

from cogwork.raft.membership import Membership

SOON = 200
"""Scenarios."""

SLOW = {
    "a vote for the longer log, whatever its terms",
    "a vote of an earlier term counts",
    "an answer of an old term counts",
    "a read is as current as what its leader has committed",
    "the next step of a change before the last one is committed",
    "one that is not known to beat for a group is not answered when it comes back",
}
"""Those that take longer; that they fit the core is seen here."""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mistake_is_found(mutant: Mutant) -> None:
    if mutant.name in SLOW:
        assert not grade(mutant, 1).what.startswith("stale")
        return
    assert grade(mutant, SOON).is_killed


def test_there_are_enough_of_them() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 30


def test_a_mutant_is_put_in_and_taken_out() -> None:
    place = "cogwork.raft.membership:Membership.rank"
    mutant = Mutant("no leader priority", place, "return len(self.voters)", "return 77")
    members = Membership(("a", "b"))
    with mutant.applied():
        assert (members.rank("b"), members.rank("x")) == (1, 77)
    assert members.rank("x") == 2


def test_a_mutant_that_does_not_fit_any_more_is_an_error() -> None:
    place = "cogwork.raft.membership:Membership.rank"
    with (
        pytest.raises(Stale, match="0 times 'return 5'"),
        Mutant("", place, "return 5", "return 6").applied(),
    ):
        pass
    verdict = grade(Mutant("x", place, "return 5", "return 6"), 1)
    assert not verdict.is_killed
