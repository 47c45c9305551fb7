"""Audits: proofs from an archive that nothing was lost, doubled or out of order.

`DeliveryRecorder` is for subscribers, and needs nothing but a client; all else needs the extra
`spark`.
"""

from __future__ import annotations

import warnings

from cogwork.pipeline.audit.delivery_recorder import DeliveryRecorder

__all__ = ("DeliveryRecorder",)


def __getattr__(name: str) -> object:
    """Give `DeliveryRecorder` by its old name, `Witness`, with a warning."""
    if name != "Witness":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    new = DeliveryRecorder.__name__
    warnings.warn(f"{__name__}.Witness was renamed: import {new}", DeprecationWarning, stacklevel=2)
    return DeliveryRecorder
