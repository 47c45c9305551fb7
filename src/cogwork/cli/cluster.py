"""`cogwork cluster`: what can be done to a cluster whose containers do not run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.unknown_commands import HelpfulGroup
from cogwork.cli.visible import visible
from cogwork.container.cluster.identity import init as init_cluster
from cogwork.container.cluster.recovery import recover as recover_cluster

if TYPE_CHECKING:
    from uuid import UUID

__all__ = ("cluster",)

PATH = click.Path(exists=True, file_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)

WARNING = (
    "this is for a cluster whose majority is lost for good: what only the lost containers had is "
    "gone; items that they had settled since may be given out again, and none of them may be "
    "started with its old data directory"
)


@click.group(cls=HelpfulGroup, no_args_is_help=False)
def cluster() -> None:
    """Begin a cluster, or recover one from a single data directory."""


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
