"""All groups of a container: frames, heartbeats, sleep, time."""

from __future__ import annotations

from math import inf
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from raft_hosts import Kept, Lab, Planned

from cogwork.plugin.engine.errors import Busy
from cogwork.raft import unpersisted
from cogwork.raft.core import Recovered
from cogwork.raft.errors import Malformed
from cogwork.raft.group import Group
from cogwork.raft.heartbeats import Beat
from cogwork.raft.host import RaftHost
from cogwork.raft.membership import Membership
from cogwork.raft.messages import Append, Heartbeat
from cogwork.raft.ready import LeaderChanged
from cogwork.raft.settings import Settings
from cogwork.raft.snapshot import Snapshot
from cogwork.raft.wire import VERSION, decode, encode

if TYPE_CHECKING:
    from cogwork.raft.messages import Message


ALONE = Recovered(snapshot=Snapshot(membership=Membership(("a",))))


def frame(group: int, message: Message | Beat) -> bytes:
    return b"".join((bytes((VERSION,)), *encode(group, message)))


def lab_of(groups: int = 1, names: str = "abc", **settings: Any) -> Lab:
    lab = Lab(names, Settings(quiesce_s=1.0, priority_hold_s=1e9, **settings))
    for number in range(1, groups + 1):
        lab.open(number, names)
    lab.run(2.0)
    return lab


def test_every_group_elects_and_commits() -> None:
    lab = lab_of(groups=5)
    for number in range(1, 6):
        assert lab.propose(number, b"%d" % number)
    lab.run(0.5)
    for number in range(1, 6):
        assert [lab.applied[name, number] for name in "abc"] == [[b"%d" % number]] * 3


def test_what_all_groups_have_for_a_neighbour_in_a_turn_is_one_frame_and_one_write() -> None:
    lab = lab_of(groups=20)
    leader = lab.leader(1)
    host = lab.hosts[leader]
    led = [number for number in range(1, 21) if lab.leader(number) == leader]
    assert len(led) > 3
    for number in led:
        host.propose(number, b"x", lab.now_s)
    ready = host.ready()
    assert sorted(to for to, _ in ready.frames) == sorted(set("abc") - {leader})
    assert len({number for number, each in ready.groups if each.write}) == len(led)
    assert ready.number > 0
    kinds = [type(message) for _, parts in ready.frames for _, message in decode(b"".join(parts))]
    assert kinds.count(Append) == 2 * len(led)


def test_an_idle_group_sleeps_and_only_containers_talk() -> None:
    lab = lab_of(groups=30)
    lab.run(3.0)
    assert [lab.asleep(number) for number in range(1, 31)] == ["abc"] * 30
    lab.sent.clear()
    lab.run(5.0)
    messages = [message for _, _, data in lab.sent for _, message in decode(data)]
    assert {type(message).__name__ for message in messages} == {"Beat"}
    assert len(messages) < 6 * (5.0 / 0.05)


def test_a_proposal_wakes_a_group() -> None:
    lab = lab_of()
    lab.run(3.0)
    assert lab.asleep(1) == "abc"
    assert lab.propose(1, b"x")
    lab.run(0.1)
    assert [lab.applied[name, 1] for name in "abc"] == [[b"x"]] * 3
    assert lab.asleep(1) == ""
    lab.run(2.0)
    assert lab.asleep(1) == "abc"


def test_a_sleeping_group_gets_a_new_leader_when_the_leaders_container_dies() -> None:
    lab = lab_of(groups=10)
    lab.run(3.0)
    gone = lab.leader(1)
    led = [number for number in range(1, 11) if lab.leader(number) == gone]
    lab.crash(gone)
    lab.run(3.0)
    for number in led:
        assert lab.leader(number) != gone
        assert lab.propose(number, b"x")
    lab.run(3.0)
    for number in range(1, 11):
        assert len(lab.asleep(number)) == 2, "one that is gone keeps nobody awake"
    lab.start(gone)
    lab.run(3.0)
    for number in led:
        assert lab.applied[gone, number] == [b"x"]


def test_a_lost_connection_is_as_good_as_silence_and_quicker() -> None:
    lab = lab_of(groups=5)
    lab.run(3.0)
    gone = lab.leader(1)
    lab.crash(gone)
    for name in lab.live():
        lab.hosts[name].lost(gone, lab.now_s)
    lab.run(0.6)
    assert lab.leader(1) != gone


def test_a_leader_that_restarts_while_its_group_sleeps_is_replaced() -> None:
    lab = lab_of()
    lab.run(3.0)
    leader = lab.leader(1)
    lab.start(leader)
    lab.run(2.0)
    assert lab.propose(1, b"x")
    lab.run(0.3)
    assert [lab.applied[name, 1] for name in "abc"] == [[b"x"]] * 3


def test_a_follower_that_restarts_while_its_group_sleeps_gets_everything() -> None:
    lab = lab_of()
    assert lab.propose(1, b"x")
    lab.run(3.0)
    assert lab.asleep(1) == "abc"
    follower = next(name for name in "abc" if name != lab.leader(1))
    term = lab.group(follower, 1).term
    lab.start(follower)
    lab.run(2.0)
    assert lab.applied[follower, 1] == [b"x"]
    assert lab.group(follower, 1).term == term, "nobody was disturbed"


def test_a_container_that_was_stopped_deposes_nobody() -> None:
    lab = lab_of()
    follower = next(name for name in "abc" if name != lab.leader(1))
    term = lab.group(follower, 1).term
    lab.stopped.add(follower)
    lab.run(5.0)
    lab.stopped.clear()
    lab.run(2.0)
    assert {lab.group(name, 1).term for name in "abc"} == {term}


@pytest.mark.parametrize("seed", range(20))
def test_a_tick_when_it_is_due_is_never_too_early(seed: int) -> None:
    """Sums round: after a stop those of the host, always those of a caller with another zero."""
    random = Random(seed)
    zero_s = random.uniform(0, 1e6)
    now_s, rounded = 0.0, 0
    host = RaftHost("a", 1, random, now_s)
    host.open(1, Recovered(snapshot=Snapshot(membership=Membership(("a", "b")))), now_s)
    for _ in range(50):
        host.ready()
        now_s += random.uniform(0, 1000)
        host.tick(now_s)
        for _ in range(3):
            host.ready()
            due_s = host.wake_s
            now_s = max(now_s, due_s + zero_s - zero_s)
            rounded += now_s < due_s
            host.tick(now_s)
            host.ready()
            assert host.wake_s > due_s
    assert rounded, "in none of these does the sum come out smaller"


def test_a_leader_that_was_stopped_is_replaced_and_learns_of_it() -> None:
    lab = lab_of()
    leader = lab.leader(1)
    lab.propose(1, b"kept")
    lab.run(0.1)
    lab.stopped.add(leader)
    lab.run(1.5)
    assert lab.leader(1) != leader
    assert lab.propose(1, b"new")
    lab.stopped.clear()
    lab.run(1.0)
    assert lab.leader(1) != leader
    assert [lab.applied[name, 1] for name in "abc"] == [[b"kept", b"new"]] * 3


def test_containers_that_share_no_group_do_not_talk() -> None:
    lab = Lab("abcd")
    lab.open(1, "ab")
    lab.open(2, "cd")
    lab.run(2.0)
    assert {frozenset(each[:2]) for each in lab.sent} == {frozenset("ab"), frozenset("cd")}


def test_learners_do_not_watch_each_other_and_voters_watch_them_rarely() -> None:
    lab = Lab("abcd")
    lab.open(1, "ab", "cd")
    lab.run(6.0)
    pairs = [frozenset(each[:2]) for each in lab.sent]
    assert frozenset("cd") not in pairs
    assert pairs.count(frozenset("ac")) < pairs.count(frozenset("ab")) / 4


def test_a_host_without_neighbours_and_with_idle_groups_needs_no_time() -> None:
    lab = Lab("a")
    assert lab.hosts["a"].wake_s == inf
    lab.open(1, "a")
    lab.run(3.0)
    assert lab.asleep(1) == "a"
    assert lab.hosts["a"].wake_s == inf
    assert lab.propose(1, b"x")
    lab.run(0.1)
    assert lab.applied["a", 1] == [b"x"]


def test_a_group_that_is_not_here_is_told_of() -> None:
    lab = lab_of()
    lab.hosts["a"].receive("b", frame(77, Heartbeat(1, 0)), lab.now_s)
    assert lab.hosts["a"].ready().strangers == {("b", 77)}


def test_a_new_member_joins_a_running_group() -> None:
    lab = lab_of(names="abc")
    assert lab.propose(1, b"x")
    lab.start("d")
    lab.join(1, "d")
    leader = lab.leader(1)
    lab.hosts[leader].change(1, Membership(("a", "b", "c", "d")), lab.now_s)
    lab.run(2.0)
    assert lab.group("d", 1).membership == Membership(("a", "b", "c", "d"))
    assert lab.applied["d", 1] == [b"x"]


def test_hostile_octets_raise_and_what_came_before_counts() -> None:
    lab = lab_of()
    follower = next(name for name in "abc" if name != lab.leader(1))
    term = lab.group(follower, 1).term
    data = frame(1, Heartbeat(term + 1, 0)) + b"\0\0"
    with pytest.raises(Malformed):
        lab.hosts[follower].receive("c" if follower != "c" else "a", data, lab.now_s)
    assert lab.group(follower, 1).term == term + 1


def test_what_no_member_sends_is_reported_and_passed_over() -> None:
    lab = lab_of()
    leader = lab.leader(1)
    term = lab.group(leader, 1).term
    lab.hosts[leader].receive("x", frame(1, Append(term, 0, 0, 0)), lab.now_s)
    (report,) = lab.hosts[leader].ready().reports
    assert report.startswith("group 1: x leads in term")
    assert lab.leader(1) == leader


def test_a_disk_that_is_behind_is_told_to_whoever_proposes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpersisted, "UNPERSISTED_BYTES_MAX", 1000)
    host = RaftHost("a", 1, Random(1), 0.0)
    host.open(1, ALONE, 0.0)
    while host.group(1).leadership is None:
        host.persisted(host.ready().number, 0.0)
        host.tick(host.wake_s)
    host.persisted(host.ready().number, 0.0)
    for _ in range(3):
        host.propose(1, bytes(1000), host.wake_s)
    ready = host.ready()
    with pytest.raises(Busy, match="disk is behind"):
        host.propose(1, b"", host.wake_s)
    host.persisted(ready.number, 0.0)
    host.propose(1, b"", host.wake_s)


def test_a_write_of_a_group_that_was_closed_says_nothing_of_its_successor() -> None:
    host = RaftHost("a", 1, Random(1), 0.0)
    numbers = []
    now_s = 0.0
    for _ in range(2):
        host.open(1, ALONE, now_s)
        while not (number := host.ready().number):
            now_s += 0.05
            host.tick(now_s)
        numbers.append(number)
        if len(numbers) == 1:
            host.close(1)
    host.persisted(numbers[0], 0.0)
    assert host.group(1).leadership is None
    host.persisted(numbers[1], 0.0)
    assert host.group(1).leadership is not None


def trouble(lab: Lab, random: Random) -> None:
    """Make something worse or better; at most one container is down, and one link cut."""
    lab.loss = random.choice((0.0, 0.1, 0.3))
    one, other = random.sample("abcde", 2)
    choice = random.random()
    if choice < 0.2 and not lab.down:
        lab.crash(one)
    elif choice < 0.4 and lab.down:
        lab.start(next(iter(lab.down)))
    elif choice < 0.6:
        lab.cuts = {frozenset((one, other))}
    elif choice < 0.7:
        lab.cuts = set()


@pytest.mark.parametrize("seed", range(8))
def test_in_a_bad_network_all_members_apply_the_same(seed: int) -> None:
    lab = Lab("abcde", Settings(quiesce_s=0.3, priority_hold_s=1.0), seed=seed)
    for number in (1, 2, 3):
        lab.open(number, "abcde"[number - 1 :] + "abcde"[: number - 1])
    random = Random(seed)
    for place in range(60):
        trouble(lab, random)
        for number in (1, 2, 3):
            lab.propose(number, b"%d" % (3 * place + number))
        lab.run(random.choice((0.05, 0.3, 1.0)))
    lab.loss, lab.cuts = 0.0, set()
    for name in list(lab.down):
        lab.start(name)
    lab.run(6.0)
    for number in (1, 2, 3):
        assert lab.propose(number, b"last")
    lab.run(4.0)
    for number in (1, 2, 3):
        applied = [lab.applied[name, number] for name in "abcde"]
        assert applied[0][-1] == b"last"
        assert len(applied[0]) > 10
        assert applied == [applied[0]] * 5
        assert lab.asleep(number) == "abcde"
    assert lab.reports == []


def test_all_hear_of_the_leader() -> None:
    lab = lab_of()
    told = {name for name, _, event in lab.events if isinstance(event, LeaderChanged)}
    assert told == set("abc")


def test_a_newcomer_that_comes_when_all_sleep_is_found() -> None:
    lab = Lab("abcd", Settings(quiesce_s=1.0, priority_hold_s=1e9))
    lab.open(1, "abc")
    lab.run(2.0)
    lab.propose(1, b"x")
    lab.hosts[lab.leader(1)].change(1, Membership(tuple("abc"), ("d",)), lab.now_s)
    lab.run(9.0)
    assert lab.asleep(1) == "abc"
    lab.join(1, "d")
    lab.run(3.0)
    assert lab.applied["d", 1] == [b"x"]
    lab.run(3.0)
    assert lab.asleep(1) == "abcd"


def test_a_container_that_comes_back_without_its_disk_gets_everything_again() -> None:
    lab = lab_of()
    for number in range(20):
        lab.propose(1, b"%d" % number)
    lab.run(0.5)
    lost = min(set("abc") - {lab.leader(1)})
    lab.crash(lost)
    lab.run(0.2)
    lab.kept[lost][1] = Kept(Membership(tuple("abc")))
    lab.start(lost)
    leader, term = lab.leader(1), lab.group(lab.leader(1), 1).term
    lab.run(3.0)
    assert (lab.leader(1), lab.group(leader, 1).term) == (leader, term), "without an election"
    assert lab.applied[lost, 1] == [b"%d" % number for number in range(20)]
    (other,) = set("abc") - {lost, leader}
    lab.crash(other)
    lab.propose(1, b"by two of three")
    lab.run(1.0)
    assert lab.applied[leader, 1][-1] == lab.applied[lost, 1][-1] == b"by two of three"


def test_hosts_that_know_of_no_group_they_share_do_not_answer_each_other_for_ever() -> None:
    one, other = (RaftHost(name, 1, Random(1), 0.0) for name in "ab")
    for host in (one, other):
        host.open(1, Recovered(), 0.0)
    one.receive("b", frame(0, Beat(7, 5_000_000)), 0.1)
    ((to, parts),) = one.ready().frames
    assert to == "b"
    other.receive("a", b"".join(parts), 0.2)
    assert other.ready().frames == []


@pytest.mark.parametrize("what", ["tick", "rest", "step", "suspect", "greet", "persisted", "ready"])
def test_a_group_that_fails_at_anything_is_told_once_and_costs_the_others_nothing(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = lab_of(groups=3)
    leader = lab.leader(2)
    other = min(set("abc") - {leader})
    failing = lab.group(leader, 2)
    done = getattr(Group, what)

    def fail(group: Group, *arguments: object, **named: object) -> object:
        if group is failing:
            raise Planned
        return done(group, *arguments, **named)

    monkeypatch.setattr(Group, what, fail)
    assert all(lab.propose(number, b"1") for number in (1, 2, 3))
    lab.run(1.0)
    lab.stopped.add(other)
    lab.run(4.0)
    lab.stopped.clear()
    lab.run(4.0)
    assert lab.faults == [(leader, 2)]
    assert all(lab.propose(number, b"2") for number in (1, 3))
    lab.run(1.0)
    for number in (1, 3):
        assert [lab.applied[name, number] for name in "abc"] == [[b"1", b"2"]] * 3


def test_a_group_that_failed_is_given_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = lab_of(groups=2)
    host, failing, seen = lab.hosts["a"], lab.group("a", 1), list[str]()

    def fail(group: Group, *_arguments: object) -> None:
        if group is failing:
            seen.append("stepped")
            raise Planned

    monkeypatch.setattr(Group, "step", fail)
    term = lab.group("a", 1).term
    heartbeat = frame(1, Heartbeat(term, 0))
    frames = heartbeat + heartbeat[1:]
    host.receive("b", frames, lab.now_s)
    host.tick(lab.now_s + 1.0)
    host.lost("b", lab.now_s)
    ready = host.ready()
    assert seen == ["stepped"]
    ((number, fault),) = ready.faults
    assert (number, type(fault)) == (1, Planned)
    assert 1 not in [each for each, _ in ready.groups]
    assert not host.ready().faults
