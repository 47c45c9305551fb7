"""Callers look for a reply where that helps, and hardly where it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from cogwork.rpc.direct import adaptive_spin as module
from cogwork.rpc.direct.adaptive_spin import MISSES_MAX, AdaptiveSpin

if TYPE_CHECKING:
    from cogwork.client.client import Client
    from cogwork.io.turn import Waiter


class FakeClient:
    """A connection whose replies come in time, or do not."""

    wire = object()

    def __init__(self) -> None:
        self.turn = self
        self.is_fast = False
        self.spins = 0

    def spin(self, _wire: object, _waiter: object, _spin_s: float) -> bool:
        """Count."""
        self.spins += 1
        return self.is_fast


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> FakeClient:
    """On a machine with two processors."""
    monkeypatch.setattr(module, "_processors", lambda: 2)
    return FakeClient()


WAITER = cast("Waiter[Any]", object())


def looks(spin: AdaptiveSpin, count: int) -> list[bool]:
    """Make calls."""
    return [spin.look(WAITER) for _ in range(count)]


def test_fast_replies_are_looked_for_each_time(client: FakeClient) -> None:
    client.is_fast = True
    assert all(looks(AdaptiveSpin(cast("Client", client), 100), 50))
    assert client.spins == 50


def test_slow_replies_are_looked_for_ever_less_often(client: FakeClient) -> None:
    spin = AdaptiveSpin(cast("Client", client), 100)
    assert not any(looks(spin, 3 + 5 + 9 + 17))
    assert client.spins == 4
    looks(spin, 100_000)
    before = client.spins
    looks(spin, 10 * (2**MISSES_MAX + 1))
    assert client.spins == before + 10


def test_a_reply_in_time_has_the_next_ones_looked_for_again(client: FakeClient) -> None:
    spin = AdaptiveSpin(cast("Client", client), 100)
    looks(spin, 1_000)
    client.is_fast = True
    found = looks(spin, 2**MISSES_MAX + 50)
    first = found.index(True)
    assert all(found[first:])


def test_it_can_be_ruled_out(client: FakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    client.is_fast = True
    assert not any(looks(AdaptiveSpin(cast("Client", client), 0), 50))
    monkeypatch.setattr(module, "_processors", lambda: 1)
    assert not any(looks(AdaptiveSpin(cast("Client", client), 100), 50))
    assert client.spins == 0
