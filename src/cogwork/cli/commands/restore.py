"""`cogwork restore`: make a data directory of a backup."""

from __future__ import annotations

import json
from pathlib import Path

import click

from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.terminal.visible import visible
from cogwork.container.backup.restoration import restore as restore_backup

__all__ = ("restore",)

FOLDER = click.Path(file_okay=False, path_type=Path)

WARNING = (
    "never start a container of the cluster that was backed up with its old data directory again. "
    "Items may have been settled since the backup: those of work/ are parked, those of queue/ are "
    "redelivered, marked"
)


@click.command()
@click.argument("folder", type=FOLDER, metavar="DIR")
@click.option("--data", required=True, type=FOLDER, metavar="DATA", help="Empty data directory.")
@click.option(
    "--id", "container", required=True, metavar="ID", help="Container whose backup it is."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def restore(folder: Path, data: Path, container: str, as_json: bool) -> int:
    """Make a data directory of a backup.

    The container is then the only member of a new cluster, with a UUID of its own; each stream
    begins a new epoch. Start the container with DATA, and
    with the same id; then start the others with empty data directories, and make them primaries
    with `cogwork cluster move`.
    """
    click.echo(f"cogwork: warning: {WARNING}", err=True)
    manifest, found = restore_backup(folder, data, container)
    if as_json:
        facts = {
            "uuid": found.uuid,
            "time_ms": manifest.time_ms,
            "streams": found.streams,
            "absent": manifest.absent,
            "problems": found.problems,
        }
        click.echo(json.dumps(facts, ensure_ascii=False))
    else:
        for stream, end in found.streams.items():
            click.echo(visible(f"{stream}: restored up to offset {end}"))
        click.echo(visible(f"cluster {found.uuid}: {container} is its only member"))
    for what in manifest.absent:
        click.echo(visible(f"cogwork: warning: not in the backup: {what}"), err=True)
    for problem in found.problems:
        click.echo(visible(f"cogwork: not restored: {problem}"), err=True)
    return ExitCode.ERROR if found.problems else ExitCode.OK
