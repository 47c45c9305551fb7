"""`cogwork vhost`: the virtual hosts of a cluster, through `$management`."""

from __future__ import annotations

import click

from cogwork.cli.management.declared import Declared
from cogwork.cli.options.certificates import certified
from cogwork.cli.options.single_url import single_url
from cogwork.cli.unknown_commands import HelpfulGroup

__all__ = ("TYPE", "vhost")

TYPE = "org.cogwork.vhost"

COLUMNS = {
    "name": "virtual host",
    "origin": "origin",
    "connections": "connections",
    "addresses": "addresses",
}

DECLARED = Declared(TYPE, "virtual hosts", COLUMNS)


@click.group(cls=HelpfulGroup, no_args_is_help=False)
def vhost() -> None:
    """Manage virtual hosts: add, remove, list.

    URL is any container of a cluster. Virtual hosts that are added are there in all of its
    containers, at once, with the built-in rules of addresses. Those in a container's configuration
    file are changed there.
    """


@vhost.command("add")
@click.argument("url", callback=single_url)
@click.argument("name")
@certified
@click.option("--json", "as_json", is_flag=True, help="Print the virtual host as one JSON object.")
def add(url: str, name: str, as_json: bool) -> None:
    """Add a virtual host.

    A permission holds there if its --vhost is NAME or '*': see `cogwork permission add`.
    """
    DECLARED.tell(DECLARED.ask(url, "CREATE", name, {}), "added", as_json=as_json)


DECLARED.add_remove(
    vhost,
    """Remove a virtual host with all that is in it.

    Connections to it are closed, and its queues are deleted with what they hold, in all containers.
    Streams and replicated queues are not: delete them first.
    """,
)
DECLARED.add_list(vhost, "List the virtual hosts of a container.")
