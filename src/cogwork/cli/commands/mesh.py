"""`cogwork mesh`: the containers of a mesh, the links between them, and the ways from one."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from cogwork.cli.commands import link
from cogwork.cli.management.folding import Folding
from cogwork.cli.management.manager import Manager
from cogwork.cli.management.reach import reach
from cogwork.cli.options.certificates import certified
from cogwork.cli.terminal.graph import graph_of
from cogwork.cli.terminal.pictures import as_dot, as_svg
from cogwork.cli.terminal.rendering import jsonable
from cogwork.cli.terminal.tables import as_markup, console, in_words, table, widened

if TYPE_CHECKING:
    from cogwork.cli.terminal.graph import Graph, Vertex
    from cogwork.client import Client

__all__ = ("mesh",)

TYPE = "org.cogwork.mesh"

CONTAINERS = {
    "id": "container",
    "next_hop": "next hop",
    "cost": "cost",
    "neighbours": "neighbours",
    "topic": "patterns",
    "anycast": "addresses",
    "queue": "queues",
    "backlog": "backlog",
    "unreachable": "unreachable since",
}
SHARDS = {
    "address": "queue",
    "virtual_host": "vhost",
    "container": "container",
    "backlog": "backlog",
    "consumers": "consumers",
}


@click.command()
@click.argument("url")
@certified
@widened
@click.option("--json", "as_json", is_flag=True, help="Print everything as one JSON object.")
@click.option("--dot", "wants_dot", is_flag=True, help="Print a graph for Graphviz.")
@click.option("--svg", "wants_svg", is_flag=True, help="Print a picture as SVG.")
@click.option("--workers", is_flag=True, help="Show the workers of a container separately.")
def mesh(url: str, as_json: bool, wants_dot: bool, wants_svg: bool, workers: bool) -> None:
    """List containers, links and routes.

    Shows the mesh as the container at URL knows it: links and their costs, next hops, subscriptions
    and consumers, the backlog of each queue's shards, and unreachable containers. The workers of a
    container are shown as one, except in JSON.
    """
    if as_json + wants_dot + wants_svg > 1:
        raise click.UsageError("only one of --json, --dot and --svg")

    async def work(connected: Client) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        manager = Manager(connected)
        rows, _ = await manager.rows(link.TYPE)
        return await manager.get("READ", TYPE), rows

    snapshot, links = reach(url, work)
    if as_json:
        document = {"id": snapshot["id"], "incarnation": snapshot["incarnation"], "links": links}
        document |= {key: snapshot[key] for key in ("containers", "shards")}
        click.echo(json.dumps(jsonable(document), ensure_ascii=False))
    elif wants_dot or wants_svg:
        draw = as_dot if wants_dot else as_svg
        graph = graph_of(snapshot)
        folding = Folding(() if workers else graph.vertices)
        click.echo(draw(folding.graph(graph)), nl=False)
    else:
        _show(snapshot, links, unfolds=workers)


def _show(snapshot: dict[str, Any], links: list[dict[str, Any]], *, unfolds: bool) -> None:
    screen = console()
    own = snapshot["id"]
    screen.print(f"the mesh as [bold]{as_markup(own)}[/bold] sees it", markup=True)
    graph = graph_of(snapshot)
    folding = Folding(graph.vertices)
    rows = _rows(graph, folding, unfolds=unfolds)
    shown = [table("containers", CONTAINERS, rows, len(folding.graph(graph).vertices))]
    shards = snapshot["shards"]
    if not unfolds:
        links = [row for row in links if not folding.is_inside(own, row["neighbour"])]
        shards = folding.shards(shards)
    if links:
        shown.append(table(f"links of {own}", link.COLUMNS, links, len(links)))
    if shards:
        shown.append(table("shards", SHARDS, shards, len(shards)))
    for parts in shown:
        for part in parts:
            screen.print(part)


def _rows(graph: Graph, folding: Folding, *, unfolds: bool) -> list[dict[str, Any]]:
    """Make the rows of the table; below a container with workers, these where they are wanted."""
    now_s = time.time()
    folded = folding.graph(graph)
    rows = []
    for vertex in folded.vertices.values():
        row = _row(vertex, folded.own, now_s)
        rows.append(row)
        workers = [graph.vertices[name] for name in folding.workers.get(vertex.id, ())]
        if workers:
            lost = sum(not each.is_reachable for each in workers)
            row["id"] += f" ({len(workers)} workers{f', {lost} unreachable' if lost else ''})"
        if unfolds:
            for worker in workers:
                mark = "└" if worker is workers[-1] else "├"
                rows.append({**_row(worker, graph.own, now_s), "id": f"{mark} {worker.id}"})
    return rows


def _row(vertex: Vertex, own: str, now_s: float) -> dict[str, Any]:
    return {
        "id": vertex.id,
        "next_hop": "itself" if vertex.id == own else vertex.next_hop,
        "cost": vertex.cost,
        "neighbours": vertex.neighbours,
        **vertex.interests,
        "backlog": vertex.backlog,
        "unreachable": _since(vertex.unreachable_s, now_s),
    }


def _since(duration_s: float | None, now_s: float) -> str:
    """Return when something began, and how long ago that is."""
    if duration_s is None:
        return ""
    began = datetime.fromtimestamp(now_s - duration_s, UTC)
    return f"{began:%Y-%m-%d %H:%M:%S} UTC, {in_words(duration_s)}"
