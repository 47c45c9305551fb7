"""Streams as Arrow record batches: for table tools, in threads and forked workers.

    with ArrowClient("amqp://localhost") as client:
        first, following = client.bounds("orders")
        for batch in client.read("orders", first, following, ["offset", "body"]):
            ...

What needs pyarrow is loaded when it is asked for: a container that starts readers does not.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from cogwork.pipeline.arrow.errors import ArrowError, BeyondEnd, StreamTruncated, UnknownStream

if TYPE_CHECKING:
    from cogwork.pipeline.arrow.client import ArrowClient, Bounds
    from cogwork.pipeline.arrow.schema import COLUMNS, schema_of

__all__ = (
    "COLUMNS",
    "ArrowClient",
    "ArrowError",
    "BeyondEnd",
    "Bounds",
    "StreamTruncated",
    "UnknownStream",
    "schema_of",
)

_PLACES = {
    "ArrowClient": "cogwork.pipeline.arrow.client",
    "Bounds": "cogwork.pipeline.arrow.client",
    "COLUMNS": "cogwork.pipeline.arrow.schema",
    "schema_of": "cogwork.pipeline.arrow.schema",
}


def __getattr__(name: str) -> object:
    """Load what needs pyarrow."""
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(place), name)
