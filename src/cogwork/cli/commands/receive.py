"""`cogwork receive`: what arrives at an address, a line each."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import click

from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.management.reach import reach
from cogwork.cli.management.unopened import attached, demand_open, explained
from cogwork.cli.options.certificates import certified
from cogwork.cli.options.given_addresses import an_address
from cogwork.cli.options.quantities import DURATION, Whole
from cogwork.cli.options.stream_names import address_of, is_elsewhere, is_stream
from cogwork.cli.terminal.onlooking import while_read
from cogwork.cli.terminal.rendering import as_json, as_text
from cogwork.cli.terminal.visible import visible
from cogwork.client import Consumer
from cogwork.client.streams.start import start_of
from cogwork.router.addresses import InvalidAddressError
from cogwork.router.patterns import misplaced_wildcard

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cogwork.client import Client, Item, Message, StreamReader
    from cogwork.plugin.engine.contract import FromOffset, FromTime, Origin

__all__ = ("receive",)

PLACES = "first, last, next, snapshot, today, an offset, or a time as 06:00 or 2026-11-20T06:00"

CREDIT_MAX = 500
"""Enough for full speed; what is not printed any more goes back."""


def _place(
    _ctx: click.Context, _parameter: click.Parameter, text: str | None
) -> Origin | FromOffset | FromTime | None:
    """Read a place in a stream."""
    try:
        return None if text is None else start_of(text)
    except ValueError as error:
        raise click.BadParameter(
            f"{text!r:.80} is not a place in a stream (expected {PLACES})"
        ) from error


@click.command()
@click.argument("url")
@click.argument("address", callback=an_address)
@click.option("--count", type=Whole(min=1), help="Stop after N messages.")
@click.option(
    "--timeout",
    "timeout_s",
    type=DURATION,
    metavar="S",
    help="Stop if nothing arrives for S seconds.",
)
@click.option(
    "--from",
    "start",
    metavar="PLACE",
    callback=_place,
    help="Start of a stream: first, last, next, snapshot, today, an offset or a time.",
)
@certified
@click.option(
    "--json", "wants_json", is_flag=True, help="Print whole messages, one JSON object per line."
)
def receive(
    url: str,
    address: str,
    *,
    count: int | None,
    timeout_s: float | None,
    start: Origin | FromOffset | FromTime | None,
    wants_json: bool,
) -> int:
    """Receive messages from an address and print them.

    Each message is accepted after it is printed. Without --count, runs until interrupted. Exits
    with 7 if --timeout expires before --count messages arrive or before a stream opens. With
    --from, reads a stream from that position and reports on stderr when it has caught up.
    """
    write = as_json if wants_json else as_text
    if start is not None:
        _demand_stream(address)
    _tell_misplaced_wildcard(address)

    async def work(client: Client) -> int:
        consuming = client.consume(address, credit=min(count or CREDIT_MAX, CREDIT_MAX))
        async with attached(client, consuming, address, timeout_s) as consumer:
            try:
                async with explained(client, address if is_stream(address) else None):
                    printed = await while_read(_print(consumer, write, count, timeout_s))
                await consumer.flush()
            finally:
                _tell_undecodable(consumer)
            if printed == 0 and is_stream(address):
                await demand_open(client, address)
        return printed

    async def read(client: Client) -> int:
        place = start if start is not None else "next"
        reading = client.stream(address).read(place)
        async with attached(client, reading, address_of(address), timeout_s) as reader:
            telling = asyncio.create_task(_tell(reader))
            try:
                async with explained(client, address_of(address)):
                    printed = await while_read(_print(reader, write, count, timeout_s))
            finally:
                telling.cancel()
                _tell_undecodable(reader)
            if printed == 0 and not reader.is_caught_up:
                await demand_open(client, address_of(address))
        return printed

    printed = reach(url, work if start is None else read)
    if count is None or printed >= count:
        return ExitCode.OK
    waited = "nothing more came" if timeout_s is None else f"nothing more came for {timeout_s:g} s"
    click.echo(f"cogwork: {waited}: {printed} of {count} messages", err=True)
    return ExitCode.TIMEOUT


def _demand_stream(address: str) -> None:
    """Refuse an address that is something else than a stream: it would be consumed.

    Raises:
        click.UsageError: It is, or is no address at all.
    """
    try:
        is_none = is_elsewhere(address_of(address))
    except InvalidAddressError as error:
        raise click.UsageError(str(error)) from error
    if is_none:
        raise click.UsageError(
            f"--from needs a stream, such as stream/orders, and {address!r} is not one"
        )


def _tell_misplaced_wildcard(address: str) -> None:
    """Say what a word is that may be meant for a pattern: messages may be sent there."""
    word = misplaced_wildcard(address)
    if word is not None:
        text = f"{visible(word)} is an ordinary word: * and # are wildcards only as whole words"
        click.echo(f"cogwork: {text}", err=True)


async def _tell(reader: StreamReader) -> None:
    await reader.caught_up()
    click.echo(f"cogwork: caught up at offset {reader.next_offset}", err=True)


def _tell_undecodable(receiver: Consumer | StreamReader) -> None:
    """Say what is missing from the output."""
    if count := receiver.undecodable:
        what = "1 malformed message" if count == 1 else f"{count} malformed messages"
        click.echo(f"cogwork: rejected {what}, not printed", err=True)


async def _print(
    receiver: Consumer | StreamReader,
    write: Callable[[Message], str],
    count: int | None,
    timeout_s: float | None,
) -> int:
    """Print until there are enough, or nothing comes; return how many. Accepts items."""
    printed = 0
    while count is None or printed < count:
        wanted = CREDIT_MAX if count is None else min(count - printed, CREDIT_MAX)
        try:
            async with asyncio.timeout(timeout_s):
                items: Sequence[Message] = await receiver.take(wanted)
        except TimeoutError:
            break
        if not items:
            break
        click.echo("".join(f"{write(item)}\n" for item in items), nl=False)
        if isinstance(receiver, Consumer):
            receiver.accept(cast("list[Item]", items))
        printed += len(items)
    return printed
