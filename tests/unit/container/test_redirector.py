"""Who is sent to which container: the decision itself, and crowds that dial one of three."""

from __future__ import annotations

import heapq
import itertools
import random
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

import pytest

from cogwork.amqp.redirect import KNOWN_HOSTS_MAX
from cogwork.container.connections.redirect import AGE_S, ARRIVAL_S, Newcomer, Redirector

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

NEWCOMER = Newcomer("amqp")

SWEEP_S = 1.0
"""How often a container of a crowd looks around."""


def sent_to(
    redirector: Redirector, clients: int, now_s: float = 0.0, newcomer: Newcomer = NEWCOMER
) -> str | None:
    """Return the host that a newcomer is sent to."""
    redirect = redirector.choose(newcomer, clients, now_s)
    return None if redirect is None else redirect.target.name


def of_two(margin: int | None = 10, *, b: int = 0, c: int = 0) -> Redirector:
    """Make a container's redirector that knows of two others."""
    redirector = Redirector(margin)
    redirector.update("b", b, ["amqp://b:5672"], 0.0)
    redirector.update("c", c, ["amqp://c:5672"], 0.0)
    return redirector


def test_who_is_alone_keeps_all() -> None:
    assert sent_to(Redirector(0), 1000) is None


def test_within_the_margin_newcomers_stay() -> None:
    assert sent_to(of_two(b=100, c=90), 100) is None


def test_beyond_the_margin_they_go_where_the_fewest_are() -> None:
    assert sent_to(of_two(b=100, c=90), 101) == "c"


def test_those_on_their_way_count() -> None:
    redirector = of_two(margin=0, b=1)
    found = [sent_to(redirector, 1000) for _ in range(5)]
    assert found == ["c", "b", "c", "b", "c"]


def test_without_a_margin_nobody_is_sent_away() -> None:
    assert sent_to(of_two(margin=None), 1000) is None


def test_who_drains_sends_everybody_away() -> None:
    redirector = of_two(margin=None, b=1000, c=2000)
    redirector.is_draining = True
    assert sent_to(redirector, 0) == "b"
    assert sent_to(redirector, 0, newcomer=Newcomer("amqp", redirects=5)) == "b"


def test_who_drains_alone_keeps_newcomers() -> None:
    redirector = of_two()
    redirector.is_draining = True
    redirector.remove("b")
    redirector.remove("c")
    assert sent_to(redirector, 1000) is None


def test_who_was_redirected_already_is_kept() -> None:
    assert sent_to(of_two(), 1000, newcomer=Newcomer("amqp", redirects=1)) is None


def test_nobody_is_sent_to_one_that_is_gone() -> None:
    redirector = of_two(c=5)
    redirector.remove("b")
    redirector.remove("nobody")
    assert sent_to(redirector, 1000) == "c"


def test_newcomers_go_where_their_language_is_spoken() -> None:
    redirector = of_two()
    redirector.update("d", 50, ["amqp://d:5672", "amqps://d:5671"], 0.0)
    assert sent_to(redirector, 1000, newcomer=Newcomer("amqps")) == "d"
    assert sent_to(redirector, 1000, newcomer=Newcomer("wss")) is None


def test_loopback_is_for_those_on_this_machine() -> None:
    redirector = Redirector(0)
    redirector.update("b", 0, ["amqp://127.0.0.1:5673"], 0.0)
    assert sent_to(redirector, 1000) is None
    assert sent_to(redirector, 1000, newcomer=Newcomer("amqp", is_near=True)) == "127.0.0.1"


def test_urls_that_lead_nowhere_are_left_out() -> None:
    redirector = Redirector(0)
    redirector.update("b", 0, ["", "amqp://", "amqp://b", "b:5672", "amqp://b:5673"], 0.0)
    found = redirector.choose(NEWCOMER, 1000, 0.0)
    assert found is not None
    assert found.target == ("b", 5673)
    assert found.known_hosts == ()


def test_known_hosts_are_all_others_those_with_the_fewest_first() -> None:
    redirector = of_two(b=30, c=20)
    redirector.update("d", 10, ["amqp://d:1", "amqp://d:2"], 0.0)
    found = redirector.choose(NEWCOMER, 1000, 0.0)
    assert found is not None
    assert found.target == ("d", 1)
    assert found.known_hosts == (("d", 2), ("c", 5672), ("b", 5672))


def test_known_hosts_are_no_more_than_a_client_tries() -> None:
    redirector = Redirector(0)
    for number in range(100):
        redirector.update(str(number), 0, [f"amqp://host{number}:5672"], 0.0)
    found = redirector.choose(NEWCOMER, 1000, 0.0)
    assert found is not None
    assert len(found.known_hosts) == KNOWN_HOSTS_MAX


def test_figures_that_have_grown_count_those_who_arrived() -> None:
    redirector = of_two(margin=0, c=5)
    assert [sent_to(redirector, 1000) for _ in range(4)] == ["b"] * 4
    redirector.update("b", 3, ["amqp://b:5672"], 0.1)  # three of four have arrived
    assert [sent_to(redirector, 1000, 0.1) for _ in range(3)] == ["b", "b", "c"]


def test_who_has_gone_elsewhere_does_not_count_for_ever() -> None:
    redirector = of_two(margin=0, c=2)
    assert [sent_to(redirector, 1000) for _ in range(2)] == ["b", "b"]
    for later_s, expected in ((ARRIVAL_S + AGE_S / 2, None), (ARRIVAL_S + AGE_S * 1.1, "b")):
        redirector.update("b", 0, ["amqp://b:5672"], later_s)
        assert sent_to(redirector, 1, later_s) == expected


# -- crowds


class Crowd:
    """Three containers that tell each other their figures, and clients that dial them.

    Everything takes time: a dial, a redirect, and figures. Each container looks around once a
    second: it counts its clients, and takes over what the last hellos said. Hellos go at times of
    their own.
    """

    def __init__(
        self,
        seed: int,
        *,
        margin: int = 10,
        hello_s: float = 1.0,
        latency_s: float = 0.02,
        tells: bool = True,
    ) -> None:
        self.random = random.Random(seed)
        self.latency_s = latency_s
        self.tells = tells
        self.clients: Counter[str] = Counter(a=0, b=0, c=0)
        self.redirects: Counter[int] = Counter()
        self.now_s = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._redirectors = {
            name: Redirector(margin, age_s=hello_s + SWEEP_S) for name in self.clients
        }
        self._hello_s = hello_s
        self._counted: Counter[str] = Counter()
        self._heard: dict[str, dict[str, int]] = {name: {} for name in self.clients}
        for name in self.clients:
            self._at(self.random.uniform(0, hello_s), partial(self._say_hello, name))
            self._at(self.random.uniform(0, SWEEP_S), partial(self._sweep, name))

    def dial(self, name: str, at_s: float, redirects: int = 0) -> None:
        """Have a client dial a container."""
        delay_s = self.random.expovariate(1 / self.latency_s)
        self._at(at_s + delay_s, lambda: self._arrive(name, redirects))

    def leave(self, name: str) -> None:
        """Have a client of a container leave."""
        self.clients[name] -= 1

    def run(self, until_s: float) -> None:
        """Let time pass."""
        while self._events and self._events[0][0] <= until_s:
            self.now_s, _, event = heapq.heappop(self._events)
            event()
        self.now_s = until_s

    def _at(self, at_s: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (at_s, next(self._numbers), event))

    def _arrive(self, name: str, redirects: int) -> None:
        newcomer = Newcomer("amqp", redirects=redirects if self.tells else 0)
        redirector = self._redirectors[name]
        redirect = redirector.choose(newcomer, self.clients[name], self.now_s)
        if redirect is None or redirects == 8:
            self.clients[name] += 1
            self.redirects[redirects] += 1
        else:
            self.dial(redirect.target.name, self.now_s, redirects + 1)

    def _say_hello(self, name: str) -> None:
        clients = self._counted[name]
        for other, heard in self._heard.items():
            if other != name:
                arrival_s = self.now_s + self.latency_s  # hellos do not overtake each other
                self._at(arrival_s, partial(heard.update, {name: clients}))
        self._at(self.now_s + self._hello_s, lambda: self._say_hello(name))

    def _sweep(self, name: str) -> None:
        self._counted[name] = self.clients[name]
        for other, clients in self._heard[name].items():
            self._redirectors[name].update(other, clients, [f"amqp://{other}:5672"], self.now_s)
        self._at(self.now_s + SWEEP_S, lambda: self._sweep(name))


def assert_even(counts: Sequence[int]) -> None:
    """Assert that each is within ten per cent of each other."""
    assert max(counts) <= min(counts) * 1.1, counts


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("latency_s", [0.001, 0.05, 0.3])
@pytest.mark.parametrize("lasts_s", [0.0, 0.5, 3.0, 10.0, 30.0])
@pytest.mark.parametrize("hello_s", [0.2, 1.0, 5.0])
def test_a_thousand_that_dial_one_of_three_are_spread(
    seed: int, latency_s: float, lasts_s: float, hello_s: float
) -> None:
    crowd = Crowd(seed, latency_s=latency_s, hello_s=hello_s)
    crowd.run(20.0)
    for _ in range(1000):
        crowd.dial("a", 20.0 + crowd.random.uniform(0, lasts_s))
    crowd.run(90.0)
    assert sum(crowd.clients.values()) == 1000
    assert_even(list(crowd.clients.values()))
    assert set(crowd.redirects) <= {0, 1}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("lasts_s", [0.0, 3.0])
def test_a_container_that_comes_back_empty_is_filled(seed: int, lasts_s: float) -> None:
    crowd = Crowd(seed)
    crowd.clients.update(a=330, b=330)
    crowd.run(5.0)
    for _ in range(340):
        crowd.dial("a", 5.0 + crowd.random.uniform(0, lasts_s))
    crowd.run(60.0)
    assert sum(crowd.clients.values()) == 1000
    assert_even(list(crowd.clients.values()))


@pytest.mark.parametrize("seed", range(5))
def test_clients_that_come_and_go_stay_spread(seed: int) -> None:
    crowd = Crowd(seed)
    for step in range(4000):
        at_s = step * 0.1
        crowd.run(at_s)
        crowd.dial(crowd.random.choice("aaab"), at_s)
        if step >= 1000:
            crowd.leave(crowd.random.choice(list(crowd.clients.elements())))
    assert_even(list(crowd.clients.values()))


def test_clients_that_do_not_tell_of_redirects_are_still_spread_when_they_come_slowly() -> None:
    crowd = Crowd(1, tells=False)
    for number in range(1000):
        crowd.dial("a", 5.0 + number * 0.05)
    crowd.run(120.0)
    assert sum(crowd.clients.values()) == 1000
    assert_even(list(crowd.clients.values()))


def test_a_client_that_stands_goes_where_there_is_least_to_do() -> None:
    redirector = Redirector(None)
    redirector.update("b", 3, ["amqp://b:5672"], 0.0, load=4.0)
    redirector.update("c", 5, ["amqp://c:5672"], 0.0)
    assert redirector.usages == [7.0, 5.0]
    found = [redirector.move(NEWCOMER, 0.0) for _ in range(4)]
    assert [each.target.name for each in found if each] == ["c", "c", "b", "c"]
    assert redirector.usages == [8.0, 8.0]
    assert redirector.move(Newcomer("amqps"), 0.0) is None, "nobody takes what it speaks"
