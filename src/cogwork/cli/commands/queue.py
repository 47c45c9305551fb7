"""`cogwork queue`: queues from the outside, through `$management`."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec import inspect

from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.management import deletion, moving
from cogwork.cli.management.group import reach_all
from cogwork.cli.management.listing import say_what_is_unknown, show
from cogwork.cli.management.manager import Manager
from cogwork.cli.management.shared_queue import SharedQueue
from cogwork.cli.management.sums import added_up
from cogwork.cli.options.certificates import certified
from cogwork.cli.options.given_addresses import an_address
from cogwork.cli.options.quantities import COUNT
from cogwork.cli.terminal.rendering import encoded_as_json, encoded_as_text, jsonable
from cogwork.cli.terminal.tables import in_words, widened
from cogwork.cli.unknown_commands import HelpfulGroup
from cogwork.plugin.queue_options import QueueOptions
from cogwork.plugin.shape import describe, keys_at, type_at

if TYPE_CHECKING:
    from cogwork.cli.management.shared_queue import Declared
    from cogwork.client import Client

__all__ = ("queue",)

KEPT = {
    "auto": "on disk; durable messages wait for it",
    "memory": "in memory, until the container stops",
    "disk": "on disk",
    "replicated": "on replicas",
}
"""How people are told a durability."""

COLUMNS = {
    "address": "address",
    "durability": "durability",
    "depth": "depth",
    "ready": "ready",
    "unsettled": "unsettled",
    "in-doubt": "in doubt",
    "delayed": "delayed",
    "waiting-for-group": "in groups",
    "consumers": "consumers",
    "in": "in",
    "out": "out",
    "accepted": "accepted",
    "redelivered": "redelivered",
    "expired": "expired",
    "disorder-p99": "disorder p99",
    "owner": "owner",
    "policy": "policy",
    "problem": "problem",
}


@click.group(cls=HelpfulGroup, no_args_is_help=False)
def queue() -> None:
    """Manage queues: list, declare, peek, purge, move, delete."""


@queue.command("list")
@click.argument("url")
@certified
@widened
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def list_(url: str, as_json: bool) -> None:
    """List the queues, with depth, consumers and counts."""

    async def work(client: Client) -> list[dict[str, Any]]:
        attributes, manager = () if as_json else ("vhost", *COLUMNS), Manager(client)
        await say_what_is_unknown(manager)
        return (await manager.rows("queue", attributes))[0]

    async def at_all(workers: dict[str, Client]) -> list[dict[str, Any]]:
        found = await asyncio.gather(*map(work, workers.values()))
        return added_up(row for rows in found for row in rows)

    rows = reach_all(url, at_all)
    show("queue", COLUMNS, rows, len(rows), as_json=as_json)


@queue.command()
@click.argument("url")
@click.argument("address", callback=an_address)
@click.option(
    "--option",
    "pairs",
    multiple=True,
    metavar="K=V",
    help="Queue option, as in [[queue]] of the configuration; repeatable.",
)
@click.option(
    "--durability",
    type=click.Choice(["auto", "memory", "disk", "replicated"]),
    show_default="as [[address]] says, or auto",
    help="Where items are kept; short for --option durability=….",
)
@click.option(
    "--home",
    metavar="ID",
    help="Container that keeps the queue for all linked ones; short for --option home=ID.",
)
@certified
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def declare(
    url: str,
    address: str,
    *,
    pairs: tuple[str, ...],
    durability: str | None,
    home: str | None,
    as_json: bool,
) -> None:
    """Declare a queue. Does nothing if it exists with the same options.

    A queue in memory or on disk is declared in this container (all of its workers) only; declare it
    in other containers separately.
    """
    options = parse_options(pairs)
    if durability is not None:
        options["durability"] = durability
    if home is not None:
        options["home"] = home

    async def work(workers: dict[str, Client]) -> Declared:
        return await SharedQueue(workers, address).declare(options)

    is_new, kept, problem = reach_all(url, work)
    if as_json:
        told = {"address": address, "is_new": is_new, "durability": kept, "problem": problem}
        click.echo(json.dumps(told, ensure_ascii=False))
        return
    said = "declared" if is_new else "was there with these options"
    click.echo(f"{address} {said}, {KEPT[kept]}")
    if problem is not None:
        click.echo(f"cogwork: {address}: {problem}", err=True)


@queue.command()
@click.argument("url")
@click.argument("address", callback=an_address)
@click.option("--count", type=COUNT, default=10, show_default=True, help="Number of items.")
@certified
@click.option(
    "--json", "as_json", is_flag=True, help="Print whole items, one JSON object per line."
)
def peek(url: str, address: str, count: int, as_json: bool) -> None:
    """Show the first items of a queue without removing them."""

    async def work(workers: dict[str, Client]) -> list[dict[str, Any]]:
        return await SharedQueue(workers, address).peek(count)

    for item in reach_all(url, work):
        click.echo(_item_as_json(item) if as_json else _item_as_text(item))


def _item_as_json(item: dict[str, Any]) -> str:
    message = json.loads(encoded_as_json(item.pop("message")))
    return json.dumps({**item, **message}, ensure_ascii=False, default=jsonable)


def _item_as_text(item: dict[str, Any]) -> str:
    body = encoded_as_text(item["message"])
    facts = [str(item.get("state", "")), f"{in_words(item.get('age_s', 0))} old"]
    if item.get("attempts"):
        facts.append(f"{item['attempts']} attempts")
    return f"{item.get('item', '')}\t{', '.join(facts)}\t{body}"


@queue.command()
@click.argument("url")
@click.argument("address", callback=an_address)
@certified
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def purge(url: str, address: str, as_json: bool) -> None:
    """Delete all items of a queue that no consumer holds."""

    async def work(workers: dict[str, Client]) -> int:
        return await SharedQueue(workers, address).purge()

    count = reach_all(url, work)
    if as_json:
        click.echo(json.dumps({"address": address, "purged": count}, ensure_ascii=False))
    else:
        click.echo(f"{count} items purged from {address}")


@queue.command()
@click.argument("url")
@click.argument("address", callback=an_address)
@certified
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def delete(url: str, address: str, as_json: bool) -> None:
    """Delete a queue and all its items. Fails if a client is attached to it."""

    async def work(workers: dict[str, Client]) -> None:
        await SharedQueue(workers, address).delete()

    reach_all(url, work)
    deletion.tell(address, as_json=as_json)


@queue.command()
@click.argument("url")
@click.argument("source", callback=an_address)
@click.argument("target", callback=an_address)
@click.option("--count", type=COUNT, show_default="all", help="Maximum number of items.")
@certified
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def move(url: str, source: str, target: str, count: int | None, as_json: bool) -> int:
    """Move items from one queue to another queue.

    Exits with 8 if an item was not accepted there; it stays in its queue.
    """
    done = _transfer(url, "MOVE", source, count, target)
    return _tell(source, {"target": target, **done}, as_json=as_json)


@queue.command()
@click.argument("url")
@click.argument("address", callback=an_address)
@moving.options
def relocate(
    url: str, address: str, *, replicas: str, learners: str | None, no_wait: bool, as_json: bool
) -> None:
    """Move the replicas of a queue to other containers while it is used.

    This moves replicas; `move` moves items. The first container has the highest leader priority and
    becomes the owner if the queue has none. Former replicas delete their copies. The move continues
    even if this command is interrupted.
    """
    members = (moving.named(replicas), moving.named(learners))
    moving.move(url, "queue", address, members, no_wait=no_wait, as_json=as_json)


@queue.command()
@click.argument("url")
@click.argument("address", callback=an_address)
@click.option("--count", type=COUNT, show_default="all", help="Maximum number of items.")
@certified
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def redrive(url: str, address: str, count: int | None, as_json: bool) -> int:
    """Send dead letters back to the addresses that they came from.

    Exits with 8 if an item was not accepted there or is not a dead letter; it stays in its queue.
    """
    return _tell(address, _transfer(url, "REDRIVE", address, count), as_json=as_json)


def _transfer(
    url: str, operation: str, address: str, count: int | None, target: str | None = None
) -> dict[str, int]:
    """Have items moved, at one worker after another."""

    async def work(workers: dict[str, Client]) -> dict[str, int]:
        return await SharedQueue(workers, address).transfer(operation, count, target)

    return reach_all(url, work)


def _tell(address: str, done: dict[str, Any], *, as_json: bool) -> ExitCode:
    """Print what has become of items, and say whether all of them have a new place."""
    if as_json:
        click.echo(json.dumps({"address": address, **done}, ensure_ascii=False))
    else:
        click.echo(f"{done['moved']} items moved from {address}")
    strangers = done.get("strangers", 0)
    refused = done["refused"] - strangers
    texts = []
    if strangers:
        texts.append(f"{strangers} items are not dead letters and stay in {address}")
    if refused or (done["unconfirmed"] and not strangers):
        texts.append(f"{refused} items were not accepted and are back in {address}")
    if done["unconfirmed"]:
        texts.append(f"{done['unconfirmed']} are sent and not settled yet")
    if not texts:
        return ExitCode.OK
    click.echo(f"cogwork: {'; '.join(texts)}", err=True)
    return ExitCode.NOT_ACCEPTED


def parse_options(pairs: tuple[str, ...]) -> dict[str, Any]:
    """Read each `K=V` as a key of `[[queue]]`, with the type that the configuration gives it.

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
                f"unknown option {key!r} (expected one of {', '.join(known)})",
                param_hint="--option",
            )
        declared = type_at(QueueOptions, (key,))
        value = _names_in(text) if _is_names(declared) else text
        try:
            converted = msgspec.convert({key: value}, QueueOptions, strict=False)
        except msgspec.ValidationError as error:
            expected = describe(declared)
            message = f"{key} takes {expected}, not {text!r}"
            raise click.BadParameter(message, param_hint="--option") from error
        values[key] = getattr(converted, key)
    return values


def _names_in(text: str) -> object:
    """Read an array of strings as people write it, `a,b`, or as JSON does, `["a", "b"]`."""
    try:
        return json.loads(text) if text.startswith("[") else moving.named(text)
    except (ValueError, RecursionError):
        return text


def _is_names(declared: inspect.Type) -> bool:
    """Return whether an option is an array of strings."""
    options = declared.types if isinstance(declared, inspect.UnionType) else (declared,)
    return any(
        isinstance(each, inspect.ListType) and isinstance(each.item_type, inspect.StrType)
        for each in options
    )
