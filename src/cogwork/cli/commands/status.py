"""`cogwork status`: what a container holds and has done.

Of one with several workers, connections, links and nodes are shown with the worker that has them;
addresses and queues are shown once, with what all workers have of them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from cogwork.cli.commands.stream import COLUMNS as STREAM_COLUMNS
from cogwork.cli.management.group import reach_each
from cogwork.cli.management.listing import why_behind
from cogwork.cli.management.manager import Manager
from cogwork.cli.management.sums import added_up
from cogwork.cli.options.certificates import certified
from cogwork.cli.terminal.rendering import jsonable
from cogwork.cli.terminal.tables import as_markup, console, in_bytes, in_words, table, widened
from cogwork.cli.terminal.visible import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from cogwork.client import Client

__all__ = ("status",)

KINDS = {
    "connection": "connections",
    "session": "sessions",
    "link": "links",
    "address": "addresses",
    "queue": "queues",
    "stream": "streams",
    "node": "nodes",
    "org.cogwork.consumer": "consumers",
}

ROWS_MAX = 50
"""Of each kind, how many a person is shown."""

DIGITS = 12
"""So much of a digest is shown."""

SHARED = ("address", "queue")
"""Kinds that are one for all workers."""

SHARED_ROWS_MAX = 1000
"""Of those, how many each worker is asked for: so many can be added up."""

COLUMNS = {
    "connection": {
        "name": "#",
        "container": "client",
        "user": "user",
        "peer": "from",
        "vhost": "vhost",
        "protocol": "protocol",
        "since": "since (UTC)",
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
        "durability": "durability",
        "depth": "depth",
        "ready": "ready",
        "unsettled": "unsettled",
        "in-doubt": "in doubt",
        "consumers": "consumers",
        "redelivered": "redelivered",
        "disorder-p50": "disorder p50",
        "disorder-p99": "p99",
        "disorder-maximum": "maximum",
        "owner": "owner",
    },
    "stream": STREAM_COLUMNS,
    "org.cogwork.consumer": {
        "query": "query",
        "kind": "kind",
        "address": "reads",
        "position": "position",
        "behind": "behind",
        "records_per_s": "records/s",
        "batch": "batch",
        "reported_s": "reported",
    },
    "node": {"address": "address", "kind": "kind", "status": "status"},
}
"""What people are shown of each kind; `--json` has everything."""

SHOWN = {"queue": "see queues", "stream": "see streams"}
"""Which nodes have a table of their kind, so that people need not read all figures in a cell."""

Found = dict[str, tuple[list[dict[str, Any]], int]]


@click.command()
@click.argument("url")
@certified
@widened
@click.option("--json", "as_json", is_flag=True, help="Print the whole state as one JSON object.")
def status(url: str, as_json: bool) -> None:
    """Show connections, addresses, queues and streams.

    Lists connections and links; addresses with their counts (in, out, released, dropped, unsettled,
    depth); streams with bounds, rates and readers; Spark queries with their lag; and queues with
    the recent disorder of their deliveries: how many later items were delivered before an item.
    """
    kinds = KINDS if as_json else COLUMNS

    def most(kind: str) -> int | None:
        if as_json:
            return None
        return SHARED_ROWS_MAX if kind in SHARED else ROWS_MAX

    async def work(client: Client) -> tuple[dict[str, Any], Found]:
        manager = Manager(client)
        found = {kind: await manager.rows(kind, count_max=most(kind)) for kind in kinds}
        return await manager.get("READ", "container"), found

    workers = reach_each(url, work)
    if as_json:
        documents = [_document(container, found) for container, found in workers.values()]
        whole = documents[0] if len(documents) == 1 else {"workers": documents}
        click.echo(json.dumps(jsonable(whole), ensure_ascii=False))
    else:
        _show([container for container, _ in workers.values()])
        _show_rows({name: found for name, (_, found) in workers.items()})


def _document(container: dict[str, Any], found: Found) -> dict[str, Any]:
    lists = {KINDS[kind]: rows for kind, (rows, _total) in found.items()}
    return {"container": container, "totals": container.pop("totals"), **lists}


def _show(containers: Sequence[dict[str, Any]]) -> None:
    screen = console()
    for container in containers:
        _show_one(screen, container)


def _show_one(screen: Console, container: dict[str, Any]) -> None:
    totals = container["totals"]
    screen.print(
        f"[bold]{as_markup(container['name'])}[/bold]  cogwork {container['version']}, "
        f"up {in_words(container['uptime_s'])}, process {container['process_id']}, "
        f"{in_bytes(container['resident_bytes'])} resident, {container['cpu_s']:,.1f} s CPU"
        f"{', [yellow]stopping[/yellow]' if container['is_draining'] else ''}",
        markup=True,
    )
    screen.print(f"  listens on {visible(', '.join(container['endpoints']))}")
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
    if container["durable_in_memory"]:
        screen.print(
            f"  [yellow]{container['durable_in_memory']:,} durable messages were kept in memory "
            "only[/yellow]: they are lost when the container stops (see --data)",
            markup=True,
        )
    days = container["certificate_days_left"]
    if days is not None:
        left = f"expires in {days:,} days" if days >= 0 else "has expired"
        screen.print(f"  its first certificate to expire {left}")
    descriptors = container["descriptors"]
    if descriptors["refused"]:
        screen.print(
            f"  [yellow]{descriptors['refused']:,} connections refused for want of file "
            f"descriptors[/yellow]: {descriptors['limit']:,} are allowed",
            markup=True,
        )
    security = container.get("security_log") or {"dropped": 0}
    if security["dropped"]:
        screen.print(
            f"  [yellow]{security['dropped']:,} events of the security log were lost[/yellow]: "
            f"its {security['to']} did not take them in time",
            markup=True,
        )
    if container["cluster"] is not None:
        screen.print(cluster_line(container["cluster"]), markup=True)
    for vhost, facts in (container["schemas"] or {}).items():
        screen.print(schema_line(vhost, facts), markup=True)
    for name, facts in container["gateways"].items():
        screen.print(gateway_line(name, facts))


def cluster_line(cluster: dict[str, Any]) -> str:
    """Return how a container's cluster is, as that container knows it."""
    behind = f"not current yet: {as_markup(why_behind(cluster))}"
    current = "" if cluster["is_current"] else f", [yellow]{behind}[/yellow]"
    voters, leader = as_markup(", ".join(cluster["voters"])), cluster["leader"] or "unknown"
    return (
        f"  cluster of {voters}, leader {as_markup(leader)}: "
        f"{cluster['declarations']:,} declarations, digest {cluster['digest'][:DIGITS]}{current}"
    )


def schema_line(vhost: str, facts: dict[str, Any]) -> str:
    """Return what becomes of messages that are held to schemas, in a virtual host."""
    where = f" of {as_markup(vhost)}" if vhost else ""
    current = "" if facts["is_current"] else ", [yellow]not known yet[/yellow]"
    problem = f", [yellow]{as_markup(facts['problem'])}[/yellow]" if facts["problem"] else ""
    return (
        f"  schemas{where}: {facts['registered']:,} addresses, {facts['checked']:,} messages "
        f"checked, {facts['rejected']:,} rejected, {facts['dropped']:,} dropped{current}{problem}"
    )


def gateway_line(name: str, facts: dict[str, Any]) -> str:
    """Return where a gateway listens, and what it tells of itself."""
    counts = (
        f"{key.replace('_', ' ')} {value:,}" for key, value in facts.items() if _counts(value)
    )
    return visible(f"  gateway {name} on {', '.join(facts['endpoints'])}: {', '.join(counts)}")


def _counts(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _show_rows(workers: dict[str, Found]) -> None:
    screen = console()
    for kind, columns in COLUMNS.items():
        rows, total = _gathered(kind, workers)
        shown = columns
        if len(workers) > 1 and kind not in SHARED:
            shown = {"worker": "worker", **columns}
        for part in table(KINDS[kind], shown, rows[:ROWS_MAX], total):
            screen.print(part)


def _gathered(kind: str, workers: dict[str, Found]) -> tuple[list[dict[str, Any]], int]:
    """Put the rows of all workers together, and count how many there are."""
    totals = [found[kind][1] for found in workers.values()]
    rows = [{**row, "worker": name} for name, found in workers.items() for row in found[kind][0]]
    if kind == "node":
        rows = [{**row, "status": SHOWN.get(row["kind"], row["status"])} for row in rows]
    if kind not in SHARED:
        return rows, sum(totals)
    added = added_up(rows)
    return added, max(len(added), *totals)
