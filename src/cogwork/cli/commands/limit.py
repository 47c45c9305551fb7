"""`cogwork limit`: the limits of a cluster's containers, through `$management`."""

from __future__ import annotations

import click

from cogwork.cli.management.declared import Declared
from cogwork.cli.options.certificates import certified
from cogwork.cli.options.single_url import single_url
from cogwork.cli.unknown_commands import HelpfulGroup
from cogwork.container.cluster.declared_limits import VALUE_MAX
from cogwork.container.connections.shares import own_limit_name

__all__ = ("TYPE", "limit")

TYPE = "org.cogwork.limit"

COLUMNS = {
    "name": "limit",
    "value": "value",
    "configured": "in the file",
    "origin": "origin",
    "most": "most used",
    "holder": "by",
}

DECLARED = Declared(TYPE, "limits", COLUMNS)


def _number(_context: click.Context, _parameter: click.Parameter, value: float) -> int | float:
    """Return a number as the configuration has it."""
    if not 0 <= value < VALUE_MAX:
        raise click.BadParameter(f"{value:g} is not in the range 0<=x<2^63.")
    return int(value) if value.is_integer() else value


of_user = click.option("--user", metavar="USER", help="The user whose limit it is.")


def _full_name(name: str, user: str | None) -> str:
    """Return what a limit is called in the cluster."""
    return name if user is None else own_limit_name(user, name)


@click.group(cls=HelpfulGroup, no_args_is_help=False)
def limit() -> None:
    """Manage the limits of a cluster: set, remove, list.

    URL is any container of a cluster. A limit that is set holds in all of its containers, at once,
    in the place of the one in [limits] of their configuration files.
    """


@limit.command("set")
@click.argument("url", callback=single_url)
@click.argument("name")
@click.argument("value", type=float, callback=_number)
@of_user
@certified
@click.option("--json", "as_json", is_flag=True, help="Print the limit as one JSON object.")
def set_(url: str, name: str, value: float, user: str | None, as_json: bool) -> None:
    """Set a limit, such as connections_per_user, to a number.

    With --user it is one of that user alone, such as connections. It holds for what comes from now
    on: nobody who is there is closed.
    """
    row = DECLARED.ask(url, "UPDATE", _full_name(name, user), {"value": value})
    DECLARED.tell(row, "set", as_json=as_json)


@limit.command("remove")
@click.argument("url", callback=single_url)
@click.argument("name")
@of_user
@certified
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def remove(url: str, name: str, user: str | None, as_json: bool) -> None:
    """Remove a limit that was set.

    That of each container's file holds again.
    """
    DECLARED.remove(url, _full_name(name, user), as_json=as_json)


DECLARED.add_list(limit, "List the limits of a container.")
