"""`cogwork engine`: the engines of streams, what they declare and what was measured."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from rich.box import SIMPLE_HEAD
from rich.table import Table

from cogwork.bench.measured import default_path, load
from cogwork.cli.terminal.tables import console
from cogwork.cli.unknown_commands import HelpfulGroup
from cogwork.engines.registry import engines, factory_of
from cogwork.plugin.engine.contract import EngineContext
from cogwork.plugins import PluginError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.bench.streams import Figures
    from cogwork.plugin.engine.capabilities import Capabilities

__all__ = ("declared", "engine", "engine_table")

ABILITIES = {
    "is_uniform": "uniform",
    "deduplicates": "deduplicates",
    "fences": "fences",
    "seeks_time": "seeks time",
    "trims": "trims",
    "keeps_snapshots": "snapshots",
    "changes_members": "changes members",
}
"""How people call what is declared."""


@click.group(cls=HelpfulGroup, no_args_is_help=False)
def engine() -> None:
    """List the stream engines."""


@engine.command("list")
@click.option(
    "--file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    show_default="where it leaves them",
    help="Results of `bench engines`.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def list_(file: Path | None, as_json: bool) -> None:
    """List engines with their capabilities and measured figures."""
    figures = load(file or default_path())
    rows = [_described(name, figures) for name in engines()]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    shown = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("engine", "installed", "durability", "declares"):
        shown.add_column(heading)
    for row in rows:
        shown.add_row(
            row["engine"],
            "yes" if row["installed"] else f"no: {row['reason']}",
            row.get("durability", ""),
            ", ".join(word for name, word in ABILITIES.items() if row.get(name)),
        )
    console().print(shown)
    if figures:
        console().print(engine_table(figures))
    else:
        click.echo("Nothing measured yet: `cogwork bench engines` does.", err=True)


def declared(name: str) -> Capabilities:
    """Return what an engine declares at least.

    Raises:
        PluginError: What it needs is not installed.
    """
    factory = factory_of(name)
    if factory is None:
        raise PluginError(f"engine {name!r}", "is not there")
    return factory(EngineContext()).capabilities


def _described(name: str, figures: Mapping[str, Figures]) -> dict[str, Any]:
    row: dict[str, Any] = {"engine": name, "installed": True}
    try:
        capabilities = declared(name)
    except (PluginError, ValueError) as error:
        return {**row, "installed": False, "reason": str(error)}
    row.update(dataclasses.asdict(capabilities))
    row["durability"] = capabilities.durability.value
    row["measured"] = [
        msgspec.to_builtins(each) for each in figures.values() if each.engine == name
    ]
    return row


def engine_table(figures: Mapping[str, Figures]) -> Table:
    """Make a table of what was measured."""
    shown = Table(box=SIMPLE_HEAD, pad_edge=False)
    shown.add_column("engine", no_wrap=True)
    headings = ("servers", "durability", "single/s", "batched/s", "p50 ms", "p99 ms", "replay/s")
    for heading in (*headings, "fail-over s"):
        shown.add_column(heading, justify="right")
    for each in figures.values():
        shown.add_row(
            each.engine,
            str(each.servers),
            each.durability,
            f"{each.single_per_s:,.0f}",
            f"{each.batched_per_s:,.0f}",
            f"{each.p50_ms:.2f}",
            f"{each.p99_ms:.2f}",
            f"{each.replay_per_s:,.0f}",
            "" if each.failover_s is None else f"{each.failover_s:.2f}",
        )
    return shown
