"""Rows that a stream has already, by columns that tell a row from all others.

Theory of operation. Where a query has no identity that lasts (its checkpoint is lost, its plan is
not deterministic), rows still can have one: a message-id made of the query's name, if it has one,
and of the names and values of the columns that the user names. Before a task publishes it reads the
message-ids of the last while back from the stream, which is one column, and leaves out the rows
that are there. It publishes under a new producer's id, for what
it numbers is not what an earlier attempt numbered.

What this does not see: rows of the same key in tasks that run at the same time.
"""

from __future__ import annotations

import time
from hashlib import sha256
from typing import TYPE_CHECKING

import pyarrow as pa

from cogwork.pipeline.arrow import ArrowClient, ArrowError, StreamTruncated
from cogwork.pipeline.spark.errors import SinkError
from cogwork.pipeline.spark.words import STREAMS, stream_name
from cogwork.pipeline.spark.write_options import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cogwork.pipeline.spark.write_options import WriteOptions

__all__ = ("Lookback",)

COLUMN = "message_id"

ID_SIZE_BYTES = 16


class Lookback:
    """The message-ids that a stream has; asked for when the first rows come."""

    def __init__(self, options: WriteOptions, now_s: Callable[[], float] = time.time) -> None:
        """Read nothing yet.

        Args:
            options: The sink's; they name an address and columns.
            now_s: The time of day.
        """
        self._options = options
        self._now_s = now_s
        self._known: set[str] | None = None

    def fresh(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that are not there yet, with their message-ids.

        Raises:
            SinkError: The stream cannot be read.
        """
        if self._known is None:
            self._known = self._read()
        keys = sorted(self._options.idempotency_columns)
        values = [_zoneless(batch.column(name)).to_pylist() for name in keys]
        ids, rows = [], []
        for row, key in enumerate(zip(*values, strict=True)):
            name = id_of(self._options.query, keys, key)
            if name not in self._known:
                self._known.add(name)
                ids.append(name)
                rows.append(row)
        kept = batch.take(pa.array(rows, pa.int64()))
        names = [name for name in kept.schema.names if name in COLUMNS]
        columns = [kept.column(name) for name in names]
        return pa.RecordBatch.from_arrays(
            [*columns, pa.array(ids, pa.string())], names=[*names, COLUMN]
        )

    def _read(self) -> set[str]:
        address = self._options.address
        assert address is not None
        stream = stream_name(address)
        since_us = int((self._now_s() - self._options.lookback_s) * 1e6)
        found: set[str] = set()
        try:
            options = self._options
            tls = options.certificates.context()
            with ArrowClient(
                options.url, timeout_s=options.timeout_s, tls=tls, token=options.token
            ) as client:
                end = client.bounds(stream).next
                start = min(end, client.offset_at(stream, max(0, since_us)))
                while start < end:
                    try:
                        for batch in client.read(stream, start, end, [COLUMN]):
                            start += batch.num_rows
                            found.update(filter(None, batch.column(0).to_pylist()))
                    except StreamTruncated as error:
                        start = min(end, max(start + 1, error.first))
        except ArrowError as error:
            raise SinkError(f"what {STREAMS}{stream} has cannot be read: {error.text}") from None
        return found


def id_of(query: str, names: Sequence[str], values: Sequence[object]) -> str:
    """Return the message-id of a row.

    Args:
        query: The name of the query, for the rows of another one are others.
        names: Of the columns that tell the row from others.
        values: Theirs.
    """
    row = query, list(zip(names, values, strict=True))
    return sha256(repr(row).encode()).hexdigest()[: 2 * ID_SIZE_BYTES]


def _zoneless(column: pa.Array) -> pa.Array:
    """Have instants be microseconds: they come in the session's time zone, which names no row."""
    kind = _zoneless_kind(column.type)
    return column if kind == column.type else column.cast(kind)


def _zoneless_kind(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return kind if kind.tz is None else pa.int64()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_zoneless_kind(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_zoneless_kind(kind.key_type), _zoneless_kind(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_zoneless_kind(kind.value_type)))
    return kind
