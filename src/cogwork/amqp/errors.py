"""Errors: what is raised, and what goes to the peer (AMQP 1.0 §2.8.14)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp.composite import Composite, composite, field
from cogwork.amqp.exceptions import (
    CogworkError,
    Condition,
    DecodeError,
    EncodeError,
    FrameTooLarge,
    LocalProtocolError,
    ProtocolError,
    Scope,
)
from cogwork.amqp.kinds import FIELDS, STRING, SYMBOL

if TYPE_CHECKING:
    from cogwork.amqp.types import Symbol

__all__ = (
    "AmqpError",
    "CogworkError",
    "Condition",
    "DecodeError",
    "EncodeError",
    "FrameTooLarge",
    "LocalProtocolError",
    "ProtocolError",
    "Scope",
)


@composite(0x1D, "error")
class AmqpError(Composite):
    """Why something ended, as it travels in close, end, detach and rejected."""

    condition: Symbol = field(SYMBOL)
    description: str | None = field(STRING, default=None)
    info: dict[Symbol, object] | None = field(FIELDS, default=None)
