"""Delivery states and outcomes (AMQP 1.0 §3.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp.composite import Composite, composite, field
from cogwork.amqp.kinds import BOOLEAN, FIELDS, UINT, ULONG, nested

if TYPE_CHECKING:
    from cogwork.amqp.errors import AmqpError
    from cogwork.amqp.types import Symbol

__all__ = (
    "DELIVERY_STATE",
    "OUTCOME",
    "Accepted",
    "DeliveryState",
    "Modified",
    "Outcome",
    "Received",
    "Rejected",
    "Released",
)


@composite(0x23, "received")
class Received(Composite):
    """How much of a delivery has arrived; no outcome."""

    section_number: int = field(UINT)
    section_offset: int = field(ULONG)


@composite(0x24, "accepted")
class Accepted(Composite):
    """Processed."""


@composite(0x25, "rejected")
class Rejected(Composite):
    """Invalid and not to be processed anywhere."""

    error: AmqpError | None = field(nested("error", "error"), default=None)


@composite(0x26, "released")
class Released(Composite):
    """Not processed, and to be offered again as if never sent."""


@composite(0x27, "modified")
class Modified(Composite):
    """Not processed, and to be offered again with these changes."""

    delivery_failed: bool = field(BOOLEAN, default=False)
    undeliverable_here: bool = field(BOOLEAN, default=False)
    message_annotations: dict[Symbol, object] | None = field(FIELDS, default=None)


Outcome = Accepted | Rejected | Released | Modified
DeliveryState = Received | Outcome

OUTCOME = nested("an outcome", "accepted", "rejected", "released", "modified")
DELIVERY_STATE = nested(
    "a delivery state", "received", "accepted", "rejected", "released", "modified"
)
