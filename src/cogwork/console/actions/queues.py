"""What can be done to queues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from cogwork.cli.commands.queue import KEPT, parse_options
from cogwork.console.actions.action import Action, Done, Field, Shown, number_of
from cogwork.console.actions.publishing import MESSAGE, publish
from cogwork.console.errors import WrongForm

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.console.session import Session

__all__ = ("QUEUE_ACTIONS",)

TAKEN_MAX = 50

DURABILITIES = ("auto", "memory", "disk", "replicated")


async def _declare(session: Session, fields: Mapping[str, str]) -> Done:
    lines = tuple(filter(None, map(str.strip, fields.get("options", "").split("\n"))))
    try:
        options = parse_options(lines)
    except click.BadParameter as error:
        raise WrongForm(error.message) from error
    if durability := fields.get("durability"):
        options["durability"] = durability
    async with session.queue(fields["name"]) as queue:
        is_new, kept, problem = await queue.declare(options)
    said = "declared" if is_new else "was there with these options"
    text = f"{fields['name']} {said}, {KEPT[kept]}"
    return Done(f"{text}: {problem}" if problem else text, is_problem=problem is not None)


async def _publish(session: Session, fields: Mapping[str, str]) -> Done:
    return await publish(session, fields["name"], fields)


async def _get(session: Session, fields: Mapping[str, str]) -> Done:
    """Take items off: they are gone once the page shows them."""
    count = max(1, number_of(fields.get("count") or "1", "Items", TAKEN_MAX))
    async with (
        session.reaching() as client,
        client.consume(fields["name"], credit=count) as consumer,
    ):
        items = await consumer.drain()
        shown = [
            Shown(f"item {at}", {"delivery count": item.delivery_count}, item.encode())
            for at, item in enumerate(items, 1)
        ]
        if items:
            await consumer.accept(items)
    return Done(f"{len(shown)} items taken off {fields['name']}", shown=shown)


async def _purge(session: Session, fields: Mapping[str, str]) -> Done:
    async with session.queue(fields["name"]) as queue:
        return Done(f"{await queue.purge():,} items purged")


async def _delete(session: Session, fields: Mapping[str, str]) -> Done:
    async with session.queue(fields["name"]) as queue:
        await queue.delete()
    return Done(f"{fields['name']} deleted", is_gone=True)


async def _move(session: Session, fields: Mapping[str, str]) -> Done:
    return await _transfer(session, "MOVE", fields, fields["target"])


async def _redrive(session: Session, fields: Mapping[str, str]) -> Done:
    return await _transfer(session, "REDRIVE", fields, None)


async def _transfer(
    session: Session, operation: str, fields: Mapping[str, str], target: str | None
) -> Done:
    count = number_of(fields["count"], "Items") if fields.get("count") else None
    async with session.queue(fields["name"]) as queue:
        done: dict[str, Any] = await queue.transfer(operation, count, target)
    told = [f"{done['moved']:,} items moved"]
    strangers = done.get("strangers", 0)
    told += [f"{strangers:,} are no dead letters and stay"] if strangers else []
    refused = done["refused"] - strangers
    told += [f"{refused:,} were not accepted and are back"] if refused else []
    told += [f"{done['unconfirmed']:,} are not settled yet"] if done["unconfirmed"] else []
    return Done("; ".join(told), is_problem=len(told) > 1)


async def _relocate(session: Session, fields: Mapping[str, str]) -> Done:
    names = [each.strip() for each in fields["replicas"].split(",") if each.strip()]
    await session.change("RELOCATE", "queue", fields["name"], {"replicas": names})
    return Done("The replicas move; the page shows when that is done.")


_COUNT = Field("count", "Items", "number", hint="All without a number.")

QUEUE_ACTIONS = (
    Action(
        "queue.declare",
        "Declare a queue",
        _declare,
        "Declare",
        (
            Field("name", "Address", is_required=True, hint="Such as queue/orders."),
            Field("durability", "Durability", "choice", choices=DURABILITIES),
            Field("options", "Options", "area", hint="One K=V in each line, such as ttl_s=60."),
        ),
    ),
    Action("queue.publish", "Publish a message", _publish, "Publish", MESSAGE),
    Action(
        "queue.get",
        "Get items",
        _get,
        "Get",
        (Field("count", "Items", "number", default="1", most=TAKEN_MAX),),
        is_dangerous=True,
        warning="Items that are shown are taken off the queue.",
    ),
    Action(
        "queue.move",
        "Move items",
        _move,
        "Move",
        (Field("target", "To the queue", is_required=True, hint="Its address."), _COUNT),
    ),
    Action(
        "queue.redrive",
        "Redrive dead letters",
        _redrive,
        "Redrive",
        (_COUNT,),
        warning="They go back where they came from.",
    ),
    Action(
        "queue.relocate",
        "Relocate replicas",
        _relocate,
        "Relocate",
        (Field("replicas", "Containers", is_required=True, hint="Their ids, between commas."),),
    ),
    Action(
        "queue.purge",
        "Purge",
        _purge,
        is_dangerous=True,
        warning="All items that no consumer holds are lost.",
    ),
    Action(
        "queue.delete",
        "Delete",
        _delete,
        is_dangerous=True,
        warning="The queue and all of its items are lost.",
    ),
)
