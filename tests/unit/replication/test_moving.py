"""What a leader does to bring a move about: whom it asks, and when it leaves everything alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

from cogwork.plugin.engine.placement import Placement
from cogwork.raft.membership import Membership
from cogwork.replication.calls import GetMove, MoveIs, StreamKey
from cogwork.replication.moving import ASK_S, Moving

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.replication.calls import Answer


class World:
    """The replica of `a`, which leads, and all around it."""

    def __init__(self, voters: str, learners: str = "", old_voters: str = "") -> None:
        self.asked: dict[str, Callable[[Answer], None]] = {}
        self.changes: list[Membership] = []
        self.done: list[int] = []
        self.confirm: list[Callable[[], object]] = []
        self.time_s = 0.0
        self.number = self.move = 0
        self.is_closed = False
        self.name, self.cluster, self.own, self.term, self.commit = "orders", self, "a", 1, 5
        self.membership = Membership(tuple(voters), tuple(learners), tuple(old_voters))
        changing = SimpleNamespace(is_under_way=bool(old_voters))
        self.leadership = SimpleNamespace(first_index=1, changes=changing)
        self.group = self.stream = self
        self.key = StreamKey("orders", 17)
        self.placement = Placement([*"abc"], founders=[*"abc"])
        self.moving = Moving(self, self)  # type: ignore[arg-type]  # all that is asked of both

    # -- the replica, and the service

    def when_current(self, then: Callable[[], object]) -> None:
        self.confirm.append(then)

    def now_s(self) -> float:
        return self.time_s

    def next_number(self) -> int:
        self.number += 1
        return self.number

    def send_call(
        self, to: str, call: object, _kind: object, answered: Callable[[Answer], None]
    ) -> None:
        assert isinstance(call, GetMove)
        self.asked[to] = answered

    def change(self, group: int, membership: Membership) -> None:
        del group
        self.changes.append(membership)

    def moved(self, group: int, move: int, floor: tuple[int, int]) -> None:
        del group
        assert floor == (self.term, self.commit)
        self.done.append(move)

    # -- what the tests do

    def want(self, voters: str, learners: str = "") -> None:
        self.placement = self.placement.moved([*voters], [*learners])
        self.go_on()

    def go_on(self) -> None:
        self.time_s += ASK_S
        assert self.moving.go_on()

    def know(self, containers: str, move: int = 1) -> None:
        for each in containers:
            self.asked.pop(each)(MoveIs(0, move))


def test_nothing_is_done_before_a_majority_knows_of_the_move() -> None:
    world = World("abc")
    world.want("ab")
    assert sorted(world.asked) == ["b", "c"]
    assert world.changes == []
    world.know("c")
    assert world.changes == []  # of those that are to hold it, b is not heard of
    world.know("b")
    assert world.changes == [Membership(("a", "b"))]


def test_a_leader_that_lags_does_nothing() -> None:
    world = World("abc")
    world.want("ab")
    world.know("c", 2)
    world.know("b")
    assert world.changes == []
    world.want("abc")
    world.know("b", 2)
    assert world.changes == []
    world.confirm.pop()()
    assert world.done == [2]


def test_what_was_said_in_another_term_does_not_count() -> None:
    world = World("abc")
    world.want("abd")
    world.know("d")
    late = world.asked["b"]
    world.term = 3
    world.go_on()
    late(MoveIs(0, 1))
    world.know("b")
    assert world.changes == []
    world.know("d")
    assert world.changes == [Membership(("a", "b", "d"))]


def test_both_halves_of_the_voters_have_to_know() -> None:
    world = World("ade", old_voters="abc")
    world.want("ab")
    world.know("bc")
    assert world.changes == []
    world.know("d")
    assert world.changes == [Membership(("a", "b"))]


def test_each_new_voter_has_to_know_and_a_new_learner_comes_later() -> None:
    world = World("abc")
    world.want("abcde", "x")
    world.know("bcd")
    assert world.changes == []
    world.know("e")
    assert world.changes == [Membership(tuple("abcde"))]
    world.membership = Membership(tuple("abcde"))
    world.go_on()
    assert len(world.changes) == 1
    assert world.confirm == []
    world.know("x")
    assert world.changes[1:] == [Membership(tuple("abcde"), ("x",))]


def test_a_move_that_changes_nothing_is_done_when_a_majority_knows_and_it_still_leads() -> None:
    world = World("abc")
    world.placement = world.placement.moved([*"abd"], []).moved([*"abc"], [])
    world.go_on()
    assert world.confirm == []
    world.know("b", 2)
    world.go_on()
    assert world.done == []
    (confirm,) = world.confirm
    confirm()
    assert world.done == [2]
    world.term = 4
    world.go_on()
    assert world.done == [2]
