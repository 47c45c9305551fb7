"""Lists of what a container has, as a table or as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from cogwork.cli.management.manager import Manager
from cogwork.cli.management.reach import reach
from cogwork.cli.terminal.rendering import jsonable
from cogwork.cli.terminal.tables import console, table
from cogwork.cli.terminal.visible import visible
from cogwork.client import PermissionDenied

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cogwork.client import Client

__all__ = ("say_what_is_unknown", "show", "show_all")


def show_all(url: str, kind: str, columns: Mapping[str, str], *, as_json: bool) -> None:
    """Print all entities of a kind.

    Args:
        url: The container.
        kind: What is listed.
        columns: The heading of each attribute that a table shows; JSON has all attributes.
        as_json: Whether to print one JSON array instead.
    """

    async def work(client: Client) -> tuple[list[dict[str, Any]], int]:
        manager = Manager(client)
        await say_what_is_unknown(manager)
        return await manager.rows(kind, () if as_json else tuple(columns))

    rows, total = reach(url, work, force=True)
    show(kind, columns, rows, total, as_json=as_json)


def show(
    kind: str,
    columns: Mapping[str, str],
    rows: Sequence[Mapping[str, Any]],
    total: int,
    *,
    as_json: bool,
) -> None:
    """Print entities of a kind.

    Args:
        kind: What is listed.
        columns: The heading of each attribute that a table shows; JSON has all attributes.
        rows: The entities.
        total: How many there are.
        as_json: Whether to print one JSON array instead.
    """
    if as_json:
        click.echo(json.dumps(jsonable(rows), ensure_ascii=False))
        return
    screen = console()
    for part in table(f"{kind}s", columns, rows, total):
        screen.print(part)


async def say_what_is_unknown(manager: Manager) -> None:
    """Say on stderr where a container does not know yet all that its cluster has declared."""
    try:
        container = await manager.get("READ", "container")
    except PermissionDenied:  # who may manage some queues need not see more
        return
    cluster = container["cluster"]
    if cluster is not None and not cluster["is_current"]:
        what = f"container {container['name']} does not know all declarations of its cluster yet"
        click.echo(visible(f"cogwork: {what}: {why_behind(cluster)}"), err=True)


def why_behind(cluster: Mapping[str, Any]) -> str:
    """Say why a container does not know yet what its cluster has declared."""
    return cluster.get("problem") or "it has just started to read them"
