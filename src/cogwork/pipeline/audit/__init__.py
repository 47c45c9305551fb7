"""Audits: proofs from an archive that nothing was lost, doubled or out of order.

`DeliveryRecorder` is for subscribers, and needs nothing but a client; all else needs the extra
`spark`.
"""

from __future__ import annotations

from cogwork.moved import renamed
from cogwork.pipeline.audit.delivery_recorder import DeliveryRecorder

__all__ = ("DeliveryRecorder",)


def __getattr__(name: str) -> object:
    return renamed(__name__, name)
