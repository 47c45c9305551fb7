"""Streams as Arrow record batches: for table tools, in threads and forked workers.

with ArrowClient("amqp://localhost") as client:
    first, following = client.bounds("orders")
    for batch in client.read("orders", first, following, ["offset", "body"]):
        ...
"""

from cogwork.arrow.client import ArrowClient, Bounds
from cogwork.arrow.errors import ArrowError, BeyondEnd, StreamTruncated, UnknownStream
from cogwork.arrow.schema import COLUMNS, schema_of

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
