"""`cogwork bench`: measures a server with the compiled load generator."""

from __future__ import annotations

import dataclasses
import importlib
import sys
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from cogwork.bench.measure import Broker, Result
from cogwork.bench.peer import dial
from cogwork.bench.scenarios import SCENARIOS, Load, run_scenario
from cogwork.bench.url import Url
from cogwork.bench.usage import ProcessUsage
from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.options.quantities import Finite, Whole
from cogwork.cli.terminal.tables import console
from cogwork.io.interruption import interrupted_by_sigterm

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ("bench",)

_DEFAULT_SCENARIOS: Final = ("presettled", "unsettled", "fan-out", "pairs", "request-reply")

_WIDTH_OPTIONS: Final = {
    "pairs": "pairs",
    "fan-out": "consumers",
    "queue": "consumers",
    "request-reply": "outstanding",
    "connections": "parallel",
    "links": "parallel",
    "idle": "connections",
}
"""Which option says how wide a scenario is."""

_COLUMNS: Final = (
    "delivered",
    "a second",
    "MB/s",
    "CPU-s/M",
    "p50 µs",
    "p99 µs",
    "memory",
)

_OTHERS: Final = {
    "engines": "cogwork.cli.commands.bench_engines",
    "isr": "cogwork.cli.commands.bench_switching",
    "xsr": "cogwork.cli.commands.bench_switching",
}
"""What is measured where the first word is one of these, and by which module."""

_KIB: Final = 1 << 10
_MIB: Final = 1 << 20
_WHOLE: Final = 100


def _list_scenarios(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if not value or context.resilient_parsing:
        return
    for name, scenario in SCENARIOS.items():
        click.echo(f"{name:<14} {scenario.summary}")
    context.exit()


class _BenchCommand(click.Command):
    """Measures a server, or, where the first word says so, something else."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Read the command line."""
        if args and args[0] in _OTHERS:
            module = importlib.import_module(_OTHERS[args[0]])
            other: click.Command = getattr(module, args[0])
            return other.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command(cls=_BenchCommand)
@click.argument("url")
@click.option(
    "--scenario",
    "scenarios",
    multiple=True,
    type=click.Choice([*SCENARIOS, "all"]),
    metavar="NAME",
    help="Scenario to run; repeatable. --list shows the names.",
)
@click.option(
    "--list",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_scenarios,
    help="List the scenarios and exit.",
)
@click.option("--count", type=Whole(1), help="Total number of deliveries.")
@click.option(
    "--seconds",
    type=Finite(0.1),
    default=5.0,
    show_default=True,
    help="Seconds to send, without --count.",
)
@click.option(
    "--size",
    "size_bytes",
    type=Whole(16),
    default=100,
    show_default=True,
    help="Body size in bytes.",
)
@click.option(
    "--credit",
    type=Whole(2),
    default=5000,
    show_default=True,
    help="Credit of each receiver.",
)
@click.option("--pairs", type=Whole(1), show_default="4", help="Number of producer/consumer pairs.")
@click.option(
    "--consumers",
    type=Whole(1),
    show_default="4 or 1",
    help="Number of subscribers or queue consumers.",
)
@click.option("--outstanding", type=Whole(1), show_default="1", help="Outstanding requests.")
@click.option(
    "--parallel", type=Whole(1), show_default="8", help="Concurrent connections or links."
)
@click.option(
    "--connections", type=Whole(1), show_default="2000", help="Number of idle connections."
)
@click.option(
    "--subscriptions-per-s",
    type=Finite(0),
    default=0.0,
    help="For `topic`: subscriptions that come and go per second.",
)
@click.option("--pid", type=Whole(1), help="Process id of the broker, to measure its CPU.")
@click.option(
    "--ca-file",
    type=click.Path(exists=True, dir_okay=False),
    help="Trusted certificate authorities for amqps:// (PEM).",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@interrupted_by_sigterm()
def bench(
    url: str,
    scenarios: tuple[str, ...],
    pid: int | None,
    as_json: bool,
    **options: object,
) -> None:
    """Measure the broker at URL, for example amqp://localhost:5672.

    `cogwork bench engines` measures the stream engines; `cogwork bench isr` and `xsr` measure how
    much brokers switch internally and to clients. These have their own options.

    Rates depend on the machine's other load: compare the broker's CPU seconds per million
    deliveries (--pid). Every message is numbered and checked; exits with 1 if one is lost or
    arrives twice.
    """
    dial(Url.parse(url), "bench", _text(options["ca_file"])).close()
    route = Broker(url, ProcessUsage(pid) if pid else None)
    results: list[Result] = []
    for name in _chosen(scenarios):
        result = _run(name, route, options, quiet=as_json)
        results.append(result)
        if as_json:
            click.echo(msgspec.json.encode(result).decode())
    if not as_json:
        console().print(_table(results))
    if any(result.problems for result in results):
        sys.exit(ExitCode.ERROR)


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _chosen(scenarios: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(SCENARIOS) if "all" in scenarios else scenarios or _DEFAULT_SCENARIOS


def _load(name: str, options: Mapping[str, object], progress: Callable[[int, int], None]) -> Load:
    """Build the load from the command's options, of which one says the width."""
    known = {field.name for field in dataclasses.fields(Load)}
    given = {key: value for key, value in options.items() if value is not None}
    width = given.get(_WIDTH_OPTIONS.get(name, ""), 0)
    chosen: dict[str, Any] = {key: value for key, value in given.items() if key in known}
    return Load(width=int(str(width)), progress=progress, **chosen)


def _run(name: str, route: Broker, options: Mapping[str, object], *, quiet: bool) -> Result:
    """Run one scenario with a bar on the standard error."""
    columns = (
        TextColumn("{task.description:<14}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} sent"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=quiet) as bars:
        total = options.get("count")
        bar = bars.add_task(name, total=float(str(total)) if total else None)
        load = _load(name, options, lambda sent, _delivered: bars.update(bar, completed=sent))
        return run_scenario(name, route, load)


def _table(results: list[Result]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("scenario", no_wrap=True)
    for heading in _COLUMNS:
        table.add_column(heading, justify="right")
    table.add_column("check")
    for result in results:
        table.add_row(*_row(result))
    return table


def _row(result: Result) -> tuple[str | Text, ...]:
    is_idle = result.scenario == "idle"
    return (
        result.scenario,
        f"{result.delivered:,}",
        "" if is_idle else f"{result.rate:,.0f}",
        f"{result.mb_per_s:,.0f}" if result.mb_per_s else "",
        _cost(result),
        _latency(result, "p50"),
        _latency(result, "p99"),
        _growth(result),
        Text("; ".join(result.problems), "red") if result.problems else Text("✓", "green"),
    )


def _cost(result: Result) -> str:
    cost = result.cpu_s_per_million
    return "" if cost is None else f"{cost:,.3g}" if cost < _WHOLE else f"{cost:,.0f}"


def _latency(result: Result, percentile: str) -> str:
    value = result.latencies_us.get(percentile)
    return f"{value:,.0f}" if value is not None else ""


def _growth(result: Result) -> str:
    """Words how much more memory the server had at its peak than before."""
    if result.peak_rss_bytes is None or result.idle_rss_bytes is None:
        return ""
    grown = result.peak_rss_bytes - result.idle_rss_bytes
    if result.scenario == "idle":
        return f"{grown / result.sent / _KIB:,.1f} KiB each"
    return f"{grown / _MIB:,.1f} MiB"
