"""Looking on while a stream is moved."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import click
import pytest
from rich.console import Console

from cogwork.cli.management import moving

if TYPE_CHECKING:
    from cogwork.cli.management.manager import Manager

HELD: dict[str, Any] = {
    "address": "stream/orders",
    "state": "running",
    "problem": "",
    "voters": ["a", "b", "c"],
    "learners": [],
    "wanted": ["a", "b", "d"],
    "wanted_learners": ["e"],
    "moving": True,
}
DONE = {**HELD, "voters": ["a", "b", "d"], "learners": ["e"], "moving": False}


class Told:
    """Answers with one row after the other."""

    def __init__(self, *rows: dict[str, Any]) -> None:
        self._rows = list(rows)

    async def get(self, operation: str, kind: str, address: str) -> dict[str, Any]:
        assert (operation, kind, address) == ("READ", "stream", "stream/orders")
        return self._rows.pop(0)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moving, "LOOK_S", 0.0)


def watched(*rows: dict[str, Any]) -> tuple[dict[str, Any], str]:
    screen = Console(record=True, force_terminal=False, width=200)
    told = cast("Manager", Told(*rows))
    with moving.Progress(screen) as progress:
        row = asyncio.run(moving.watch(told, "stream", HELD, progress))
    return row, screen.export_text()


def test_each_step_is_told_once() -> None:
    between = {**HELD, "voters": ["a", "b"], "learners": ["d", "e"]}
    row, printed = watched(HELD, between, between, DONE)
    assert row == DONE
    wanted = "to be held by a, b, d, followed by e"
    assert printed.splitlines() == [
        f"stream/orders: held by a, b, c; {wanted}",
        f"stream/orders: held by a, b, followed by d, e; {wanted}",
    ]


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"wanted": ["a"], "wanted_learners": []}, "another move .* is to be held by a$"),
        ({"wanted": [], "wanted_learners": []}, "nobody: it was deleted"),
        ({"state": "failed", "problem": "a hole in segment 3"}, "a hole in segment 3"),
    ],
)
def test_what_can_not_come_about_any_more_is_not_waited_for(
    changed: dict[str, Any], problem: str
) -> None:
    with pytest.raises(click.ClickException, match=problem):
        watched(HELD, {**HELD, **changed})


def test_names_in_brackets_are_told_as_they_are() -> None:
    row = {**HELD, "voters": ["a[/b]"]}
    _, printed = watched(row, DONE)
    assert "held by a[/b]; to be held by" in printed
