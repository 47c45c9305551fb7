"""`cogwork leave`: a container goes for good, and loses nothing by it."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from cogwork.amqp.exceptions import CogworkError
from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.management.group import met
from cogwork.cli.management.manager import Manager
from cogwork.cli.options.certificates import certified
from cogwork.cli.options.single_url import single_url
from cogwork.client import ClientError, Disconnected

__all__ = ("leave",)

TYPE = "org.cogwork.mesh"

ENDS = ("moved", "left")
COUNTS = (*ENDS, "kept", "replicas_moved", "replicas_left")

LAST_PHASES = ("links", "done")
"""When nothing is moved any more: who goes away before has not left, but ended."""

LOOK_S = 0.1
"""How often it is asked how far it is."""

TELL_S = 5.0
"""How often that is said where there is no terminal to show it on."""


class NotLeft(CogworkError):
    """A container that was leaving ended before it had left."""


@click.command()
@click.argument("url", callback=single_url)
@certified
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as one JSON object.")
def leave(url: str, as_json: bool) -> int:
    """Remove a container from the mesh permanently and stop it.

    Redirects its clients to other containers, moves the items of its queues and its replicas of
    streams and queues there, and closes its links when they are idle. A container with workers
    leaves with all of them, one after another. Exits with 1 if items or replicas had to stay: those
    on disk are there when the container is started again.
    """
    outcome = asyncio.run(_leave(url))
    if as_json:
        click.echo(json.dumps(outcome))
    else:
        for line in _lines(outcome):
            click.echo(line)
    return ExitCode.ERROR if outcome["left"] or outcome["replicas_left"] else ExitCode.OK


def _lines(outcome: dict[str, Any]) -> list[str]:
    """Return what has become of items and replicas."""
    kept, lost = outcome["kept"], outcome["left"] - outcome["kept"]
    places = ", ".join(outcome["data_dirs"])
    lines = [f"{outcome['moved']} items moved, {outcome['left']} stay"]
    if kept:
        lines.append(f"{kept} stay on disk, in {places}: start the container again to have them")
    if lost:
        lines.append(f"{lost} were in memory, and are gone with the container")
    if outcome["replicas_moved"] or outcome["replicas_left"]:
        moved, left = outcome["replicas_moved"], outcome["replicas_left"]
        lines.append(f"{moved} replicas moved, {left} stay")
    if outcome["problem"]:
        lines.append(outcome["problem"])
    return lines


async def _leave(url: str) -> dict[str, Any]:
    """Have all workers leave; the first one last, for it dials the other containers."""
    outcome: dict[str, Any] = {**dict.fromkeys(COUNTS, 0), "data_dirs": []}
    problems = []
    async with met(url) as workers:
        for client in reversed(workers.values()):
            manager = Manager(client)
            await manager.ask("LEAVE", TYPE, "", {})
            facts = await _watch(manager)
            for key in COUNTS:
                outcome[key] += facts[key]
            is_left = facts["kept"] or facts["replicas_left"]
            outcome["data_dirs"] += [facts["data_dir"]] if is_left else []
            problems += [facts["problem"]] if facts["problem"] else []
    return {**outcome, "problem": "; ".join(problems) or None}


async def _watch(manager: Manager) -> dict[str, Any]:
    """Show how far it is, until it is done or the container has gone.

    Raises:
        NotLeft: It went before it was done.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    facts: dict[str, Any] = {**dict.fromkeys(COUNTS, 0), "data_dir": None, "problem": None}
    console = Console(stderr=True)
    is_silent = not console.is_terminal  # where it would leave an empty line
    told_s = time.monotonic()
    with Progress(*columns, console=console, transient=True, disable=is_silent) as progress:
        bar = progress.add_task("items", total=None)
        while facts.get("phase") != "done":
            try:
                known = await manager.get("READ", TYPE)
            except (ClientError, Disconnected):
                _demand_left(facts)
                break  # it stops as soon as it has left
            if known["leaving"] is None:
                _demand_left(facts)
                break  # another worker answers in its place
            facts = known["leaving"]
            what = "replicas" if facts["phase"] == "replicas" else "items"
            moved, left = (facts[f"replicas_{key}" if what == "replicas" else key] for key in ENDS)
            progress.update(bar, description=what, completed=moved, total=moved + left or None)
            if is_silent and time.monotonic() >= told_s + TELL_S:
                told_s = time.monotonic()
                click.echo(f"cogwork: leaving: {moved} {what} moved, {left} to go", err=True)
            await asyncio.sleep(LOOK_S)
    return facts


def _demand_left(facts: dict[str, Any]) -> None:
    if facts.get("phase") not in LAST_PHASES:
        told = f"{facts['moved']} items had moved, and {facts['left']} had not"
        raise NotLeft(f"the container ended before it had left: {told}") from None
