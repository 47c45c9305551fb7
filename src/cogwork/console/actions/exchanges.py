"""What can be done to exchanges and bindings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.console.actions.action import Action, Done, Field, flag_of, pairs_of
from cogwork.console.actions.publishing import MESSAGE, publish
from cogwork.router.exchanges.addresses import exchange_address

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.console.session import Session

__all__ = ("EXCHANGE_ACTIONS",)

TYPES = ("direct", "fanout", "topic", "headers", "x-consistent-hash", "x-random")

PREFIX = "exchange/"


def _address(name: str) -> str:
    return name if name.startswith(PREFIX) else exchange_address(name)


async def _declare(session: Session, fields: Mapping[str, str]) -> Done:
    body = {
        "type": fields.get("type") or TYPES[0],
        "durable": flag_of(fields, "durable"),
        "auto_delete": flag_of(fields, "auto_delete"),
        "internal": flag_of(fields, "internal"),
        "arguments": pairs_of(fields.get("arguments", ""), "Arguments"),
    }
    await session.change("CREATE", "exchange", _address(fields["name"]), body)
    return Done(f"{fields['name']} declared")


async def _publish(session: Session, fields: Mapping[str, str]) -> Done:
    return await publish(session, fields["name"], fields)


async def _delete(session: Session, fields: Mapping[str, str]) -> Done:
    body = {"if_unused": flag_of(fields, "if_unused")}
    await session.change("DELETE", "exchange", fields["name"], body)
    return Done(f"{fields['name']} deleted", is_gone=True)


async def _bind(session: Session, fields: Mapping[str, str]) -> Done:
    return await _change(session, "BIND", fields)


async def _unbind(session: Session, fields: Mapping[str, str]) -> Done:
    return await _change(session, "UNBIND", fields)


async def _change(session: Session, operation: str, fields: Mapping[str, str]) -> Done:
    body = {
        "destination": fields["destination"],
        "key": fields.get("key", ""),
        "arguments": pairs_of(fields.get("arguments", ""), "Arguments"),
    }
    reply = await session.change(operation, "exchange", _address(fields["name"]), body)
    if operation == "BIND":
        return Done("bound" if reply["changed"] else "it was bound so already")
    if reply["changed"]:
        return Done("the binding is removed")
    return Done("there is no such binding", is_problem=True)


_BINDING = (
    Field("destination", "Destination", is_required=True, hint="Such as queue/orders."),
    Field("key", "Binding key"),
    Field("arguments", "Arguments", "area", hint="One K=V in each line."),
)
_SOURCE = Field("name", "Exchange", is_required=True)

EXCHANGE_ACTIONS = (
    Action(
        "exchange.declare",
        "Declare an exchange",
        _declare,
        "Declare",
        (
            Field("name", "Name", is_required=True),
            Field("type", "Type", "choice", default=TYPES[0], choices=TYPES),
            Field("durable", "Durable", "flag", default="on"),
            Field("auto_delete", "Delete with the last binding", "flag"),
            Field("internal", "Internal", "flag"),
            Field("arguments", "Arguments", "area", hint="One K=V in each line."),
        ),
    ),
    Action("exchange.publish", "Publish a message", _publish, "Publish", MESSAGE),
    Action("exchange.bind-to", "Bind", _bind, fields=_BINDING),
    Action("exchange.unbind-from", "Remove a binding", _unbind, "Remove", _BINDING),
    Action("exchange.bind", "Bind", _bind, fields=(_SOURCE, *_BINDING)),
    Action("exchange.unbind", "Remove a binding", _unbind, "Remove", (_SOURCE, *_BINDING)),
    Action(
        "exchange.delete",
        "Delete",
        _delete,
        fields=(Field("if_unused", "Only if nothing is bound to it", "flag", default="on"),),
        is_dangerous=True,
        warning="Its bindings are lost.",
    ),
)
