"""What can be done to connections and links."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.console.actions.action import Action, Done, Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.console.session import Session

__all__ = ("CLIENT_ACTIONS",)

REASON = Field("reason", "Reason", default="closed by management", hint="The client is told.")


def _body(fields: Mapping[str, str]) -> dict[str, str]:
    return {"reason": fields.get("reason") or REASON.default}


async def _close(session: Session, fields: Mapping[str, str]) -> Done:
    await session.change("CLOSE", "connection", fields["name"], _body(fields))
    return Done("The connection is closed.", is_gone=True)


async def _detach(session: Session, fields: Mapping[str, str]) -> Done:
    await session.change("DETACH", "link", fields["name"], _body(fields))
    return Done("The link is detached.", is_gone=True)


async def _disconnect(session: Session, fields: Mapping[str, str]) -> Done:
    reply = await session.change("DISCONNECT", "connection", fields["name"], _body(fields))
    return Done(f"{reply['closed']:,} connections closed")


CLIENT_ACTIONS = (
    Action(
        "connection.close",
        "Close",
        _close,
        fields=(REASON,),
        is_dangerous=True,
        warning="Clients usually connect again.",
    ),
    Action(
        "link.detach",
        "Detach",
        _detach,
        fields=(REASON,),
        is_dangerous=True,
        warning="Clients usually attach again.",
    ),
    Action(
        "user.disconnect",
        "Disconnect",
        _disconnect,
        fields=(REASON,),
        is_dangerous=True,
        warning="All connections of the user to this container are closed.",
    ),
)
