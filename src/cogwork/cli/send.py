"""`cogwork send`: messages from the command line or from the lines of a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO

import click

from cogwork.cli.unfinished import unfinished

__all__ = ("send",)


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
        durable: Whether messages ask to outlive a restart.
        presettled: Whether to send without waiting for outcomes.
    """

    url: str
    address: str
    body: str | None
    lines: IO[str] | None
    count: int | None
    subject: str | None
    properties: dict[str, str]
    ttl_s: float | None
    durable: bool
    presettled: bool


def parse_properties(
    _ctx: click.Context, _parameter: click.Parameter, pairs: tuple[str, ...]
) -> dict[str, str]:
    """Reads each `K=V`."""
    properties = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise click.BadParameter(f"{pair!r} is not of the form K=V")
        properties[key] = value
    return properties


@click.command()
@click.argument("url")
@click.argument("address")
@click.argument("body", required=False)
@click.option(
    "--file", "lines", type=click.File(), metavar="LINES", help="Send each line; - is stdin."
)
@click.option(
    "--count", type=click.IntRange(min=1), help="Repeat BODY, or stop after so many lines."
)
@click.option("--subject", help="The subject of each message.")
@click.option(
    "--property",
    "properties",
    multiple=True,
    metavar="K=V",
    callback=parse_properties,
    help="An application property; repeatable.",
)
@click.option(
    "--ttl",
    "ttl_s",
    type=click.FloatRange(min=0, min_open=True),
    metavar="S",
    help="How long each message lives, in seconds.",
)
@click.option("--durable", is_flag=True, help="Ask that messages outlive a restart.")
@click.option("--presettled", is_flag=True, help="Do not wait for outcomes.")
def send(**options: object) -> None:
    """Send messages to an address.

    Sends BODY, or each line of a file. Exits with 8 if a message was not accepted.
    """
    outgoing = Outgoing(**options)  # type: ignore[arg-type] # click gives each its type
    if (outgoing.body is None) == (outgoing.lines is None):
        raise click.UsageError("one of BODY and --file is needed")
    unfinished("send", outgoing=outgoing)
