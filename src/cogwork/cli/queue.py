"""`cogwork queue`: queues from the outside, through `$management`."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from cogwork.cli.unfinished import unfinished
from cogwork.container.settings import QueueOptions
from cogwork.container.shape import describe, keys_at, type_at

__all__ = ("queue",)

COUNT = click.IntRange(min=1)


@click.group(no_args_is_help=False)
def queue() -> None:
    """List, declare, peek into, purge and move queues."""


@queue.command("list")
@click.argument("url")
@click.option("--json", "as_json", is_flag=True, help="One JSON array.")
def list_(url: str, as_json: bool) -> None:
    """List the queues, with depth, consumers and counts."""
    unfinished("queue list", url=url, as_json=as_json)


@queue.command()
@click.argument("url")
@click.argument("address")
@click.option(
    "--option",
    "pairs",
    multiple=True,
    metavar="K=V",
    help="An option of the queue, as in [[queue]] of the configuration; repeatable.",
)
def declare(url: str, address: str, pairs: tuple[str, ...]) -> None:
    """Make a queue; one that is there with the same options is left as it is."""
    unfinished("queue declare", url=url, address=address, options=parse_options(pairs))


@queue.command()
@click.argument("url")
@click.argument("address")
@click.option("--count", type=COUNT, default=10, show_default=True, help="How many items.")
@click.option("--json", "as_json", is_flag=True, help="Whole items, one JSON object a line.")
def peek(url: str, address: str, count: int, as_json: bool) -> None:
    """Show the first items of a queue and leave them there."""
    unfinished("queue peek", url=url, address=address, count=count, as_json=as_json)


@queue.command()
@click.argument("url")
@click.argument("address")
def purge(url: str, address: str) -> None:
    """Drop all items of a queue that no consumer holds."""
    unfinished("queue purge", url=url, address=address)


@queue.command()
@click.argument("url")
@click.argument("source")
@click.argument("target")
@click.option("--count", type=COUNT, help="How many items at most; all without it.")
def move(url: str, source: str, target: str, count: int | None) -> None:
    """Move items from one queue to another address."""
    unfinished("queue move", url=url, address=source, target=target, count=count)


@queue.command()
@click.argument("url")
@click.argument("address")
@click.option("--count", type=COUNT, help="How many items at most; all without it.")
def redrive(url: str, address: str, count: int | None) -> None:
    """Send the items of a dead-letter address back where they came from."""
    unfinished("queue redrive", url=url, address=address, count=count)


def parse_options(pairs: tuple[str, ...]) -> dict[str, Any]:
    """Reads each `K=V` as a key of `[[queue]]`, with the type that the configuration gives it.

    Args:
        pairs: As given.

    Returns:
        The options that were given, and no others.

    Raises:
        click.BadParameter: An option is unknown, or its value is none of its own.
    """
    values: dict[str, Any] = {}
    for pair in pairs:
        key, _, text = pair.partition("=")
        known = keys_at(QueueOptions, ())
        if key not in known:
            raise click.BadParameter(
                f"{key!r} is none of {', '.join(known)}", param_hint="--option"
            )
        try:
            converted = msgspec.convert({key: text}, QueueOptions, strict=False)
        except msgspec.ValidationError as error:
            expected = describe(type_at(QueueOptions, (key,)))
            message = f"{key} takes {expected}, not {text!r}"
            raise click.BadParameter(message, param_hint="--option") from error
        values[key] = getattr(converted, key)
    return values
