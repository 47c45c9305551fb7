"""What two ends agree on before a connection opens (AMQP 0-9-1 §1.4.2.6).

The server offers limits, the client answers with limits no higher, and these hold. 0 is no limit.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from cogwork.amqp091.errors import ProtocolError, ReplyCode
from cogwork.amqp091.frames import MIN_FRAME_MAX
from cogwork.amqp091.methods import ConnectionTune, ConnectionTuneOk

__all__ = ("DEFAULT_CHANNEL_MAX", "DEFAULT_HEARTBEAT_S", "Limits", "limits_of")

DEFAULT_CHANNEL_MAX: Final = 2047
"""What a server offers, as RabbitMQ does."""

DEFAULT_HEARTBEAT_S: Final = 60
"""What a server offers, as RabbitMQ does."""

_CHANNELS = 2**16 - 1
_FRAME_OCTETS = 2**32 - 1
"""What fits into the fields of a frame."""


class Limits(NamedTuple):
    """What holds for both ends of a connection.

    Attributes:
        channels: How many may be open at a time.
        frame_max: The largest frame, in octets.
        heartbeat_s: How often each end sends something; 0 is never.
    """

    channels: int
    frame_max: int
    heartbeat_s: int


def limits_of(offer: ConnectionTune, answer: ConnectionTuneOk) -> Limits:
    """Return the limits that hold.

    The client decides on heartbeats alone, as it does with RabbitMQ.

    Raises:
        ProtocolError: The client takes more than was offered, or less than is possible (530).
    """
    _check("frame_max", offer.frame_max, answer.frame_max, MIN_FRAME_MAX)
    _check("channel_max", offer.channel_max, answer.channel_max, 1)
    return Limits(
        answer.channel_max or _CHANNELS, answer.frame_max or _FRAME_OCTETS, answer.heartbeat
    )


def _check(name: str, offered: int, answered: int, least: int) -> None:
    if answered and answered < least:
        raise _refusal(f"{name} = {answered} is lower than the minimum allowed value ({least})")
    if offered and not 0 < answered <= offered:
        shown = f"{answered}" if answered else "0 (no limit)"
        raise _refusal(f"{name} = {shown} is higher than the maximum allowed value ({offered})")


def _refusal(what: str) -> ProtocolError:
    return ProtocolError(
        ReplyCode.NOT_ALLOWED,
        f"negotiated {what}",
        ConnectionTune.CLASS_ID,
        ConnectionTune.METHOD_ID,
    )
