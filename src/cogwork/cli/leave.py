"""`cogwork leave`: a container goes for good, and loses nothing by it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.group import met
from cogwork.cli.manager import Manager
from cogwork.client import ClientError

__all__ = ("leave",)

TYPE = "org.cogwork.mesh"

LOOK_S = 0.1
"""How often it is asked how far it is."""


@click.command()
@click.argument("url")
@click.option("--json", "as_json", is_flag=True, help="The outcome as one JSON object.")
def leave(url: str, as_json: bool) -> int:
    """Have a container leave its mesh for good, and stop.

    Its clients are redirected to other containers, the items of its queues move there, and links
    are closed when nothing comes that way any more. One with workers leaves with all of them, one
    after another. Ends with 1 where items had to stay: those on disk are there when the container
    is started again.
    """
    outcome = asyncio.run(_leave(url))
    if as_json:
        click.echo(json.dumps(outcome))
    else:
        for line in _lines(outcome):
            click.echo(line)
    return ExitCode.ERROR if outcome["left"] else ExitCode.OK


def _lines(outcome: dict[str, Any]) -> list[str]:
    """Says what has become of the items."""
    kept, lost = outcome["kept"], outcome["left"] - outcome["kept"]
    places = ", ".join(outcome["data_dirs"])
    lines = [f"{outcome['moved']} items moved, {outcome['left']} stay"]
    if kept:
        lines.append(f"{kept} stay on disk, in {places}: start the container again to have them")
    if lost:
        lines.append(f"{lost} were in memory, and are gone with the container")
    if outcome["problem"]:
        lines.append(outcome["problem"])
    return lines


async def _leave(url: str) -> dict[str, Any]:
    """Has all workers leave; the first one last, for it dials the other containers."""
    outcome: dict[str, Any] = {"moved": 0, "left": 0, "kept": 0, "data_dirs": []}
    problems = []
    async with met(url) as workers:
        for mesh in reversed(workers.values()):
            manager = Manager(mesh)
            await manager.ask("LEAVE", TYPE, "", {})
            facts = await _watch(manager)
            for key in ("moved", "left", "kept"):
                outcome[key] += facts[key]
            outcome["data_dirs"] += [facts["data_dir"]] if facts["kept"] else []
            problems += [facts["problem"]] if facts["problem"] else []
    return {**outcome, "problem": "; ".join(problems) or None}


async def _watch(manager: Manager) -> dict[str, Any]:
    """Shows how far it is, until it is done or the container has gone."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    facts: dict[str, Any] = {"moved": 0, "left": 0, "kept": 0, "data_dir": None, "problem": None}
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("items", total=None)
        while facts.get("phase") != "done":
            try:
                known = await manager.get("READ", TYPE)
            except ClientError:
                break  # it stops as soon as it has left
            if known["leaving"] is None:
                break  # another worker answers in its place
            facts = known["leaving"]
            total = facts["moved"] + facts["left"]
            progress.update(bar, completed=facts["moved"], total=total or None)
            await asyncio.sleep(LOOK_S)
    return facts
