"""Performatives as frames that the peer takes (AMQP 1.0 §2.7.1, max-frame-size)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cogwork.amqp.errors import AmqpError, FrameTooLarge
from cogwork.amqp.frames import FRAME_HEADER_BYTES
from cogwork.amqp.performatives import Attach, Close, Detach, End, Open
from cogwork.dataplane.encoding.composites import encode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.amqp.performatives import Performative

__all__ = ("fitting",)

SHORT_BYTES = 200
"""What is left of a description where the error's info alone does not make room: every frame that a
peer may insist on, 512 octets, has room for that."""

ELLIPSIS = "..."


def fitting(performative: Performative, frame_size_bytes: int) -> bytes:
    """Encode a performative for a frame that is no larger than the peer takes.

    What only explains something, to people or to programs that can do without, is left out where
    there is no room for it: the end of an error's description, its info, an open's properties.

    Args:
        performative: To be sent.
        frame_size_bytes: The largest frame that the peer takes.

    Raises:
        FrameTooLarge: It cannot be made to fit.
    """
    body = encode(performative)
    excess_bytes = len(body) + FRAME_HEADER_BYTES - frame_size_bytes
    if excess_bytes <= 0:
        return body
    for shorter in _shorter(performative, excess_bytes):
        body = encode(shorter)
        if len(body) + FRAME_HEADER_BYTES <= frame_size_bytes:
            return body
    size_bytes = frame_size_bytes + excess_bytes
    parts = ", with its name, address, filters and unsettled deliveries"
    raise FrameTooLarge(
        f"the {performative.NAME} takes a frame of {size_bytes} octets"
        f"{parts if isinstance(performative, Attach) else ''}; the peer takes frames of at most "
        f"{frame_size_bytes}"
    )


def _shorter(performative: Performative, excess_bytes: int) -> Iterator[Performative]:
    """Yield what says the same in fewer words, the most telling first."""
    if isinstance(performative, Open):
        yield replace(performative, properties=None)
        yield replace(
            performative, properties=None, offered_capabilities=(), desired_capabilities=()
        )
    if not isinstance(performative, Detach | End | Close) or performative.error is None:
        return
    error = performative.error
    cut = _cut(error.description or "", excess_bytes)
    yield replace(performative, error=replace(error, description=cut))
    yield replace(performative, error=replace(error, info=None))
    short = AmqpError(condition=error.condition, description=_cut(error.description or "", None))
    yield replace(performative, error=short)
    yield replace(performative, error=AmqpError(condition=error.condition))


def _cut(text: str, excess_bytes: int | None) -> str | None:
    """Leave out the end of a text; None where nothing would be left."""
    octets = text.encode()
    left = SHORT_BYTES if excess_bytes is None else len(octets) - excess_bytes - len(ELLIPSIS)
    if left >= len(octets):
        return text or None
    return octets[:left].decode(errors="ignore") + ELLIPSIS if left > 0 else None
