"""What the driver raises: oslo.messaging's own exceptions, and kinds of these that tell more."""

from __future__ import annotations

from oslo_messaging import exceptions

__all__ = (
    "CallInterrupted",
    "DeliveryInDoubt",
    "NoReply",
    "NotDelivered",
)


class NotDelivered(exceptions.MessageDeliveryFailure):  # type: ignore[misc]  # untyped library
    """It was certainly not delivered, within its retries and its time."""


class DeliveryInDoubt(exceptions.MessageDeliveryFailure):  # type: ignore[misc]  # untyped library
    """Whether it was delivered cannot be known; it was not sent again, as that could make two."""


class CallInterrupted(DeliveryInDoubt):
    """The connection broke while a reply was waited for, and no reply can come any more."""


class NoReply(exceptions.MessagingTimeout):  # type: ignore[misc]  # untyped library
    """A call's time is over; the message says how far it had come."""
