"""Callers look for a reply where that helps, and hardly where it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from cogwork.client.rpc.direct import spinner as module
from cogwork.client.rpc.direct.spinner import MISSES_MAX, Spinner

if TYPE_CHECKING:
    from cogwork.client.mesh import Mesh
    from cogwork.io.turn import Waiter


class FakeMesh:
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
def mesh(monkeypatch: pytest.MonkeyPatch) -> FakeMesh:
    """On a machine with two processors."""
    monkeypatch.setattr(module, "_processors", lambda: 2)
    return FakeMesh()


WAITER = cast("Waiter[Any]", object())


def looks(spinner: Spinner, count: int) -> list[bool]:
    """Makes calls."""
    return [spinner.look(WAITER) for _ in range(count)]


def test_fast_replies_are_looked_for_each_time(mesh: FakeMesh) -> None:
    mesh.is_fast = True
    assert all(looks(Spinner(cast("Mesh", mesh), 100), 50))
    assert mesh.spins == 50


def test_slow_replies_are_looked_for_ever_less_often(mesh: FakeMesh) -> None:
    spinner = Spinner(cast("Mesh", mesh), 100)
    assert not any(looks(spinner, 3 + 5 + 9 + 17))
    assert mesh.spins == 4
    looks(spinner, 100_000)
    before = mesh.spins
    looks(spinner, 10 * (2**MISSES_MAX + 1))
    assert mesh.spins == before + 10


def test_a_reply_in_time_has_the_next_ones_looked_for_again(mesh: FakeMesh) -> None:
    spinner = Spinner(cast("Mesh", mesh), 100)
    looks(spinner, 1_000)
    mesh.is_fast = True
    found = looks(spinner, 2**MISSES_MAX + 50)
    first = found.index(True)
    assert all(found[first:])


def test_it_can_be_ruled_out(mesh: FakeMesh, monkeypatch: pytest.MonkeyPatch) -> None:
    mesh.is_fast = True
    assert not any(looks(Spinner(cast("Mesh", mesh), 0), 50))
    monkeypatch.setattr(module, "_processors", lambda: 1)
    assert not any(looks(Spinner(cast("Mesh", mesh), 100), 50))
    assert mesh.spins == 0
