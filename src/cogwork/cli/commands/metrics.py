"""`cogwork metrics`: a container's figures for Prometheus."""

from __future__ import annotations

import asyncio
import json
import signal
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from cogwork.cli.options.certificates import certified
from cogwork.cli.options.http_place import http_place, shown_host
from cogwork.cli.options.log_format import log_format
from cogwork.cli.options.quantities import Whole
from cogwork.cli.options.single_url import single_url
from cogwork.cli.process.companions import end_with_stdin
from cogwork.cli.process.log_lines import start_log

if TYPE_CHECKING:
    from collections.abc import Coroutine

__all__ = ("metrics",)

PORT = 9419


@click.command()
@click.argument("url", callback=single_url)
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default=f"127.0.0.1:{PORT}",
    show_default=True,
    help="Address to serve HTTP on; port 0 takes a free one.",
)
@click.option(
    "--top",
    type=Whole(0),
    metavar="N",
    default=100,
    show_default=True,
    help="Number of queues, streams and exchanges that have metrics of their own.",
)
@click.option("--all", "all_", is_flag=True, help="Give each of them metrics of its own.")
@certified
@log_format
@click.option("--companion", is_flag=True, hidden=True, help="Stop when stdin ends.")
@click.option("--json", "as_json", is_flag=True, help="Print the address as a JSON object.")
def metrics(
    url: str,
    listen: str,
    top: int,
    *,
    all_: bool,
    logs_json: bool,
    companion: bool,
    as_json: bool,
) -> None:
    """Serve metrics for Prometheus, and health checks, over HTTP.

    GET /metrics reads the container's figures; /healthz answers 200 if it replies, /readyz if it
    is also ready for clients. The deepest queues, the largest streams and the busiest exchanges
    have metrics of their own; totals count all. Needs the right to manage $management.
    """
    if find_spec("prometheus_client") is None:
        raise click.UsageError("prometheus-client is missing: pip install 'cogwork[metrics]'")
    from cogwork.cli.metrics.server import MetricsServer  # noqa: PLC0415  # needs prometheus-client

    host, port = http_place(listen)
    start_log("metrics", (), as_json=logs_json)
    if companion:
        end_with_stdin()
    server = MetricsServer(url, host, port, None if all_ else top)
    address = f"http://{shown_host(host)}:{server.port}/metrics"
    click.echo(json.dumps({"url": address}) if as_json else f"metrics at {address}")
    asyncio.run(_until_stopped(server.run()))


async def _until_stopped(work: Coroutine[object, object, None]) -> None:
    """Run until SIGTERM or Ctrl-C."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    await asyncio.gather(task, return_exceptions=True)
