"""Callers look for a reply where that helps, and hardly where it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from cogwork.rpc.direct import spinner as module
from cogwork.rpc.direct.spinner import MISSES_MAX, Spinner

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
        """Counts."""
        self.spins += 1
        return self.is_fast


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> FakeClient:
    """On a machine with two processors."""
    monkeypatch.setattr(module, "_processors", lambda: 2)
    return FakeClient()


WAITER = cast("Waiter[Any]", object())


def looks(spinner: Spinner, count: int) -> list[bool]:
    """Makes calls."""
    return [spinner.look(WAITER) for _ in range(count)]


def test_fast_replies_are_looked_for_each_time(client: FakeClient) -> None:
    client.is_fast = True
    assert all(looks(Spinner(cast("Client", client), 100), 50))
    assert client.spins == 50


def test_slow_replies_are_looked_for_ever_less_often(client: FakeClient) -> None:
    spinner = Spinner(cast("Client", client), 100)
    assert not any(looks(spinner, 3 + 5 + 9 + 17))
    assert client.spins == 4
    looks(spinner, 100_000)
    before = client.spins
    looks(spinner, 10 * (2**MISSES_MAX + 1))
    assert client.spins == before + 10


def test_a_reply_in_time_has_the_next_ones_looked_for_again(client: FakeClient) -> None:
    spinner = Spinner(cast("Client", client), 100)
    looks(spinner, 1_000)
    client.is_fast = True
    found = looks(spinner, 2**MISSES_MAX + 50)
    first = found.index(True)
    assert all(found[first:])


def test_it_can_be_ruled_out(client: FakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    client.is_fast = True
    assert not any(looks(Spinner(cast("Client", client), 0), 50))
    monkeypatch.setattr(module, "_processors", lambda: 1)
    assert not any(looks(Spinner(cast("Client", client), 100), 50))
    assert client.spins == 0
