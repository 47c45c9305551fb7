"""`cogwork pipeline archive`: streams into Iceberg tables, until it is told to end."""

from __future__ import annotations

import json
import signal
import threading
import time
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from cogwork.cli.commands.pipelines.bars import Bars
from cogwork.cli.commands.pipelines.extra import needs_the_extra
from cogwork.cli.commands.pipelines.session import spark_session
from cogwork.cli.commands.pipelines.spark_options import where_spark_runs
from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.management.reach import reach
from cogwork.cli.options.certificates import certificate_options, certificates_of
from cogwork.cli.options.passwords import with_password
from cogwork.cli.options.quantities import Finite, Whole

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from cogwork.client import Client
    from cogwork.pipeline.archive import Archive, Archiver
    from cogwork.pipeline.archive.archiver import Outcome
    from cogwork.pipeline.archive.origin import Origin
    from cogwork.pipeline.archive.upkeep import Kept
    from cogwork.pipeline.archive.workers import Workers

__all__ = ("archive",)

WITHOUT_SPARK = "none"
LOCAL = "local[*,4]"
"""All cores of this machine; a task whose worker was lost is tried again."""

EVERY_S = 30.0

UPKEEP_EVERY_S = 600.0
"""How often tables are compacted and swept by an archiver that goes on."""


class _Way(NamedTuple):
    """How the command goes about it."""

    streams: tuple[str, ...]
    every_s: float | None
    upkeep: bool
    as_json: bool


@click.command()
@click.argument("url")
@click.argument("streams", nargs=-1, required=True, metavar="STREAM...")
@click.option("--to", required=True, metavar="DIR|CATALOG", help="Directory or catalog.")
@click.option(
    "--catalog-option", "pairs", multiple=True, metavar="K=V", help="Catalog option; repeatable."
)
@click.option("--once", is_flag=True, help="Stop at the current end of the streams.")
@click.option(
    "--every",
    type=Finite(min=0.1),
    metavar="S",
    show_default="30",
    help="Seconds between passes.",
)
@click.option(
    "--commit-rows",
    type=Whole(min=1),
    default=1_000_000,
    show_default=True,
    help="Maximum number of records per commit.",
)
@click.option("--trim-after", is_flag=True, help="Trim archived records from the stream.")
@click.option(
    "--fail-on-data-loss/--no-fail-on-data-loss",
    default=True,
    show_default=True,
    help="Stop if a stream has trimmed records that are not archived.",
)
@click.option(
    "--adopt", is_flag=True, help="Take over a table whose catalog was lost, from its metadata."
)
@click.option("--no-upkeep", is_flag=True, help="Skip compaction and the removal of orphan files.")
@click.option(
    "--master", show_default="no Spark", help="Spark master: local[2], spark://HOST:PORT."
)
@click.option("--remote", help="Spark Connect server, sc://HOST:PORT.")
@certificate_options
@click.option(
    "--timeout",
    "timeout_s",
    type=Finite(min=0.1),
    metavar="S",
    default=300.0,
    show_default=True,
    help="Seconds to wait for an unreachable container.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per pass.")
def archive(
    url: str,
    streams: tuple[str, ...],
    *,
    to: str,
    pairs: tuple[str, ...],
    once: bool,
    every: float | None,
    commit_rows: int,
    trim_after: bool,
    fail_on_data_loss: bool,
    adopt: bool,
    no_upkeep: bool,
    master: str | None,
    remote: str | None,
    timeout_s: float,
    as_json: bool,
    ca_file: str | None,
    cert_file: str | None,
    key_file: str | None,
) -> ExitCode:
    """Keep streams as Apache Iceberg tables, each record once.

    A STREAM is a name, an address or a pattern. The tables record what is archived: the command may
    be stopped or killed at any time and resumes where it was. A DIR gets its own catalog (SQLite);
    catalog:NAME is a catalog in pyiceberg's configuration, http://... a REST catalog.
    """
    if once and every is not None:
        raise click.UsageError("--once and --every exclude each other")
    where_spark_runs(master, remote)
    options = dict(map(_pair, pairs))
    certificates = certificates_of(ca_file, cert_file, key_file)
    url = with_password(url)
    with needs_the_extra():
        from cogwork.pipeline.archive import Archive, Archiver, Settings
        from cogwork.pipeline.archive.origin import Origin
    way = _Way(streams, None if once else every or EVERY_S, not no_upkeep, as_json)
    settings = Settings(commit_rows, fail_on_data_loss, trim_after, adopt)
    with (
        Origin(url, timeout_s=timeout_s, certificates=certificates) as origin,
        Bars(quiet=as_json) as bars,
        Archive.open(to, options, make=True) as tables,
    ):
        # What is wrong with these two is said at once, and before Spark starts.
        reach(url, _greet, tls=certificates.context())
        origin.streams(streams)
        with workers_of(master, remote) as workers:
            archiver = Archiver(origin, tables, workers, settings, bars.on_notice)
            with stopped_by_signals(archiver):
                return _go_on(archiver, tables, origin, way, bars)


def _go_on(archiver: Archiver, tables: Archive, origin: Origin, way: _Way, bars: Bars) -> ExitCode:
    """Look again and again, or once."""
    upkeep_due = 0.0 if way.every_s is None else time.monotonic() + UPKEEP_EVERY_S
    while True:
        outcomes, kept = [], {}
        is_due = way.upkeep and time.monotonic() >= upkeep_due
        for stream in origin.streams(way.streams):
            outcomes.append(archiver.run(stream))
            if archiver.is_stopping:
                break
            if is_due:
                kept[stream] = _keep(tables, stream, bars)
        if is_due:
            upkeep_due = time.monotonic() + UPKEEP_EVERY_S
        _tell(outcomes, kept, way, bars)
        if way.every_s is None:
            return ExitCode.INTERRUPTED if archiver.is_stopping else ExitCode.OK
        if archiver.is_stopping or archiver.wait(way.every_s):
            return ExitCode.OK


def _keep(tables: Archive, stream: str, bars: Bars) -> Kept:
    from cogwork.pipeline.archive.upkeep import keep

    return keep(tables.table(stream), on_notice=bars.on_notice)


def _tell(outcomes: list[Outcome], kept: dict[str, Kept], way: _Way, bars: Bars) -> None:
    """Say what became of the streams; without --json only what is new."""
    if way.as_json:
        rows = []
        for each in outcomes:
            row: dict[str, Any] = each._asdict()
            row["mismatches"] = [{"offset": at, "problem": text} for at, text in each.mismatches]
            if each.stream in kept:
                row["upkeep"] = kept[each.stream]._asdict()
            rows.append(row)
        click.echo(json.dumps({"streams": rows}, ensure_ascii=False))
        return
    for each in outcomes:
        if each.rows or way.every_s is None:
            bars.say(f"stream/{each.stream} archived up to {each.mark}: {_counts(each)}")
        for offset, text in each.mismatches:
            bars.warn(f"stream/{each.stream} record {offset} does not match its schema: {text}")


def _counts(outcome: Outcome) -> str:
    commits = "commit" if outcome.commits == 1 else "commits"
    parts = [f"{outcome.rows:,} records in {outcome.commits} {commits}"]
    if outcome.lost:
        parts.append(f"{outcome.lost:,} were already deleted")
    if outcome.mismatched:
        parts.append(f"{outcome.mismatched:,} do not match its schema")
    if outcome.dropped:
        parts.append(f"another archiver committed first {outcome.dropped} times")
    if outcome.trimmed is not None:
        parts.append(f"the stream begins at {outcome.trimmed}")
    return ", ".join(parts)


async def _greet(client: Client) -> None:
    """Was connected, and wants nothing."""
    del client


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise click.BadParameter(f"{text!r} is not of the form K=V", param_hint="--catalog-option")
    return key, value


@contextmanager
def workers_of(master: str | None, remote: str | None) -> Iterator[Workers]:
    """Open the workers that the user wants, for the length of a `with`."""
    with needs_the_extra():
        from cogwork.pipeline.archive.workers import SparkWorkers, ThreadWorkers
    if master == WITHOUT_SPARK:
        yield ThreadWorkers()
        return
    wanted = master if master or remote else LOCAL
    with spark_session("cogwork pipeline archive", master=wanted, remote=remote) as session:
        yield SparkWorkers(session)


def stopped_by_signals(archiver: Archiver) -> AbstractContextManager[None]:
    """Have SIGTERM and Ctrl-C end an archiver after its commit, and a second one at once."""
    if threading.current_thread() is not threading.main_thread():
        return nullcontext()
    return _handled(archiver)


@contextmanager
def _handled(archiver: Archiver) -> Iterator[None]:
    def on_signal(number: int, frame: object) -> None:
        del number, frame
        if archiver.is_stopping:
            raise KeyboardInterrupt
        archiver.stop()

    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, on_signal) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
