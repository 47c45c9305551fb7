"""`cogwork cluster`: begin, move, recover a cluster, forget who is gone from it."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.management.manager import Manager
from cogwork.cli.management.moving import LOOK_S, SILENCE_S, named, some
from cogwork.cli.management.reach import reach
from cogwork.cli.options.certificates import certified
from cogwork.cli.options.single_url import single_url
from cogwork.cli.terminal.visible import visible
from cogwork.cli.unknown_commands import HelpfulGroup
from cogwork.client import ClientError
from cogwork.container.cluster.identity import init as init_cluster
from cogwork.container.cluster.recovery import recover as recover_cluster

if TYPE_CHECKING:
    from uuid import UUID

    from cogwork.client import Client

__all__ = ("cluster",)

PATH = click.Path(exists=True, file_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)

WARNING = (
    "use this only if a majority of the cluster is lost for good. What only the lost containers "
    "had is gone. They may have settled items of replicated queues: those of work/ are parked, "
    "those of queue/ are redelivered, marked. Never start a lost container with its old data "
    "directory"
)


@click.group(cls=HelpfulGroup, no_args_is_help=False)
def cluster() -> None:
    """Begin, move, recover a cluster; forget a member."""


@cluster.command("init")
@click.option("--data", required=True, type=FOLDER, metavar="DIR", help="Data directory.")
@click.option("--uuid", "given", type=click.UUID, show_default="a new one", help="The cluster's.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def init(data: Path, given: UUID | None, as_json: bool) -> None:
    """Make an empty data directory one of a founder.

    Its container then begins without asking whether the other primaries are empty. Each founder
    needs the same UUID: run this for one without --uuid, and for the others with the one printed.
    """
    made = init_cluster(data, None if given is None else str(given))
    click.echo(
        json.dumps({"uuid": made}) if as_json else f"{data} is a founder's of cluster {made}"
    )


@cluster.command("recover")
@click.option("--data", required=True, type=PATH, metavar="DIR", help="Data directory.")
@click.option("--only", required=True, metavar="ID", help="Container that the directory is of.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def recover(data: Path, only: str, as_json: bool) -> int:
    """Make a new cluster of the only container that is left.

    For a cluster whose majority is lost for good. The container must be stopped. It keeps all
    records that it has, as the only member of each stream and queue that it holds. The new cluster
    has a UUID of its own, and each stream begins a new epoch.
    """
    click.echo(f"cogwork: warning: {WARNING}", err=True)
    found = recover_cluster(data, only)
    if as_json:
        facts = {"uuid": found.uuid, "streams": found.streams, "problems": found.problems}
        click.echo(json.dumps(facts, ensure_ascii=False))
    else:
        for stream, end in found.streams.items():
            click.echo(visible(f"{stream}: kept up to offset {end}"))
        click.echo(f"cluster {found.uuid}: {only} is its only member")
    for problem in found.problems:
        click.echo(visible(f"cogwork: not recovered: {problem}"), err=True)
    return ExitCode.ERROR if found.problems else ExitCode.OK


@cluster.command("move")
@click.argument("url")
@click.option(
    "--primaries",
    required=True,
    metavar="A,B,C",
    callback=some,
    help="Ids of the new primaries, highest leader priority first.",
)
@click.option("--no-wait", is_flag=True, help="Return before the move is complete.")
@certified
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def move(url: str, primaries: str, *, no_wait: bool, as_json: bool) -> None:
    """Change the primaries of a cluster while it is used.

    The new ones need a data directory, and the same [cluster] primaries in their configuration from
    now on. The move continues even if this command is interrupted. Streams and queues stay where
    they are: `cogwork stream move` and `cogwork queue relocate` move these.
    """
    wanted = named(primaries)

    async def work(client: Client) -> dict[str, Any]:
        manager = Manager(client)
        await manager.ask("PRIMARIES", "org.cogwork.mesh", body={"replicas": wanted})
        return await _facts(manager) if no_wait else await _watch(manager, wanted)

    facts = reach(url, work, force=True)
    if as_json:
        click.echo(json.dumps({key: facts[key] for key in ("uuid", "voters", "moving")}))
    else:
        held = "is to have" if facts["moving"] else "has"
        click.echo(visible(f"the cluster {held} the primaries {', '.join(facts['voters'])}"))


@cluster.command("forget")
@click.argument("url", callback=single_url)
@click.argument("container", metavar="ID")
@certified
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def forget(url: str, container: str, as_json: bool) -> None:
    """Stop counting a container that is gone for good.

    The feature level rises once every member knows the next one. This is refused for a primary and
    for a container that is there. One that comes back is counted again. Streams and queues that it
    held are moved by `cogwork stream move` and `cogwork queue relocate`.
    """

    async def work(client: Client) -> None:
        await Manager(client).ask("FORGET", "org.cogwork.mesh", body={"container": container})

    reach(url, work, force=True)
    told = {"forgotten": container}
    click.echo(json.dumps(told) if as_json else visible(f"{container} is no longer counted"))


async def _facts(manager: Manager) -> dict[str, Any]:
    row = await manager.get("READ", "container")
    facts: dict[str, Any] = row["cluster"]
    return facts


async def _watch(manager: Manager, wanted: list[str]) -> dict[str, Any]:
    """Look at the cluster until it has the primaries that it is to have.

    Raises:
        click.ClickException: Another move has taken its place.
        ClientError: The container has not answered for long.
    """
    heard_s, has_begun = time.monotonic(), False
    while True:
        try:
            facts = await _facts(manager)
        except ClientError:
            if time.monotonic() - heard_s > SILENCE_S:
                raise
        else:
            heard_s = time.monotonic()
            if has_begun and facts["voters"] != wanted:
                now = ", ".join(facts["voters"])
                raise click.ClickException(f"another move has taken its place: to {now}")
            has_begun = facts["voters"] == wanted
            if has_begun and not facts["moving"]:
                return facts
        await asyncio.sleep(LOOK_S)
