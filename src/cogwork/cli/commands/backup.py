"""`cogwork backup`: copy what a running container keeps, and check a copy."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cogwork.cli.exit_codes import ExitCode, line_of
from cogwork.cli.management.backing_up import take_backup
from cogwork.cli.management.group import reach_all
from cogwork.cli.management.manager import Manager
from cogwork.cli.options.certificates import certified
from cogwork.cli.options.single_url import single_url
from cogwork.cli.terminal.tables import in_bytes
from cogwork.cli.terminal.visible import visible
from cogwork.cli.unknown_commands import HelpfulGroup
from cogwork.container.backup.folder import BackupFolder
from cogwork.container.backup.restoration import problems_of

if TYPE_CHECKING:
    from cogwork.cli.management.backing_up import Taken
    from cogwork.client import Client

__all__ = ("backup",)

FOLDER = click.Path(file_okay=False, path_type=Path)

CREATE = "create"

TELL_EVERY_S = 1.0


class _BackupGroup(HelpfulGroup):
    """A group whose `create` need not be named: a URL may follow at once."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words; what names no command is about `create`."""
        if args and args[0] != "--help" and args[0] not in self.commands:
            args = [CREATE, *args]
        return super().parse_args(ctx, args)


@click.group(cls=_BackupGroup, no_args_is_help=True)
def backup() -> None:
    """Back up a running container, and verify backups."""


@backup.command(CREATE)
@click.argument("url", callback=single_url)
@click.option(
    "--to", required=True, type=FOLDER, metavar="DIR", help="Directory that takes the backup."
)
@certified
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def create(url: str, to: Path, as_json: bool) -> int:
    """Copy what a container keeps, while it runs.

    Streams, queues and declarations are as of one moment, and hold all that was confirmed before.
    A second run with the same DIR copies what is new. Containers have folders of their own in DIR.
    Backups contain hashes of passwords and all messages: only their owner can read them.
    """
    progress = _Progress()

    async def work(clients: dict[str, Client]) -> list[Taken]:
        return [
            await take_backup(Manager(client), to, progress.tell) for client in clients.values()
        ]

    taken = reach_all(url, work)
    progress.end()
    for each in taken:
        for what in each.manifest.behind:
            text = f"{what} may lack records of the last seconds: nobody leads it"
            click.echo(visible(f"cogwork: warning: {text}"), err=True)
        for what in each.manifest.absent:
            click.echo(visible(f"cogwork: warning: not in the backup: {what}"), err=True)
    rows = [_facts(each) for each in taken]
    if as_json:
        click.echo(json.dumps({"backups": rows}, ensure_ascii=False))
    else:
        for row in rows:
            click.echo(visible(_line(row)))
    return ExitCode.OK


class _Progress:
    """What has been copied, told on stderr now and then where that takes long."""

    def __init__(self) -> None:
        self._told_s = time.monotonic()
        self._is_open = False

    def tell(self, copied_bytes: int, total_bytes: int) -> None:
        """Tell how far it is; on a terminal the line is written anew."""
        now_s = time.monotonic()
        if now_s - self._told_s < TELL_EVERY_S:
            return
        self._told_s = now_s
        text = f"cogwork: {in_bytes(copied_bytes)} of {in_bytes(total_bytes)} are copied"
        self._is_open = sys.stderr.isatty()
        click.echo(f"\r{text}\033[K" if self._is_open else text, err=True, nl=not self._is_open)

    def end(self) -> None:
        """End a line that is open."""
        if self._is_open:
            click.echo("", err=True)


def _facts(taken: Taken) -> dict[str, Any]:
    manifest = taken.manifest
    return {
        "container": manifest.container,
        "cluster": manifest.cluster,
        "folder": str(taken.folder),
        "time_ms": manifest.time_ms,
        "files": len(manifest.files),
        "size_bytes": sum(each.size_bytes for each in manifest.files),
        "copied_bytes": taken.copied_bytes,
        "is_first": taken.is_first,
        "streams": manifest.streams,
        "absent": manifest.absent,
        "behind": manifest.behind,
    }


def _line(row: dict[str, Any]) -> str:
    return (
        f"container {row['container']}: {row['files']} files with "
        f"{in_bytes(row['size_bytes'])} in {row['folder']}, "
        f"{in_bytes(row['copied_bytes'])} of it new"
    )


@backup.command("verify")
@click.argument("folder", type=FOLDER, metavar="DIR")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def verify(folder: Path, as_json: bool) -> int:
    """Verify backups.

    Compares the checksums of all files, and reads logs and segments as a start does.
    Prints each problem to stderr and exits with 1 if there is any.
    """
    rows, problems = [], []
    for each in BackupFolder.all_in(folder):
        manifest = each.demand()
        found = [line_of(problem) for problem in problems_of(each)]
        problems += found
        facts = {"container": manifest.container, "files": len(manifest.files)}
        rows.append(facts | {"time_ms": manifest.time_ms, "problems": found})
    if as_json:
        click.echo(json.dumps({"backups": rows}, ensure_ascii=False))
    else:
        for row in rows:
            if not row["problems"]:
                text = f"container {row['container']}: {row['files']} files are sound"
                click.echo(visible(text))
    for problem in problems:
        click.echo(visible(f"cogwork: {problem}"), err=True)
    return ExitCode.ERROR if problems else ExitCode.OK
