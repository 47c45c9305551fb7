"""`cogwork connection`: a container's connections, through `$management`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from cogwork.amqp.errors import Condition
from cogwork.cli.management.group import reach_each
from cogwork.cli.management.listing import show
from cogwork.cli.management.manager import Manager
from cogwork.cli.options.certificates import certified
from cogwork.cli.options.single_url import single_url
from cogwork.cli.terminal.tables import widened
from cogwork.cli.unknown_commands import HelpfulGroup
from cogwork.client import NotFound

if TYPE_CHECKING:
    from cogwork.client import Client

__all__ = ("connection",)

TYPE = "connection"

COLUMNS = {
    "id": "id",
    "user": "user",
    "peer": "peer",
    "container": "container",
    "protocol": "protocol",
    "since": "since (UTC)",
    "sessions": "sessions",
    "links": "links",
    "held_bytes": "held bytes",
    "messages_in": "messages in",
    "messages_out": "messages out",
    "cluster_id": "Cluster-Id",
}
"""The headings of the table; `id` is made here of a connection's name and its worker's."""


@click.group(cls=HelpfulGroup, no_args_is_help=False)
def connection() -> None:
    """Manage the connections of a container: list, close."""


@connection.command("list")
@click.argument("url")
@certified
@widened
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def list_(url: str, as_json: bool) -> None:
    """List the client connections of this container.

    Connections of other containers of the mesh are listed by those. For a container with several
    workers, lists the connections of all workers; the id is WORKER/NUMBER.
    """

    async def work(client: Client) -> list[dict[str, Any]]:
        attributes = () if as_json else ("name", *(each for each in COLUMNS if each != "id"))
        return (await Manager(client).rows(TYPE, attributes))[0]

    found = reach_each(url, work)
    rows = [
        {"id": row["name"] if len(found) == 1 else f"{worker}/{row['name']}", **row}
        for worker, each in found.items()
        for row in each
    ]
    show(TYPE, COLUMNS, rows, len(rows), as_json=as_json)


@connection.command()
@click.argument("url", callback=single_url)
@click.argument("id_", metavar="ID")
@click.option(
    "--reason", default="closed by management", show_default=True, help="What the client is told."
)
@certified
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def close(url: str, id_: str, reason: str, as_json: bool) -> None:
    """Close one connection, by its id in the list."""
    worker, _, name = id_.rpartition("/")

    async def work(client: Client) -> bool:
        if worker not in ("", client.container.container_id):
            return False
        try:
            await Manager(client).ask("CLOSE", TYPE, name, body={"reason": reason})
        except NotFound:
            return False
        return True

    if not worker and len(reach_each(url, _who)) > 1:
        raise click.UsageError(f"{id_!r} is not unique here (expected WORKER/NUMBER, as in list)")
    if not any(reach_each(url, work).values()):
        raise NotFound("", Condition.NOT_FOUND, f"there is no connection {id_!r:.200}")
    if as_json:
        click.echo(json.dumps({"id": id_, "closed": True}, ensure_ascii=False))
    else:
        click.echo(f"connection {id_} closed")


async def _who(client: Client) -> str:
    return client.container.container_id
