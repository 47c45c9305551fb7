"""`cogwork bridge`: moves messages between brokers while applications run."""

from __future__ import annotations

import asyncio
import json
import signal
from contextlib import suppress
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.options.certificates import certified
from cogwork.cli.options.log_format import log_format
from cogwork.cli.options.quantities import Whole
from cogwork.cli.process.log_lines import start_log

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.cli.bridge.plan import Way
    from cogwork.cli.bridge.route import Route

__all__ = ("bridge",)

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

PREFETCH_MAX = 65_535


@click.command()
@click.argument("source", required=False)
@click.argument("target", required=False)
@click.option(
    "--queue",
    "queues",
    multiple=True,
    metavar="NAME[=NAME]",
    help="Queue to take at SOURCE, and its name at TARGET; repeatable.",
)
@click.option(
    "--back",
    "backs",
    multiple=True,
    metavar="NAME[=NAME]",
    help="Queue to take at TARGET, and its name at SOURCE; repeatable.",
)
@click.option("--config", type=FILE, help="Routes between any brokers (TOML).")
@click.option(
    "--prefetch",
    type=Whole(1, PREFETCH_MAX),
    metavar="N",
    default=500,
    show_default=True,
    help="Number of messages of a queue that may be on their way.",
)
@click.option(
    "--every",
    "every_s",
    type=click.FloatRange(min=0.1),
    metavar="S",
    default=10.0,
    show_default=True,
    help="Seconds between reports.",
)
@click.option(
    "--until-idle",
    "idle_s",
    type=click.FloatRange(min=0.1),
    metavar="S",
    help="End a route that has had no message for this many seconds.",
)
@certified
@log_format
@click.option("--json", "as_json", is_flag=True, help="Print each report as a JSON object.")
def bridge(
    source: str | None,
    target: str | None,
    *,
    queues: tuple[str, ...],
    backs: tuple[str, ...],
    config: Path | None,
    prefetch: int,
    every_s: float,
    idle_s: float | None,
    logs_json: bool,
    as_json: bool,
) -> ExitCode:
    """Move messages between brokers, at least once.

    SOURCE and TARGET are URLs: rabbitmq:// and rabbitmqs:// for AMQP 0-9-1, amqp:// and the others
    for AMQP 1.0. A message is acknowledged where it was taken once the other side has confirmed
    it. SIGTERM finishes what has begun.
    """
    from cogwork.cli.bridge.plan import check, read_plan, way_of  # noqa: PLC0415  # the client

    if config is not None:
        if source is not None or queues or backs:
            raise click.UsageError("give --config, or SOURCE, TARGET and queues")
        ways = read_plan(config)
    else:
        if source is None or target is None or not (queues or backs):
            raise click.UsageError("give SOURCE, TARGET and --queue or --back, or --config")
        ways = [way_of(source, target, each, prefetch) for each in queues]
        ways += [way_of(target, source, each, prefetch) for each in backs]
    check(ways)
    if any(each.source.is_basic or each.target.is_basic for each in ways) and not find_spec("pika"):
        raise click.UsageError("pika is missing: pip install 'cogwork[rabbitmq]'")
    start_log("bridge", as_json=logs_json)
    return asyncio.run(_run(ways, every_s, idle_s, as_json=as_json))


async def _run(
    ways: Sequence[Way], every_s: float, idle_s: float | None, *, as_json: bool
) -> ExitCode:
    """Run all routes until they have ended; tell of them meanwhile."""
    from cogwork.cli.bridge.plan import route_of  # noqa: PLC0415  # as above

    routes = [route_of(each, idle_s) for each in ways]

    def stop() -> None:
        for route in routes:
            route.stop()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    running = asyncio.gather(*(route.run() for route in routes))
    while not running.done():
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(running), every_s)
        _report(routes, as_json=as_json)
    running.result()
    has_failed = any(route.counters.state == "failed" for route in routes)
    return ExitCode.ERROR if has_failed else ExitCode.OK


def _report(routes: Sequence[Route], *, as_json: bool) -> None:
    """Say what the routes have done."""
    if as_json:
        rows = [{"route": route.title, **asdict(route.counters)} for route in routes]
        click.echo(json.dumps({"routes": rows}))
        return
    for route in routes:
        counters = route.counters
        more = f", {counters.sent_again:,} sent again" if counters.sent_again else ""
        why = f": {counters.problem}" if counters.problem else ""
        click.echo(f"{route.title}: {counters.moved:,} moved{more}, {counters.state}{why}")
