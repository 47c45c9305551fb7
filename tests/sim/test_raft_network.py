"""The ways between simulated replicas."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from cogwork.sim.clock import Clock
from cogwork.sim.raft.network import CALM, Network


class Place:
    """Where messages arrive."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.arrived: list[tuple[str, str, object]] = []
        self.network = Network(self.clock, Random(5), self.take)

    def take(self, sender: str, receiver: str, message: object) -> None:
        self.arrived.append((sender, receiver, message))

    def send(self, count: int = 100) -> list[object]:
        """Send numbers; return what arrives."""
        self.arrived.clear()
        for number in range(count):
            self.network.send("a", "b", number)
        self.clock.run_until(self.clock.now_s + 5)
        return [message for _, _, message in self.arrived]


def test_a_calm_way_keeps_the_order_and_loses_nothing() -> None:
    assert Place().send() == list(range(100))


def test_faults_lose_double_and_reorder() -> None:
    place = Place()
    place.network.faults = replace(CALM, loss=0.3)
    assert 50 < len(place.send()) < 90
    place.network.faults = replace(CALM, duplication=0.3)
    assert 110 < len(place.send()) < 150
    place.network.faults = replace(CALM, reorder=0.3)
    arrived = place.send()
    assert sorted(arrived, key=repr) == sorted(range(100), key=repr)
    assert arrived != list(range(100))
    place.network.heal()
    assert place.send() == list(range(100))


def test_a_blocked_way_swallows_one_direction_and_what_is_under_way() -> None:
    place = Place()
    place.network.send("a", "b", "under way")
    place.network.blocked.add(("a", "b"))
    place.network.send("b", "a", "back")
    assert place.send() == ["back"]


def test_two_sides_are_separated_both_ways() -> None:
    place = Place()
    place.network.separate(["a", "c"], ["b"])
    assert place.network.blocked == {("a", "b"), ("b", "a"), ("c", "b"), ("b", "c")}


def test_a_slow_way_takes_longer() -> None:
    place = Place()
    place.network.delayed_s["a", "b"] = 1.0
    place.network.send("a", "b", "late")
    place.clock.run_until(0.9)
    assert place.arrived == []
    place.clock.run_until(1.1)
    assert len(place.arrived) == 1
