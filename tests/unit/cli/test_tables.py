"""Tables fit the terminal, and say which columns they leave out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from cogwork.cli.commands.queue import COLUMNS as QUEUE_COLUMNS
from cogwork.cli.commands.status import COLUMNS as STATUS_COLUMNS
from cogwork.cli.terminal.tables import console, table, widened

if TYPE_CHECKING:
    from collections.abc import Mapping

QUEUE = {
    **dict.fromkeys(QUEUE_COLUMNS, 1_234_567),
    "address": "queue/" + "long-name." * 6,
    "durability": "replicated",
    "delayed": 0,
    "owner": "north",
    "problem": "no majority of north, south and west",
}


@click.command()
@widened
def listing() -> None:
    screen = console()
    for part in table("queues", QUEUE_COLUMNS, [QUEUE], 1):
        screen.print(part)


def shown(columns: dict[str, str], row: Mapping[str, object], width: int) -> list[str]:
    screen = console()
    screen.width = width
    with screen.capture() as capture:
        for part in table("rows", columns, [row], 1, width=width):
            screen.print(part)
    return capture.get().splitlines()


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("kind", STATUS_COLUMNS)
def test_no_line_is_longer_than_the_terminal(kind: str, width: int) -> None:
    columns = STATUS_COLUMNS[kind]
    row: dict[str, object] = dict.fromkeys(columns, 123_456_789_012)
    row[next(iter(columns))] = "a-name-of-some-length/" * 4
    assert max(map(len, shown(columns, row, width))) <= width


def test_what_is_left_out_is_named_and_columns_with_nothing_to_tell_go_first() -> None:
    lines = shown(QUEUE_COLUMNS, QUEUE, 150)
    (left_out,) = (line for line in lines if "not shown: " in line)
    assert "--wide" in left_out
    assert "--json" in left_out
    assert "delayed" in left_out
    headings = next(line for line in lines if line.strip().startswith("address"))
    named = left_out.removeprefix("  not shown: ").partition(" (")[0].split(", ")
    assert sorted([*re.split(" {2,}", headings.strip()), *named]) == sorted(QUEUE_COLUMNS.values())


def test_a_problem_is_shown_however_narrow_the_terminal_is() -> None:
    text = "\n".join(shown(QUEUE_COLUMNS, QUEUE, 60))
    assert "problem" in text.partition("not shown")[0]


def test_nothing_is_left_out_where_everything_fits() -> None:
    row = {"address": "queue/a", "kind": "queue", "status": ""}
    assert not any("not shown" in line for line in shown(STATUS_COLUMNS["node"], row, 80))


def test_wide_prints_all_columns() -> None:
    done = CliRunner().invoke(listing, ["--wide"])
    assert done.exit_code == 0, done.output
    assert "not shown" not in done.output
    assert all(heading in done.output for heading in QUEUE_COLUMNS.values())
