"""`cogwork link`: a container's links to other containers, through `$management`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from cogwork.cli.manager import Manager
from cogwork.cli.reach import reach
from cogwork.cli.rendering import jsonable
from cogwork.cli.tables import console, table

if TYPE_CHECKING:
    from cogwork.client import Mesh

__all__ = ("COLUMNS", "TYPE", "link")

TYPE = "org.cogwork.link"

COLUMNS = {
    "url": "link",
    "direction": "",
    "state": "state",
    "neighbour": "neighbour",
    "cost": "cost",
    "since": "since",
    "bytes_in": "in",
    "bytes_out": "out",
    "messages_in": "messages in",
    "messages_out": "messages out",
    "error": "error",
}


@click.group(no_args_is_help=False)
def link() -> None:
    """Add, remove and list a container's links to others.

    URL is the container's, HOST:PORT the other one's; amqps://USER:PASSWORD@HOST:PORT will do, too.
    """


@link.command()
@click.argument("url")
@click.argument("target", metavar="HOST:PORT")
@click.option("--cost", type=click.IntRange(1, 65_535), default=1, show_default=True)
def add(url: str, target: str, cost: int) -> None:
    """Link a container with another one, until it stops or the link is removed."""

    async def work(mesh: Mesh) -> Any:  # noqa: ANN401  # whatever the container answers
        return (await Manager(mesh).ask("CREATE", TYPE, target, {"cost": cost})).body

    click.echo(f"{reach(url, work)['url']} added")


@link.command()
@click.argument("url")
@click.argument("target", metavar="HOST:PORT")
def remove(url: str, target: str) -> None:
    """End a link that is dialled from the container."""

    async def work(mesh: Mesh) -> None:
        await Manager(mesh).ask("DELETE", TYPE, target)

    reach(url, work)
    click.echo("link removed")


@link.command("list")
@click.argument("url")
@click.option("--json", "as_json", is_flag=True, help="One JSON array.")
def list_(url: str, as_json: bool) -> None:
    """List the links, dialled from the container and by others, with state and counts."""

    async def work(mesh: Mesh) -> tuple[list[dict[str, Any]], int]:
        return await Manager(mesh).rows(TYPE, () if as_json else tuple(COLUMNS))

    rows, total = reach(url, work)
    if as_json:
        click.echo(json.dumps(jsonable(rows), ensure_ascii=False))
        return
    screen = console()
    for part in table("links", COLUMNS, rows, total):
        screen.print(part)
