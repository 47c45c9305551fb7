"""`cogwork log`: the files that a container keeps, looked at from the outside."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cogwork.cli.exit_codes import ExitCode, line_of
from cogwork.cli.options.quantities import Whole
from cogwork.cli.terminal.rendering import encoded_as_json, encoded_as_text
from cogwork.cli.terminal.tables import console, table, widened
from cogwork.cli.unknown_commands import HelpfulGroup
from cogwork.log.errors import LogError
from cogwork.log.inspection import files_below, inspect_file, verify
from cogwork.log.segment import SUFFIX
from cogwork.replication.offline import KeptReplica, kept_replicas

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ("log",)

PATH = click.Path(exists=True, path_type=Path)

LOG_COLUMNS = {
    "file": "file",
    "container": "container",
    "number": "number",
    "size_bytes": "size",
    "used_bytes": "used",
    "records": "records",
    "groups": "groups",
    "oldest_file_needed": "needed from",
    "problem": "problem",
}
SEGMENT_COLUMNS = {
    "file": "file",
    "size_bytes": "size",
    "first_offset": "first offset",
    "next_offset": "next offset",
    "blocks": "blocks",
    "first_time_ms": "first time",
    "last_time_ms": "last time",
    "problem": "problem",
}
GROUPS_SHOWN = 10


@click.group(cls=HelpfulGroup, no_args_is_help=False)
def log() -> None:
    """Inspect, verify and dump log files."""


@log.command("inspect")
@click.argument("path", type=PATH, metavar="FILE_OR_DIRECTORY")
@widened
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON array with an object for each file."
)
def inspect(path: Path, as_json: bool) -> int:
    """Show the contents of log files.

    Shows the problem of a file that cannot be read, and exits with 1 if there is one.
    """
    rows = [row for file in _files(path) if (row := _row_of(file)) is not None]
    if as_json:
        click.echo(json.dumps(rows))
    else:
        _show(rows)
    return ExitCode.ERROR if any("problem" in row for row in rows) else ExitCode.OK


@log.command("verify")
@click.argument("path", type=PATH, metavar="FILE_OR_DIRECTORY")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def verify_(path: Path, as_json: bool) -> int:
    """Verify the checksums of log files and that the files fit together.

    Prints each problem to stderr and exits with 1 if there is any. Never changes a file.
    """
    files = _files(path)
    problems = verify(path)
    count = sum(file.exists() for file in files)
    if as_json:
        click.echo(json.dumps({"files": count, "problems": list(map(_facts_of, problems))}))
    else:
        for problem in problems:
            click.echo(f"cogwork: {line_of(problem)}", err=True)
        if not problems:
            click.echo(f"{count} files are sound")
    return ExitCode.ERROR if problems else ExitCode.OK


@log.command("dump")
@click.argument("name", metavar="STREAM")
@click.option("--data", required=True, type=PATH, metavar="DIR", help="Data directory.")
@click.option("--from", "first", type=Whole(0, 2**63 - 1), default=0, help="First offset.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each record.")
def dump(name: str, data: Path, first: int, as_json: bool) -> int:
    """Print the records of a replicated stream from a data directory.

    The container need not run, and no file is changed. Records that this container does not know
    to be committed are printed, too, and counted on stderr.
    """
    stream = name.removeprefix("/").removeprefix("stream/")
    replica = _replica_of(stream, kept_replicas(data))
    uncertain = 0
    for record in replica.records():
        if record.offset < first:
            continue
        uncertain += not record.is_certain
        if as_json:
            facts = {
                "offset": record.offset,
                "time_ms": record.time_ms,
                "epoch": record.epoch,
                "is_certain": record.is_certain,
                "message": json.loads(encoded_as_json(record.data)),
            }
            click.echo(json.dumps(facts, ensure_ascii=False))
        else:
            click.echo(encoded_as_text(record.data))
    if uncertain:
        what = "1 record at the end is" if uncertain == 1 else f"{uncertain} records at the end are"
        click.echo(f"cogwork: {what} not known here to be committed", err=True)
    return ExitCode.OK


def _replica_of(stream: str, replicas: Mapping[int, KeptReplica | Exception]) -> KeptReplica:
    """Return the replica of a stream.

    Raises:
        click.ClickException: There is none, or it cannot be read.
    """
    known = [each for each in replicas.values() if isinstance(each, KeptReplica)]
    for replica in known:
        if replica.declared.stream == stream:
            return replica
    broken = [str(each) for each in replicas.values() if isinstance(each, Exception)]
    names = ", ".join(sorted(each.declared.stream for each in known)) or "none"
    why = f"; {len(broken)} cannot be read: {'; '.join(broken)}" if broken else ""
    raise click.ClickException(
        f"there is no replica of a stream {stream!r:.200} (expected one of {names}{why})"
    )


def _files(path: Path) -> list[Path]:
    files = files_below(path)
    if not files:
        raise click.BadParameter(f"there are no log files below {path}")
    return files


def _row_of(file: Path) -> dict[str, Any] | None:
    """Return what there is to be shown of a file; None where it has gone meanwhile."""
    try:
        return inspect_file(file)
    except FileNotFoundError:
        return None
    except LogError as error:
        return {"file": str(file), "problem": line_of(error)}


def _facts_of(problem: LogError) -> dict[str, Any]:
    return {
        "problem": line_of(problem),
        "file": getattr(problem, "file", None),
        "position": getattr(problem, "position", None),
    }


def _show(rows: Sequence[dict[str, Any]]) -> None:
    segments = [_in_words(row) for row in rows if row["file"].endswith(SUFFIX)]
    logs = [_shortened(row) for row in rows if not row["file"].endswith(SUFFIX)]
    out = console()
    for title, columns, each in (
        ("write-ahead log", LOG_COLUMNS, logs),
        ("segments", SEGMENT_COLUMNS, segments),
    ):
        if each:
            shown = columns if any("problem" in row for row in each) else _without(columns)
            out.print(*table(title, shown, each, len(each)))


def _without(columns: dict[str, str]) -> dict[str, str]:
    return {key: heading for key, heading in columns.items() if key != "problem"}


def _shortened(row: dict[str, Any]) -> dict[str, Any]:
    """Return how many groups there are where they are too many to be listed."""
    groups = row.get("groups", {})
    if len(groups) > GROUPS_SHOWN:
        return row | {"groups": f"{len(groups):,} groups"}
    return row | {"groups": ", ".join(f"{group}: {count:,}" for group, count in groups.items())}


def _in_words(row: dict[str, Any]) -> dict[str, Any]:
    """Write times as people do."""
    return row | {
        key: datetime.fromtimestamp(row[key] / 1000, UTC).isoformat(timespec="milliseconds")
        for key in ("first_time_ms", "last_time_ms")
        if key in row
    }
