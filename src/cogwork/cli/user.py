"""`cogwork user`: the users of a container, through `$management`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from cogwork.cli.certificates import certified
from cogwork.cli.group import reach_each
from cogwork.cli.manager import Manager
from cogwork.cli.unknown_commands import HelpfulGroup

if TYPE_CHECKING:
    from cogwork.client import Mesh

__all__ = ("user",)


@click.group(cls=HelpfulGroup, no_args_is_help=False)
def user() -> None:
    """Manage the users of a container: disconnect."""


@user.command()
@click.argument("url")
@click.argument("name")
@click.option(
    "--reason", default="closed by management", show_default=True, help="What the clients are told."
)
@certified
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def disconnect(url: str, name: str, reason: str, as_json: bool) -> None:
    """Close all connections of a user to this container.

    Links of other containers that log in as NAME are closed, too. The user may connect again:
    take it out of the configuration first. Connections to other containers of the mesh stay;
    disconnect the user there separately.
    """

    async def work(mesh: Mesh) -> int:
        found = await Manager(mesh).ask("DISCONNECT", "connection", name, body={"reason": reason})
        body = found.body
        assert isinstance(body, dict)
        return int(body["closed"])

    closed = sum(reach_each(url, work).values())
    if as_json:
        click.echo(json.dumps({"user": name, "closed": closed}, ensure_ascii=False))
    else:
        click.echo(f"user {name}: {closed} connections closed")
