"""`cogwork pipeline replay`: what an archive holds, back into the mesh."""

from __future__ import annotations

import asyncio
import json
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from cogwork.cli.commands.pipelines.bars import Bars
from cogwork.cli.commands.pipelines.extra import needs_the_extra
from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.management.reach import reach
from cogwork.cli.options.certificates import certificate_options, certificates_of
from cogwork.cli.options.passwords import with_password

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

    from cogwork.client import Client
    from cogwork.pipeline.archive.replay import Plan, Replayed
    from cogwork.pipeline.archive.table import ArchiveTable

__all__ = ("replay",)

PREFIX = "stream/"


class Speed(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions only
    """How fast: `max`, or a multiple of then, `10x`."""

    name = "speed"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read the text; 0 is as fast as it goes."""
        text = str(value)
        if text == "max":
            return 0.0
        try:
            speed = float(text.removesuffix("x"))
        except ValueError:
            speed = 0.0
        if not 0 < speed < float("inf"):
            self.fail(f"{value!r} is not a speed (expected one such as 10x or max)", param, ctx)
        return speed


@click.command()
@click.argument("url")
@click.option(
    "--archive", "place", required=True, metavar="DIR|CATALOG", help="Archive directory or catalog."
)
@click.option("--stream", required=True, metavar="NAME", help="Stream whose records to send.")
@click.option(
    "--from", "start", default="first", metavar="T|OFFSET", show_default=True, help="First record."
)
@click.option(
    "--to",
    "end",
    default="end",
    metavar="T|OFFSET",
    show_default=True,
    help="End before this record.",
)
@click.option("--into", required=True, metavar="ADDRESS", help="Target address.")
@click.option(
    "--speed",
    type=Speed(),
    default="1x",
    show_default=True,
    help="Speed: 10x is ten times the original pace; or max.",
)
@click.option(
    "--run",
    default="",
    metavar="NAME",
    help="Name of the run; a new name replays the same range again.",
)
@certificate_options
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as one JSON object.")
def replay(
    url: str,
    *,
    place: str,
    stream: str,
    start: str,
    end: str,
    into: str,
    speed: float,
    run: str,
    as_json: bool,
    ca_file: str | None,
    cert_file: str | None,
    key_file: str | None,
) -> ExitCode:
    """Send the records of an archive back into the mesh, in order.

    Each record enters a stream once: start a replay that was stopped or killed again with the same
    arguments, and it resumes. At other addresses a message may arrive twice, with the same message-
    id.
    """
    tls = certificates_of(ca_file, cert_file, key_file).context()
    url = with_password(url)
    with needs_the_extra():
        from cogwork.pipeline.archive import Archive
        from cogwork.pipeline.archive.errors import BadPlace
        from cogwork.pipeline.archive.replay import plan_of
    with Archive.open(place) as archive, Bars(quiet=as_json) as bars:
        table = archive.table(stream.removeprefix("/").removeprefix(PREFIX))
        try:
            plan = plan_of(table, start, end, into, run)
        except BadPlace as error:
            raise click.BadParameter(str(error), param_hint=f"'--{error.bound}'") from error
        replayed, is_whole = _replay(url, tls, table, plan, speed=speed, bars=bars)
    if as_json:
        row = {
            "stream": plan.stream,
            "start": plan.start,
            "end": plan.end,
            "into": into,
            "producer": plan.producer.hex(),
            **replayed._asdict(),
            "whole": is_whole,
        }
        click.echo(json.dumps(row))
    else:
        before = f", {replayed.skipped:,} were there before" if replayed.skipped else ""
        click.echo(
            f"{replayed.sent:,} records of stream/{plan.stream} from {plan.start} to before "
            f"{plan.end} sent into {into}{before}"
        )
    return ExitCode.OK if is_whole else ExitCode.INTERRUPTED


def _replay(
    url: str,
    tls: ssl.SSLContext | None,
    table: ArchiveTable,
    plan: Plan,
    *,
    speed: float,
    bars: Bars,
) -> tuple[Replayed, bool]:
    """Send it; return what became of it, and whether that is all."""
    from cogwork.pipeline.archive.replay import replay as send
    from cogwork.pipeline.archive.replay import sent_before
    from cogwork.pipeline.arrow import ArrowClient

    total = plan.end - plan.start

    async def work(client: Client) -> tuple[Replayed, bool]:
        skip = 0
        if plan.is_into_stream:
            with ArrowClient(url, tls=tls) as arrow:
                skip = await asyncio.to_thread(sent_before, arrow, plan)
        with _stopped_by_signals() as stopping:
            replayed = await send(
                client,
                table,
                plan,
                speed=speed or None,
                skip=skip,
                on_progress=lambda done: bars.advance(plan.into, done, total),
                stopping=stopping,
            )
            return replayed, not stopping.is_set()

    return reach(url, work, tls=tls)


@contextmanager
def _stopped_by_signals() -> Iterator[asyncio.Event]:
    """Have SIGTERM and Ctrl-C end a replay after what is under way."""
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    numbers = (signal.SIGTERM, signal.SIGINT)
    for number in numbers:
        loop.add_signal_handler(number, stopping.set)
    try:
        yield stopping
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
