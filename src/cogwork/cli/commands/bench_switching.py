"""`cogwork bench isr` and `cogwork bench xsr`: how much brokers switch, inside and to clients."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import AbstractContextManager, ExitStack, nullcontext
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import cogwork
from cogwork.bench.peer import dial
from cogwork.bench.servers.container import linked_containers
from cogwork.bench.switching import SHAPES, SIZES_BYTES, Shape, measure_isr, measure_xsr
from cogwork.bench.url import Url
from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.options.quantities import Finite, Whole
from cogwork.cli.terminal.tables import console
from cogwork.io.interruption import interrupted_by_sigterm
from cogwork.io.tls import client_context

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cogwork.bench.switching import Switched

__all__ = ("isr", "xsr")

_MEASURED: Final = {"isr": measure_isr, "xsr": measure_xsr}

TELEMETRY: Final = "stream/$telemetry"

_COLUMNS: Final = (
    *("rate", "B", "Q", "bytes", "a second", "one broker alone", "efficiency", "MB/s"),
    *("TM/wd", "check"),
)


def _options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command what both have."""
    for option in (
        click.argument("urls", nargs=-1, metavar="[URL]..."),
        click.option(
            "--brokers",
            type=Whole(1, 64),
            show_default="7 and 3, as far as they go here",
            help="B: how many brokers switch.",
        ),
        click.option("--queues", type=Whole(1), show_default="12 and 4", help="Q, at each broker."),
        click.option(
            "--size",
            "sizes_bytes",
            type=Whole(16),
            multiple=True,
            show_default="1000 and 250",
            help="Bytes in a body; may be repeated.",
        ),
        click.option(
            "--seconds",
            type=Finite(0.1),
            default=2.0,
            show_default=True,
            help="How long each run sends; a figure takes two.",
        ),
        click.option(
            "--ca-file",
            type=click.Path(exists=True, dir_okay=False),
            help="Trusted certificate authorities for amqps:// (PEM).",
        ),
        click.option("--telemetry", is_flag=True, help=f"Append each run to {TELEMETRY} at URL."),
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line."),
    ):
        command = option(command)
    return command


@click.command("isr")
@_options
@interrupted_by_sigterm()
def isr(**options: Any) -> None:
    """Measure the internal switching rate: faucets into sinks of the brokers at URL...

    Each broker has a faucet of its own, with Q sinks; every message is confirmed. Without a URL,
    brokers are started here for as long as it takes.
    """
    _bench("isr", **options)


@click.command("xsr")
@_options
@interrupted_by_sigterm()
def xsr(**options: Any) -> None:
    """Measure the external switching rate: a faucet at the first URL, clients at the others.

    Each of the other brokers has Q subscribers, which get every message; the brokers are linked.
    One URL is faucet's and clients' broker. Without any, linked brokers are started here for as
    long as it takes.
    """
    _bench("xsr", **options)


def _bench(
    which: str,
    *,
    urls: Sequence[str],
    brokers: int | None,
    queues: int | None,
    sizes_bytes: Sequence[int],
    seconds: float,
    ca_file: str | None,
    telemetry: bool,
    as_json: bool,
) -> None:
    if telemetry and not urls:
        raise click.UsageError("--telemetry needs a URL: where the stream is")
    for url in urls:
        dial(Url.parse(url), "bench", ca_file).close()
    shapes = dict.fromkeys(Shape(brokers or each.brokers, queues or each.queues) for each in SHAPES)
    found: list[Switched] = []
    with ExitStack() as stack:
        there = list(urls)
        if not there:
            count = min(max(each.brokers for each in shapes), brokers or os.cpu_count() or 1)
            there = stack.enter_context(linked_containers(count + (which == "xsr")))
        for shape, size_bytes in product(shapes, sizes_bytes or SIZES_BYTES):
            with _told(f"{which}: B = {shape.brokers}, Q = {shape.queues}, {size_bytes} B"):
                found.append(_MEASURED[which](there, shape, size_bytes, seconds, ca_file))
            if as_json:
                click.echo(msgspec.json.encode(found[-1]).decode())
    if telemetry:
        asyncio.run(_append(urls[0], found, ca_file))
    if not as_json:
        console().print(_table(found))
    if any(each.problems for each in found):
        sys.exit(ExitCode.ERROR)


def _told(text: str) -> AbstractContextManager[object]:
    """Return on a terminal what is being measured."""
    terminal = Console(stderr=True)
    return terminal.status(text) if terminal.is_terminal else nullcontext()


def _table(found: Sequence[Switched]) -> Table:
    shown = Table(box=SIMPLE_HEAD, pad_edge=False)
    for at, heading in enumerate(_COLUMNS):
        shown.add_column(heading, justify="right" if at else "left", no_wrap=True)
    for each in found:
        shown.add_row(*_row(each))
    return shown


async def _append(url: str, found: Sequence[Switched], ca_file: str | None) -> None:
    tls = None if ca_file is None else client_context(Path(ca_file))
    async with cogwork.connect(url, tls=tls) as client:
        for each in found:
            body = msgspec.json.encode(each)
            await client.publish(TELEMETRY, body, subject="bench", content_type="application/json")


def _row(each: Switched) -> tuple[str, ...]:
    asked = each.document["brokers"]
    return (
        each.bench.upper(),
        str(asked) if asked == each.brokers else f"{each.brokers} of {asked}",
        str(each.queues),
        f"{each.size_bytes:,}",
        f"{each.rate:,.0f}",
        f"{each.single_rate:,.0f}",
        f"{each.efficiency:.0%}",
        f"{each.mb_per_s:,.1f}",
        f"{each.tm_per_wd:,.2f}",
        "; ".join(each.problems) or "✓",
    )
