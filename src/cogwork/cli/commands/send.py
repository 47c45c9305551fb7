"""`cogwork send`: messages from the command line or from the lines of a file."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import dataclass
from itertools import count, repeat
from typing import TYPE_CHECKING, Any, BinaryIO

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from cogwork.cli.commands.posted import Posted, Stalled
from cogwork.cli.exit_codes import ExitCode, line_of
from cogwork.cli.management.reach import reach
from cogwork.cli.management.unopened import attached
from cogwork.cli.options.certificates import certified
from cogwork.cli.options.given_addresses import an_address
from cogwork.cli.options.quantities import DURATION, Whole
from cogwork.cli.terminal.lines import Lines
from cogwork.cli.terminal.visible import visible
from cogwork.client import Message
from cogwork.io.interruption import interrupted_by_sigterm
from cogwork.router.addresses import AddressTable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from cogwork.client import Client

__all__ = ("send",)

BATCH = 1000
"""Messages whose outcomes are awaited together."""

PRESETTLED = "presettled"
"""Counts messages of whose outcome nobody is told."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What to send.

    Attributes:
        url: Where to connect.
        address: Where to send.
        body: Of each message; None takes the lines of `lines`.
        lines: Lines to send as they are read.
        count: How many messages at most; a body is repeated so often. None sends all lines.
        subject: For each message.
        properties: Application properties of each message.
        ttl_s: How long each message lives; None for ever.
        timeout_s: How long nothing may be taken before it is given up; None for ever.
        durable: Whether messages ask to outlive a restart.
        presettled: Whether to send without waiting for outcomes.
        as_json: Whether the outcomes are printed, for programs.
    """

    url: str
    address: str
    body: str | None
    lines: BinaryIO | None
    count: int | None
    subject: str | None
    properties: dict[str, str]
    ttl_s: float | None
    timeout_s: float | None
    durable: bool
    presettled: bool
    as_json: bool

    @property
    def total(self) -> int | None:
        """How many messages there will be; None where only the file's end will tell."""
        return (self.count or 1) if self.lines is None else None

    async def batches(self) -> AsyncIterator[Iterable[object]]:
        """Yield what is sent, as lines come: bodies, or messages where there is more to say."""
        fields: dict[str, Any] = {
            "subject": self.subject,
            "properties": self.properties or None,
            "ttl_s": self.ttl_s,
            "durable": self.durable or None,
        }
        given = {key: value for key, value in fields.items() if value is not None}
        async for bodies in self._bodies():
            yield (Message(body, **given) for body in bodies) if given else bodies

    async def _bodies(self) -> AsyncIterator[Iterable[str]]:
        done = 0
        if self.lines is None:
            while size := min(BATCH, (self.count or 1) - done):
                yield repeat(self.body or "", size)
                done += size
            return
        lines, limit = Lines(self.lines), self.count or sys.maxsize
        while done < limit and (taken := await lines.take(min(BATCH, limit - done))):
            yield map(_text_of, count(done + 1), taken)
            done += len(taken)


def _text_of(number: int, line: str) -> str:
    """Return what is sent of a line.

    Raises:
        click.ClickException: It is no text.
    """
    try:
        line.encode()
    except UnicodeEncodeError as error:
        byte = ord(line[error.start]) & 0xFF
        text = f"line {number}: invalid byte 0x{byte:02x} (expected text in UTF-8)"
        raise click.ClickException(text) from error
    return line


def parse_properties(
    _ctx: click.Context, _parameter: click.Parameter, pairs: tuple[str, ...]
) -> dict[str, str]:
    """Read each `K=V`."""
    properties: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise click.BadParameter(f"{pair!r} is not of the form K=V")
        if key in properties:
            raise click.BadParameter(f"{key!r} is given twice (expected each name once)")
        properties[key] = value
    return properties


@click.command()
@click.argument("url")
@click.argument("address", callback=an_address)
@click.argument("body", required=False)
@click.option(
    "--file",
    "lines",
    type=click.File("rb"),
    metavar="LINES",
    help="Send each line as a message; - reads stdin.",
)
@click.option(
    "--count",
    type=Whole(min=1),
    show_default="once, or all lines",
    help="Send BODY N times, or stop after N lines.",
)
@click.option("--subject", help="Subject of each message.")
@click.option(
    "--property",
    "properties",
    multiple=True,
    metavar="K=V",
    callback=parse_properties,
    help="Application property; repeatable.",
)
@click.option(
    "--ttl",
    "ttl_s",
    type=DURATION,
    metavar="S",
    help="Time-to-live of each message, in seconds.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=DURATION,
    metavar="S",
    help="Stop if nothing is accepted for S seconds.",
)
@click.option("--durable", is_flag=True, help="Mark messages as durable.")
@click.option("--presettled", is_flag=True, help="Do not wait for outcomes.")
@certified
@click.option("--json", "as_json", is_flag=True, help="Print the outcomes as one JSON object.")
def send(**options: Any) -> int:
    """Send messages to an address.

    Sends BODY, or each line of a file. Exits with 8 if a message was not accepted, and with 7 if
    --timeout expires first; messages not sent by then are not sent.
    """
    outgoing = Outgoing(**options)  # click gives each its type
    if (outgoing.body is None) == (outgoing.lines is None):
        raise click.UsageError("expected either BODY or --file")
    console = Console(stderr=True)
    with interrupted_by_sigterm(), _progress(console) as progress:
        tally = Tally(progress, outgoing.total, presettled=outgoing.presettled)
        problem = None
        stalled = None
        try:
            reach(outgoing.url, lambda client: _send(client, outgoing, tally))
        except KeyboardInterrupt:
            problem = "interrupted"
            click.echo(f"cogwork: interrupted; {tally}", err=True)
            raise
        except Stalled as error:
            stalled = error
            problem = line_of(error)
        except Exception as error:
            problem = line_of(error)
            raise
        finally:
            if outgoing.as_json:
                told = {"address": outgoing.address, **tally.as_object(problem)}
                click.echo(json.dumps(told, ensure_ascii=False))
    failure = stalled or tally.failure
    if failure is None:
        return ExitCode.OK
    click.echo(f"cogwork: {visible(line_of(failure))}; {tally}", err=True)
    return ExitCode.NOT_ACCEPTED if stalled is None else ExitCode.TIMEOUT


class Tally:
    """Counts outcomes, and shows progress.

    Attributes:
        failure: Of the first message that was not accepted; None where all were.
    """

    def __init__(self, progress: Progress, total: int | None, *, presettled: bool) -> None:
        self._progress = progress
        self._presettled = presettled
        self._task = progress.add_task("sent", total=total)
        self._states: Counter[str] = Counter()
        self.failure: Exception | None = None

    def add(self, posted: Posted) -> None:
        """Take in what became of some messages."""
        for state, number in posted.states.items():
            self._states[PRESETTLED if self._presettled else state] += number
        if self.failure is None:
            self.failure = posted.failure
        self._progress.advance(self._task, posted.states.total())

    def as_object(self, problem: str | None) -> dict[str, object]:
        """Tell programs how many messages had which outcome.

        Args:
            problem: What ended the sending; None where all was sent.
        """
        if problem is None and self.failure is not None:
            problem = line_of(self.failure)
        return {
            "sent": self._states.total(),
            "outcomes": dict(self._states),
            "problem": problem,
        }

    def __str__(self) -> str:
        """Return how many messages had which outcome."""
        parts = (f"{count} {state}" for state, count in self._states.items())
        return ", ".join(parts) or "no message has an outcome"


async def _send(client: Client, outgoing: Outgoing, tally: Tally) -> None:
    publishing = client.publisher(outgoing.address)
    async with attached(client, publishing, outgoing.address, outgoing.timeout_s) as publisher:
        no_credit = _reason(outgoing.address)
        async for batch in outgoing.batches():
            posted = Posted(publisher, no_credit, settled=outgoing.presettled)
            try:
                await _send_all(batch, posted, outgoing.timeout_s)
            finally:
                posted.give_up()
                tally.add(posted)


async def _send_all(messages: Iterable[object], posted: Posted, timeout_s: float | None) -> None:
    """Post messages and wait for their outcomes, also where one of them cannot be posted."""
    try:
        for message in messages:
            posted.post(message)
    finally:
        await posted.settle(timeout_s)


def _reason(address: str) -> str:
    """Return why an address may take nothing."""
    text = f"{address} is full, or nobody receives there"
    if AddressTable().resolve(address).prefix:
        return text
    name = address.strip("/")
    return f"{text}: no prefix says that messages are kept, as queue/{name} or stream/{name} would"


def _progress(console: Console) -> Progress:
    """Make a bar for a terminal, and nothing for a file."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(
        *columns,
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
