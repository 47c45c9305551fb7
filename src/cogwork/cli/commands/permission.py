"""`cogwork permission`: who may do what in a cluster, through `$management`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from cogwork.cli.management.declared import Declared
from cogwork.cli.options.certificates import certified
from cogwork.cli.options.single_url import single_url
from cogwork.cli.unknown_commands import HelpfulGroup
from cogwork.container.cluster.settings import permission_name

if TYPE_CHECKING:
    from collections.abc import Callable


__all__ = ("TYPE", "permission")

TYPE = "org.cogwork.permission"

COLUMNS = {
    "origin": "origin",
    "user": "user",
    "group": "group",
    "deny": "deny",
    "rights": "rights",
    "address": "address",
    "vhost": "vhost",
}

DECLARED = Declared(TYPE, "permissions", COLUMNS)


def _named(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what a permission is known by to a command."""
    for option in (
        click.option(
            "--vhost",
            show_default="the default one",
            help="Virtual host it holds in; '*' is all of them.",
        ),
        click.option("--deny", is_flag=True, help="Forbid instead of allow."),
        click.option("--address", required=True, help="Pattern of addresses."),
        click.option("--group", metavar="NAME", help="Group that it is of."),
        click.option("--user", metavar="NAME", help="User that it is of."),
    ):
        command = option(command)
    return command


@click.group(cls=HelpfulGroup, no_args_is_help=False)
def permission() -> None:
    """Manage permissions of a cluster: add, remove, list.

    URL is any container of the cluster. Permissions hold in all of them, at once, beside those in
    the configuration file of each.
    """


@permission.command("add")
@click.argument("url", callback=single_url)
@_named
@click.option(
    "--rights",
    required=True,
    metavar="RIGHT,...",
    help="Of send, receive and manage, between commas.",
)
@certified
@click.option("--json", "as_json", is_flag=True, help="Print the permission as one JSON object.")
def add(
    url: str,
    user: str | None,
    group: str | None,
    address: str,
    *,
    vhost: str | None,
    rights: str,
    deny: bool,
    as_json: bool,
) -> None:
    """Allow, or with --deny forbid, something at an address."""
    options = _options(user, group, address, vhost, deny=deny)
    body = {**options, "rights": _rights(rights)}
    row = DECLARED.ask(url, "CREATE", permission_name(options), body)
    DECLARED.tell(row, "added", as_json=as_json)


@permission.command("remove")
@click.argument("url", callback=single_url)
@_named
@certified
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def remove(
    url: str,
    user: str | None,
    group: str | None,
    address: str,
    *,
    vhost: str | None,
    deny: bool,
    as_json: bool,
) -> None:
    """Take a permission back, and detach the links that need it."""
    name = permission_name(_options(user, group, address, vhost, deny=deny))
    DECLARED.remove(url, name, as_json=as_json)


DECLARED.add_list(permission, "List the permissions that hold in a container.")


def _options(
    user: str | None, group: str | None, address: str, vhost: str | None, *, deny: bool
) -> dict[str, object]:
    if (user is None) == (group is None):
        raise click.UsageError("give either --user or --group")
    whom: dict[str, object] = {"user": user} if user is not None else {"group": group}
    where: dict[str, object] = {} if vhost is None else {"vhost": vhost}
    return {**whom, **where, "address": address, **({"deny": True} if deny else {})}


def _rights(text: str) -> list[str]:
    return [each.strip() for each in text.split(",")]
