"""`cogwork cluster config`: what a cluster has for all containers, as one document."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.management.cluster_document import as_text, entries_in, tables_of
from cogwork.cli.management.manager import Manager
from cogwork.cli.management.reach import reach
from cogwork.cli.options.certificates import certified
from cogwork.cli.options.single_url import single_url
from cogwork.cli.terminal.rendering import jsonable
from cogwork.cli.terminal.visible import visible
from cogwork.cli.unknown_commands import HelpfulGroup
from cogwork.config.errors import ConfigurationError, Unreadable
from cogwork.container.cluster.document import DocumentEntry
from cogwork.plugin.management import LIMIT, MESH, USER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.client import Client

__all__ = ("config",)

FILE = click.Path(dir_okay=False, path_type=Path)

PRUNE = click.option(
    "--prune",
    is_flag=True,
    help="Remove what FILE does not have, but never streams and queues.",
)
DRY_RUN = click.option("--dry-run", is_flag=True, help="Print the difference, change nothing.")

TABLES = ("limits", "root")
"""Of a document, those that are none of an array, and are there without being named before."""

Change = dict[str, Any]


@click.group(cls=HelpfulGroup, no_args_is_help=False)
def config() -> None:
    """Show and change what a cluster has for all containers."""


@config.command("show")
@click.argument("url", callback=single_url)
@certified
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show(url: str, as_json: bool) -> None:
    """Print what a cluster has for all containers.

    It is a document in the syntax of cogwork.toml. Hashes of passwords are in it. What the file of
    the container at URL has as well, and which of the two holds there, is on stderr.
    """
    entries, notes = reach(url, _looked_at, force=True)
    document = tables_of(entries)
    if as_json:
        click.echo(json.dumps(jsonable(document), ensure_ascii=False))
    else:
        click.echo(as_text(document), nl=False)
    for note in notes:
        click.echo(visible(f"cogwork: {note}"), err=True)


@config.command("apply")
@click.argument("url", callback=single_url)
@click.argument("file", type=FILE, metavar="FILE")
@PRUNE
@DRY_RUN
@certified
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def apply(url: str, file: Path, *, prune: bool, dry_run: bool, as_json: bool) -> int:
    """Have a cluster have what a document says.

    All of it is done, or nothing if one entry is wrong. FILE is in the syntax of cogwork.toml, as
    `cogwork cluster config show` prints it.
    """
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise Unreadable(str(file), reason) from error
    changes = _applied(url, text, str(file), prune=prune, dry_run=dry_run)
    return _tell(changes, dry_run=dry_run, as_json=as_json)


@config.command("set")
@click.argument("url", callback=single_url)
@click.argument("key", metavar="KEY")
@click.argument("value", metavar="VALUE")
@DRY_RUN
@certified
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def set_(url: str, key: str, value: str, *, dry_run: bool, as_json: bool) -> int:
    """Set one key of the document.

    A key is limits.connections, say, or user.bob.mesh. A table of an array is named by its name or
    address. VALUE is TOML, or text where it is none.
    """
    document = tables_of(reach(url, _entries_there, force=True))
    _put(document, key.split("."), _parsed(value), key)
    changes = _applied(url, as_text(document), "document", prune=False, dry_run=dry_run)
    return _tell(changes, dry_run=dry_run, as_json=as_json)


@config.command("edit")
@click.argument("url", callback=single_url)
@certified
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def edit(url: str, as_json: bool) -> int:
    """Open the document in an editor, and apply what is saved.

    What was removed from it goes, but for streams and queues. The editor is $VISUAL or $EDITOR.
    """
    before = as_text(tables_of(reach(url, _entries_there, force=True)))
    text = click.edit(before, extension=".toml")
    if text is None or text == before:
        return _tell([], dry_run=False, as_json=as_json)
    try:
        changes = _applied(url, text, "document", prune=True, dry_run=False)
    except (ConfigurationError, click.ClickException):
        kept = Path(click.get_app_dir("cogwork")) / "cluster-config.toml"
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.touch(0o600)
        kept.write_text(text, "utf-8")
        click.echo(visible(f"cogwork: what you wrote is in {kept}"), err=True)
        raise
    return _tell(changes, dry_run=False, as_json=as_json)


async def _entries_there(client: Client) -> list[DocumentEntry]:
    body = await Manager(client).get("ENTRIES", MESH)
    return [DocumentEntry(*each) for each in body["entries"]]


async def _looked_at(client: Client) -> tuple[list[DocumentEntry], list[str]]:
    """Return the entries, and what the container's own file says otherwise."""
    entries, manager = await _entries_there(client), Manager(client)
    users, _ = await manager.rows(USER)
    limits, _ = await manager.rows(LIMIT)
    notes = [
        f"user {row['name']}: the file of this container has it, too, and holds here"
        for row in users
        if row["problem"]
    ]
    notes += [
        f"limit {row['name']}: the cluster's holds, the file of this container says "
        f"{row['configured']}"
        for row in limits
        if row["origin"] == "cluster" and row["configured"] not in (None, row["value"])
    ]
    return entries, notes


def _applied(url: str, text: str, source: str, *, prune: bool, dry_run: bool) -> list[Change]:
    """Have a cluster have what a document says; return what changes.

    Raises:
        ConfigurationError: An entry is wrong; nothing is done.
    """
    wanted = entries_in(text, source)
    body = {"entries": [list(entry) for entry, _ in wanted.values()], "prune": prune}

    async def work(client: Client) -> list[Change]:
        reply = await Manager(client).ask("APPLY", MESH, body={**body, "dry": dry_run})
        return list(reply.body["changes"])  # type: ignore[index]  # a map of AMQP

    changes = reach(url, work, force=True)
    for change in changes:
        if problem := change.get("problem"):
            key = (change["kind"], change["vhost"], change["name"])
            line = wanted[key][1] if key in wanted else 0
            place = f"{source}:{line}" if line else source
            raise click.ClickException(
                f"{place}: {change['kind']} {change['name']}: {problem}; nothing is changed"
            )
    return changes


def _tell(changes: Sequence[Change], *, dry_run: bool, as_json: bool) -> int:
    if as_json:
        facts = {"changes": changes, "is_applied": not dry_run}
        click.echo(json.dumps(jsonable(facts), ensure_ascii=False))
        return ExitCode.OK
    for change in changes:
        for line in _lines_of(change):
            click.echo(visible(line))
    if not changes:
        click.echo("nothing differs")
    elif dry_run:
        click.echo(f"{len(changes)} changes, none is made", err=True)
    return ExitCode.OK


SECRETS = {"password_hash", "scram_verifiers"}


def _lines_of(change: Change) -> list[str]:
    """Return what people see of a change; of secrets only that they are others."""
    before, after = change["before"], change["after"]
    where = f" in {change['vhost']}" if change["vhost"] else ""
    what = f"{change['kind']} {change['name']}{where}"
    if before is None or after is None:
        return [f"{'+' if before is None else '-'} {what}"]
    keys = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
    told = [
        f"    {key}: {'…' if key in SECRETS else f'{before.get(key)!r} → {after.get(key)!r}'}"
        for key in keys
    ]
    return [f"~ {what}", *told]


def _put(document: dict[str, Any], path: list[str], value: object, key: str) -> None:
    """Set a key of a document.

    Raises:
        click.BadParameter: There is no such table.
    """
    table: Any = document
    if len(path) == 2 and path[0] in TABLES:
        table = document.setdefault(path[0], {})
    else:
        for word in path[:-1]:
            table = _below(table, word)
            if table is None:
                raise click.BadParameter(f"the document has no {word!r} in {key!r}")
    if not isinstance(table, dict):
        raise click.BadParameter(f"{key!r} is no key of a table (expected limits.connections, say)")
    table[path[-1]] = value


def _below(table: Any, word: str) -> Any:  # noqa: ANN401  # whatever TOML has
    if isinstance(table, dict):
        return table.get(word)
    if isinstance(table, list):
        named = (each for each in table if word in (each.get("name"), each.get("address")))
        return next(named, None)
    return None


def _parsed(value: str) -> object:
    try:
        return tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return value
