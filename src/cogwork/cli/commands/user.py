"""`cogwork user`: the users of a cluster, through `$management`."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import click

from cogwork.cli.management.declared import Declared
from cogwork.cli.management.group import reach_each
from cogwork.cli.management.manager import Manager
from cogwork.cli.options.certificates import certified
from cogwork.cli.options.passwords import STDIN, read_password
from cogwork.cli.options.single_url import single_url
from cogwork.cli.unknown_commands import HelpfulGroup
from cogwork.config.password_hash import hash_password
from cogwork.sasl.verifier import HASHES, make_verifier

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.client import Client

__all__ = ("TYPE", "user")

TYPE = "org.cogwork.user"

NEW_PASSWORD = "COGWORK_NEW_PASSWORD"  # the name of a variable

COLUMNS = {
    "name": "user",
    "origin": "origin",
    "login": "login",
    "groups": "groups",
    "mesh": "mesh",
    "problem": "problem",
}

DECLARED = Declared(TYPE, "users", COLUMNS)


def _credentials(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what a user may be given to a command."""
    for option in (
        click.option("--no-password", is_flag=True, help="Log in by certificate alone."),
        click.option(
            "--new-password-file",
            metavar="FILE",
            help=f"Password of NAME: the first line of FILE; - prompts, or reads stdin. "
            f"Default: the environment variable {NEW_PASSWORD}.",
        ),
        click.option("--mesh/--no-mesh", default=None, help="Whether NAME may be a container."),
        click.option("--group", "groups", multiple=True, metavar="NAME", help="Group; repeatable."),
    ):
        command = option(command)
    return command


@click.group(cls=HelpfulGroup, no_args_is_help=False)
def user() -> None:
    """Manage users: add, set, remove, list, disconnect.

    URL is any container of a cluster. Users that are added hold in all of its containers, at once.
    Those in a container's configuration file are changed there.
    """


@user.command("add")
@click.argument("url", callback=single_url)
@click.argument("name")
@_credentials
@certified
@click.option("--json", "as_json", is_flag=True, help="Print the user as one JSON object.")
def add(
    url: str,
    name: str,
    groups: tuple[str, ...],
    *,
    mesh: bool | None,
    new_password_file: str | None,
    no_password: bool,
    as_json: bool,
) -> None:
    """Add a user.

    Prompts for the password, or reads the first line of stdin if it is not a terminal. Only hashes
    leave this machine. Without a permission, a user may connect and nothing else: see `cogwork
    permission add`.
    """
    options = {} if no_password else _password(new_password_file or _default_source())
    options |= {"groups": list(groups)} if groups else {}
    options |= {"mesh": mesh} if mesh is not None else {}
    DECLARED.tell(DECLARED.ask(url, "CREATE", name, options), "added", as_json=as_json)


@user.command("set")
@click.argument("url", callback=single_url)
@click.argument("name")
@_credentials
@click.option("--no-groups", is_flag=True, help="Take NAME out of all groups.")
@certified
@click.option("--json", "as_json", is_flag=True, help="Print the user as one JSON object.")
def set_(
    url: str,
    name: str,
    groups: tuple[str, ...],
    *,
    mesh: bool | None,
    new_password_file: str | None,
    no_password: bool,
    no_groups: bool,
    as_json: bool,
) -> None:
    """Change a user; what is not given stays.

    With another password, connections of the user are closed everywhere.
    """
    options: dict[str, object] = (
        {"password_hash": None, "scram_verifiers": None} if no_password else {}
    )
    if new_password_file is not None or (os.environ.get(NEW_PASSWORD) and not no_password):
        options |= _password(new_password_file)
    options |= {"groups": list(groups)} if groups or no_groups else {}
    options |= {"mesh": mesh} if mesh is not None else {}
    if not options:
        raise click.UsageError("nothing to change: give a password, --group or --mesh")
    DECLARED.tell(DECLARED.ask(url, "UPDATE", name, options), "changed", as_json=as_json)


DECLARED.add_remove(user, "Remove a user; its connections are closed everywhere.")
DECLARED.add_list(user, "List the users that hold in a container.")


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

    async def work(client: Client) -> int:
        found = await Manager(client).ask("DISCONNECT", "connection", name, body={"reason": reason})
        body = found.body
        assert isinstance(body, dict)
        return int(body["closed"])

    closed = sum(reach_each(url, work).values())
    if as_json:
        click.echo(json.dumps({"user": name, "closed": closed}, ensure_ascii=False))
    else:
        click.echo(f"user {name}: {closed} connections closed")


def _default_source() -> str | None:
    return None if os.environ.get(NEW_PASSWORD) else STDIN


def _password(file: str | None) -> dict[str, object]:
    """Read a password and hash it here: it does not leave this machine."""
    context = click.get_current_context(silent=True)
    given = os.environ.get(NEW_PASSWORD, "") if file is None else ""
    password = given or read_password(file or STDIN, context, is_new=True)
    if not password or "\0" in password:
        raise click.UsageError("the password is empty, or holds a NUL character")
    verifiers = [str(make_verifier(each, password)) for each in HASHES]
    return {"password_hash": hash_password(password), "scram_verifiers": verifiers}
