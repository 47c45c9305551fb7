"""The invariant checker sees each kind of mistake; each test makes one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from cogwork.plugin.engine.batch import Batch, Chunk
from cogwork.plugin.engine.contract import Appended
from cogwork.raft.entries import Entry, Kind
from cogwork.raft.membership import Membership
from cogwork.raft.ready import HardState
from cogwork.raft.snapshot import Snapshot
from cogwork.sim.raft.invariant_checker import Broken, InvariantChecker
from cogwork.sim.raft.shadow import quorums_of
from cogwork.sim.raft.store import Store

if TYPE_CHECKING:
    from cogwork.sim.raft.clients import Request

THREE = Membership(("a", "b", "c"), ("d",))


class Group:
    """Three voters and a learner, by hand."""

    def __init__(self) -> None:
        self.checker = InvariantChecker(quorums_of(THREE))
        self.stores = {name: Store(0) for name in "abcd"}
        for name, store in self.stores.items():
            self.checker.on_new(name, store)

    def write(self, name: str, *entries: Entry, durable: bool = True) -> None:
        self.checker.on_write(name, entries)
        for entry in entries if durable else ():
            self.stores[name].take(("entry", entry))

    def state(self, name: str, term: int = 1, commit: int = 0, *, is_leader: bool = False) -> None:
        self.checker.last_term = max(self.checker.last_term, term)
        if is_leader:
            for voter in "abcde":
                self.checker.votes.setdefault((voter, term), name)
        self.checker.on_state(name, term, commit, is_leader=is_leader)

    def commit(self, *entries: Entry) -> None:
        """Have a leader commit entries that a and b have."""
        for name in "ab":
            self.write(name, *entries)
        self.state("a", entries[-1].term, entries[-1].index, is_leader=True)


@pytest.fixture
def group() -> Group:
    return Group()


def entry(index: int, term: int = 1, payload: bytes = b"x") -> Entry:
    return Entry(index, term, int(Kind.COMMAND), payload)


def members(index: int, membership: Membership, term: int = 1) -> Entry:
    return Entry(index, term, int(Kind.MEMBERS), membership.to_bytes())


def chunk(offset: int, batch: Batch) -> Chunk:
    return Chunk(offset, 0, 0, batch)


def request(batch: Batch, floor: int = 0) -> Request:
    made = SimpleNamespace(batch=batch, floor=floor, client=SimpleNamespace(name="p"))
    return cast("Request", made)


def test_two_leaders_of_one_term(group: Group) -> None:
    group.state("a", is_leader=True)
    group.state("a", is_leader=True)
    with pytest.raises(Broken, match="term 1 has two leaders, a and b"):
        group.state("b", is_leader=True)


def test_a_leader_for_whom_too_few_have_voted(group: Group) -> None:
    group.checker.on_vote("b", 1, "a")
    group.checker.on_state("a", 1, 0, is_leader=True)
    group.checker.on_vote("b", 2, "c")
    with pytest.raises(Broken, match=r"a leads term 2, and of .* only \['a'\] have voted for it"):
        group.checker.on_state("a", 2, 0, is_leader=True)


def test_a_leader_for_whom_one_half_of_a_joint_membership_has_voted(group: Group) -> None:
    group.write("a", members(1, Membership(("a",), (), ("a", "b", "c"))))
    with pytest.raises(Broken, match=r"of \['a', 'b', 'c'\] only \['a'\]"):
        group.checker.on_state("a", 1, 0, is_leader=True)


def test_a_term_that_no_candidate_began(group: Group) -> None:
    group.checker.on_state("a", 1, 0, is_leader=False, is_candidate=True)
    group.checker.on_state("b", 1, 0, is_leader=False)
    with pytest.raises(Broken, match="b is in term 2, for which nobody stands"):
        group.checker.on_state("b", 2, 0, is_leader=False)


def test_a_leader_without_what_is_committed(group: Group) -> None:
    group.commit(entry(1))
    with pytest.raises(Broken, match="c leads term 2 without entry 1"):
        group.state("c", 2, is_leader=True)


def test_one_entry_with_two_payloads(group: Group) -> None:
    group.write("a", entry(1))
    with pytest.raises(Broken, match="b has another entry 1 of term 1"):
        group.write("b", entry(1, payload=b"y"))


def test_one_entry_with_two_pasts(group: Group) -> None:
    group.write("a", entry(1, 1), entry(2, 3))
    with pytest.raises(Broken, match="b has another entry 2 of term 3"):
        group.write("b", entry(1, 2), entry(2, 3))


def test_a_hole_in_a_log(group: Group) -> None:
    with pytest.raises(Broken, match="a leaves a hole before entry 2"):
        group.write("a", entry(2))


def test_a_committed_entry_that_is_replaced(group: Group) -> None:
    group.commit(entry(1))
    group.state("b", 1, 1)
    with pytest.raises(Broken, match="b replaces entry 1, which is committed"):
        group.write("b", entry(1, 2))


def test_a_log_that_is_cut_without_a_conflict(group: Group) -> None:
    group.commit(entry(1), entry(2))
    group.state("b", 1, 1)
    with pytest.raises(Broken, match="b cuts its log behind 1, which did not conflict"):
        group.write("b", entry(1))


def test_a_leader_that_replaces_its_own_entry(group: Group) -> None:
    group.write("a", entry(1))
    group.state("a", is_leader=True)
    with pytest.raises(Broken, match="a replaces entry 1 of its own log"):
        group.write("a", entry(1))


def test_a_commit_that_only_one_disk_has(group: Group) -> None:
    group.write("a", entry(1))
    group.write("b", entry(1), durable=False)
    with pytest.raises(Broken, match=r"which only \['a'\] have on disk"):
        group.state("a", 1, 1, is_leader=True)


def test_a_learner_does_not_count(group: Group) -> None:
    group.write("a", entry(1))
    group.write("d", entry(1))
    with pytest.raises(Broken, match=r"which only \['a', 'd'\] have on disk"):
        group.state("a", 1, 1, is_leader=True)


def test_a_joint_membership_needs_both_majorities(group: Group) -> None:
    joint = Membership(("a", "d", "e"), (), ("a", "b", "c"))
    for name in "ab":
        group.write(name, members(1, joint))
    with pytest.raises(Broken, match="which only"):
        group.state("a", 1, 1, is_leader=True)
    group.write("d", members(1, joint))
    group.state("a", 1, 1, is_leader=True)
    assert group.checker.commit == 1


def test_a_commit_beyond_the_log(group: Group) -> None:
    group.write("a", entry(1))
    with pytest.raises(Broken, match="a commits 2, and its log ends at 1"):
        group.state("a", 1, 2)


def test_two_commits_of_one_index(group: Group) -> None:
    group.commit(entry(1, 2))
    group.write("c", entry(1, 1))
    with pytest.raises(Broken, match="c commits entry 1 of term 1; it was committed with term 2"):
        group.state("c", 2, 1)


def test_terms_and_commits_that_go_back(group: Group) -> None:
    group.commit(entry(1))
    with pytest.raises(Broken, match="a goes back from commit index 1 to 0"):
        group.state("a", 1, 0, is_leader=True)
    with pytest.raises(Broken, match="a goes back from term 1 to 0"):
        group.state("a", 0)


def test_a_term_that_was_spoken_of_and_is_forgotten(group: Group) -> None:
    group.checker.shadows["a"].sent_term = 4
    group.stores["a"].take(("hard", HardState(3)))
    with pytest.raises(Broken, match="a begins again in term 3, and has spoken in term 4"):
        group.checker.on_start("a")


def test_what_is_applied_too_early_or_out_of_turn(group: Group) -> None:
    group.write("a", entry(1))
    with pytest.raises(Broken, match="a applies 1; its commit index is 0"):
        group.checker.on_applied("a", 1)
    with pytest.raises(Broken, match="a applies 2 after 0"):
        group.checker.on_applied("a", 2)


def test_answers_that_differ(group: Group) -> None:
    group.commit(entry(1))
    group.state("b", 1, 1)
    group.checker.on_apply("a", entry(1), Appended(0, 0), None)
    with pytest.raises(Broken, match="b answers"):
        group.checker.on_apply("b", entry(1), Appended(0, 1), None)


def test_entries_that_differ(group: Group) -> None:
    group.commit(entry(1))
    group.state("b", 1, 1)
    group.checker.on_apply("a", entry(1), None, None)
    with pytest.raises(Broken, match="b applies another entry 1"):
        group.checker.on_apply("b", entry(1, payload=b"y"), None, None)


def test_what_nobody_asked_for_and_what_comes_twice(group: Group) -> None:
    checker = group.checker
    counted = Batch.of([b"1"], b"p", 0)
    plain = Batch.of([b"2"])
    group.commit(*(entry(index) for index in range(1, 8)))
    with pytest.raises(Broken, match="a delivers what nobody asked for"):
        checker.on_apply("a", entry(1), None, chunk(0, counted))
    checker.on_request(request(counted))
    checker.on_request(request(plain))
    checker.on_apply("a", entry(2), None, chunk(0, counted))
    with pytest.raises(Broken, match=r"a delivers sequence 0 of b'p': 1 is next"):
        checker.on_apply("a", entry(3), None, chunk(1, counted))
    checker.on_apply("a", entry(4), None, chunk(1, plain))
    with pytest.raises(Broken, match="a delivers twice"):
        checker.on_apply("a", entry(5), None, chunk(2, plain))
    with pytest.raises(Broken, match="a delivers offset 7 after 2"):
        checker.on_apply("a", entry(6), None, chunk(7, plain))


def test_answers_that_are_not_true(group: Group) -> None:
    checker, batch = group.checker, Batch.of([b"1"], b"p", 0)
    group.commit(entry(1))
    checker.on_request(request(batch))
    with pytest.raises(Broken, match="which is not there"):
        checker.on_answer(request(batch), Appended(0, 0))
    checker.on_apply("a", entry(1), None, chunk(0, batch))
    with pytest.raises(Broken, match="it is at 0"):
        checker.on_answer(request(batch), Appended(0, 1))
    with pytest.raises(Broken, match="5 records had been answered before"):
        checker.on_answer(request(batch, floor=5), Appended(0, 0))
    checker.on_answer(request(batch), Appended(0, 0))
    assert checker.answered_end == 1


def test_a_read_that_does_not_see_what_was_answered(group: Group) -> None:
    with pytest.raises(Broken, match="sees 3 records of 4"):
        group.checker.on_read("a", 4, 3)


NEW = Membership(("a", "b", "d"), (), ("a", "b", "c"))


def test_a_new_voter_that_has_not_caught_up(group: Group) -> None:
    checker = group.checker
    group.commit(entry(1), entry(2))
    checker.on_change("a", Membership(NEW.voters))
    group.write("a", entry(3))
    with pytest.raises(Broken, match=r"makes \['a', 'b', 'd'\] voters, and \['d'\] have not .* 2"):
        group.write("a", members(4, NEW))


def test_a_new_voter_that_has_caught_up(group: Group) -> None:
    group.commit(entry(1), entry(2))
    group.checker.on_change("a", Membership(NEW.voters))
    group.write("d", entry(1), entry(2))
    group.write("a", entry(3))
    group.checker.on_change("a", Membership(NEW.voters))
    group.write("a", members(4, NEW))


def test_most_new_voters_have_not_caught_up(group: Group) -> None:
    group.commit(entry(1), entry(2))
    fewer = Membership(("a", "c"), (), ("a", "b", "c"))
    group.checker.on_change("a", Membership(fewer.voters))
    with pytest.raises(Broken, match=r"makes \['a', 'c'\] voters, and \['c'\] have not caught up"):
        group.write("a", members(3, fewer))


def test_a_command_while_a_leader_hands_over(group: Group) -> None:
    checker = group.checker
    group.commit(entry(1))
    checker.on_transfer("a", "b")
    checker.on_transfer_ended("a", "c")
    group.write("a", members(2, THREE))
    with pytest.raises(Broken, match="a takes entry 3 while it hands over"):
        group.write("a", entry(3))
    checker.on_transfer_ended("a", "b")
    group.write("a", entry(4))


def test_snapshots_that_differ_or_go_back(group: Group) -> None:
    checker = group.checker
    group.commit(entry(1), entry(2))
    checker.on_snapshot("a", Snapshot(2, 1, THREE), b"state")
    with pytest.raises(Broken, match="b has another snapshot at 2"):
        checker.on_snapshot("b", Snapshot(2, 1, THREE), b"other")
    with pytest.raises(Broken, match="which is not committed"):
        checker.on_snapshot("b", Snapshot(3, 1, THREE), b"state")
    with pytest.raises(Broken, match="a goes back from commit index 2 to a snapshot at 1"):
        checker.on_received("a", Snapshot(1, 1, THREE))
    checker.on_received("c", Snapshot(2, 1, THREE))
    checker.on_restore("c", 2)
    with pytest.raises(Broken, match="c goes back from 2 to a snapshot at 1"):
        checker.on_restore("c", 1)
    assert checker.shadows["c"].commit == 2
