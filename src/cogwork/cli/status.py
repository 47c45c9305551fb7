"""`cogwork status`: what a container holds and has done."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from cogwork.cli.manager import Manager
from cogwork.cli.reach import reach
from cogwork.cli.rendering import jsonable
from cogwork.cli.stream import COLUMNS as STREAM_COLUMNS
from cogwork.cli.tables import console, in_bytes, in_words, table

if TYPE_CHECKING:
    from cogwork.client import Mesh

__all__ = ("status",)

KINDS = {
    "connection": "connections",
    "session": "sessions",
    "link": "links",
    "address": "addresses",
    "queue": "queues",
    "stream": "streams",
    "node": "nodes",
}

ROWS_MAX = 50
"""Of each kind, how many a person is shown."""

COLUMNS = {
    "connection": {
        "name": "#",
        "container": "client",
        "user": "user",
        "peer": "from",
        "vhost": "vhost",
        "since": "since",
        "sessions": "sessions",
        "links": "links",
        "bytes_in": "in",
        "bytes_out": "out",
        "frames_in": "frames in",
        "frames_out": "frames out",
        "unsent_bytes": "unsent",
    },
    "link": {
        "name": "#",
        "connection": "conn",
        "direction": "",
        "address": "address",
        "credit": "credit",
        "unsettled": "unsettled",
        "deliveries": "deliveries",
        "backlog": "backlog",
        "backlog_bytes": "backlog bytes",
        "dropped": "dropped",
    },
    "address": {
        "address": "address",
        "kind": "kind",
        "distribution": "distribution",
        "senders": "senders",
        "receivers": "receivers",
        "in": "in",
        "out": "out",
        "released": "released",
        "dropped": "dropped",
        "unmatched": "unmatched",
        "expired": "expired",
        "unsettled": "unsettled",
        "depth": "depth",
    },
    "queue": {
        "address": "queue",
        "depth": "depth",
        "ready": "ready",
        "unsettled": "unsettled",
        "in-doubt": "in doubt",
        "consumers": "consumers",
        "redelivered": "redelivered",
        "disorder-p50": "disorder p50",
        "disorder-p99": "p99",
        "disorder-maximum": "maximum",
    },
    "stream": STREAM_COLUMNS,
    "node": {"address": "address", "kind": "kind", "status": "status"},
}
"""What people are shown of each kind; `--json` has everything."""

Found = dict[str, tuple[list[dict[str, Any]], int]]


@click.command()
@click.argument("url")
@click.option("--json", "as_json", is_flag=True, help="The whole state as one JSON object.")
def status(url: str, as_json: bool) -> None:
    """Show what a container holds and has done.

    Connections, links, and addresses with their counts: in, out, released, dropped, unsettled,
    depth. Streams, with bounds, rates and readers. Queues, with the disorder of what they gave out
    in the last while: how many items that came later went out before an item.
    """
    kinds = KINDS if as_json else COLUMNS
    count_max = None if as_json else ROWS_MAX

    async def work(mesh: Mesh) -> tuple[dict[str, Any], Found]:
        manager = Manager(mesh)
        found = {kind: await manager.rows(kind, count_max=count_max) for kind in kinds}
        return await manager.get("READ", "container"), found

    container, found = reach(url, work, force=True)
    if as_json:
        click.echo(json.dumps(jsonable(_document(container, found)), ensure_ascii=False))
    else:
        _show(container, found)


def _document(container: dict[str, Any], found: Found) -> dict[str, Any]:
    lists = {KINDS[kind]: rows for kind, (rows, _total) in found.items()}
    return {"container": container, "totals": container.pop("totals"), **lists}


def _show(container: dict[str, Any], found: Found) -> None:
    screen = console()
    totals = container["totals"]
    screen.print(
        f"[bold]{container['name']}[/bold]  cogwork {container['version']}, "
        f"up {in_words(container['uptime_s'])}, process {container['process_id']}, "
        f"{in_bytes(container['resident_bytes'])} resident, {container['cpu_s']:,.1f} s CPU"
        f"{', [yellow]stopping[/yellow]' if container['is_draining'] else ''}"
    )
    screen.print(f"  listens on {', '.join(container['endpoints'])}")
    screen.print(
        f"  {totals['connections']:,} connections ({container['connections_accepted']:,} since the "
        f"start, {container['connections_refused']:,} refused, "
        f"{container['connections_redirected']:,} redirected), {totals['links']:,} links, "
        f"{totals['unsettled']:,} unsettled, {container['frames_in']:,} frames in"
    )
    screen.print(
        f"  waiting: {in_bytes(totals['unsent_bytes'])} unsent, "
        f"{in_bytes(totals['backlog_bytes'])} for slow subscribers, "
        f"{in_bytes(totals['held_bytes'])} held of at most "
        f"{in_bytes(container['limits']['held_bytes'])}; at most "
        f"{container['limits']['connections']:,} connections"
    )
    for kind, (rows, total) in found.items():
        for part in table(KINDS[kind], COLUMNS[kind], rows, total):
            screen.print(part)
