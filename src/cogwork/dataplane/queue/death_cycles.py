"""Dead letters of AMQP 0-9-1 that would go round for ever (RabbitMQ).

A queue that has its expired messages sent to another one, and that to the first, would have them
travel in circles. So a dead letter is dropped by a queue that it has died in before, unless a
consumer rejected it on the way: then somebody retries, and is to stop when it is enough.
"""

from __future__ import annotations

from typing import Final

from cogwork.amqp.errors import DecodeError
from cogwork.dataplane.message.messages import Message

__all__ = ("is_automatic_cycle",)

DEATHS: Final = "x-death"
_MARK: Final = DEATHS.encode()
_QUEUES: Final = "queue/"
_REJECTED: Final = "rejected"


def is_automatic_cycle(message: bytes, address: str) -> bool:
    """Return whether a dead letter has died at an address before, and nobody has rejected it since.

    Args:
        message: Encoded, as AMQP 1.0 has it.
        address: Of the queue that it comes to.
    """
    if _MARK not in message:
        return False
    try:
        deaths = Message.decode(message).annotations.get(DEATHS)
    except (DecodeError, ValueError):
        return False
    name = address.removeprefix(_QUEUES)
    for death in deaths if isinstance(deaths, list) else ():  # the newest comes first
        if not isinstance(death, dict) or death.get("reason") == _REJECTED:
            return False
        if death.get("queue") == name:
            return True
    return False
