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
    after another. Ends with 1 where items had to stay.
    """
    outcome = asyncio.run(_leave(url))
    if as_json:
        click.echo(json.dumps(outcome))
    else:
        click.echo(f"{outcome['moved']} items moved, {outcome['left']} stay")
    return ExitCode.ERROR if outcome["left"] else ExitCode.OK


async def _leave(url: str) -> dict[str, Any]:
    """Has all workers leave; the first one last, for it dials the other containers."""
    moved, left, problems = 0, 0, []
    async with met(url) as workers:
        for mesh in reversed(workers.values()):
            manager = Manager(mesh)
            await manager.ask("LEAVE", TYPE, "", {})
            facts = await _watch(manager)
            moved += facts["moved"]
            left += facts["left"]
            problems += [facts["problem"]] if facts["problem"] else []
    return {"moved": moved, "left": left, "problem": "; ".join(problems) or None}


async def _watch(manager: Manager) -> dict[str, Any]:
    """Shows how far it is, until it is done or the container has gone."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    facts: dict[str, Any] = {"moved": 0, "left": 0, "problem": None}
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
    return {key: facts[key] for key in ("moved", "left", "problem")}
