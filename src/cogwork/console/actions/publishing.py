"""Publishing a message from a form."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cogwork.client import InDoubt, Message, Rejected, Released
from cogwork.console.actions.action import Done, Field, flag_of, pairs_of
from cogwork.console.errors import WrongForm

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.console.session import Session

__all__ = ("MESSAGE", "publish")

BODIES = ("text", "JSON as AMQP")

MESSAGE = (
    Field("body", "Body", "area"),
    Field(
        "encoding",
        "The body is",
        "choice",
        default=BODIES[0],
        choices=BODIES,
        hint="JSON can be sent as text, or as the AMQP value that it describes.",
    ),
    Field("subject", "Subject"),
    Field("content_type", "Content type", hint="Such as application/json."),
    Field("properties", "Application properties", "area", hint="One K=V in each line."),
    Field("durable", "Durable", "flag"),
)


def _message(fields: Mapping[str, str]) -> Message:
    """Make the message of a form.

    Raises:
        WrongForm: A field of it cannot be used.
    """
    body: object = fields.get("body", "")
    if fields.get("encoding") == BODIES[1]:
        try:
            body = json.loads(fields.get("body", ""))
        except (ValueError, RecursionError) as error:
            raise WrongForm(f"Body: expected JSON: {error}") from error
    return Message(
        body,
        subject=fields.get("subject") or None,
        content_type=fields.get("content_type") or None,
        properties=pairs_of(fields.get("properties", ""), "Application properties") or None,
        durable=flag_of(fields, "durable"),
    )


async def publish(session: Session, address: str, fields: Mapping[str, str]) -> Done:
    """Publish the message of a form.

    Args:
        session: Whose.
        address: Where to.
        fields: The form's.
    """
    message = _message(fields)
    async with session.reaching() as client:
        try:
            await client.publish(address, message)
        except Rejected as error:
            return Done(f"Rejected: {error}", is_problem=True)
        except Released:
            return Done("Nobody takes the message: it went nowhere.", is_problem=True)
        except InDoubt as error:
            return Done(f"It is not known whether it arrived: {error}", is_problem=True)
    return Done("Published: it was accepted.")
