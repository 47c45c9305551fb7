"""Batches that were written before under the same `transactionId`: whether this is the same one.

Theory of operation. A row is known to a stream by its partition and its place in there. So a batch
that is written again has to have the same rows in the same partitions; with others, the stream
would take rows for some that it has, and others for new ones. Spark tells a task nothing of the
other partitions. But before any task runs, the driver can see which rows of this transaction the
stream has, and each task compares: a row that the stream has at its place has to be this one, none
of those may be missing, and those that come behind them may not all be rows that the stream has
from another partition. A task sends nothing that it has not compared, and what it has found to be
the same the stream drops.

Batches of which the stream has nothing cost the driver a look at the producers of a while back.
"""

from __future__ import annotations

import time
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from cogwork.pipeline.arrow import ArrowClient, ArrowError, StreamTruncated, UnknownStream
from cogwork.pipeline.spark.errors import SinkError
from cogwork.pipeline.spark.words import STREAMS, stream_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cogwork.pipeline.spark.write_options import WriteOptions

__all__ = ("Earlier", "earlier_of")

COMPARED = ("subject", "message_id", "body")
"""What tells rows apart, and comes back from a stream as it was written."""

DIGEST_SIZE_BYTES = 8

PARTITIONS_MAX = 10_000
"""A stream remembers as many producers."""

ROWS_MAX = 5_000_000
"""How far from the stream's end to look: seconds."""

NOT_ALLOWED = "amqp:unauthorized-access"

FIRST_TIMEOUT_S = 15
"""How long to try: a URL may simply be wrong."""

MOVED_ROWS = 64
"""So many rows in a row that another partition had are no coincidence."""


class Part(NamedTuple):
    """What a stream has of a partition.

    Attributes:
        start: The place of the first row that is known.
        digests: Of the rows from there on, one after the other.
    """

    start: int
    digests: bytes

    @property
    def end(self) -> int:
        """The place after the last row that is known."""
        return self.start + len(self.digests) // DIGEST_SIZE_BYTES

    def at(self, place: int) -> bytes:
        """Return the digest of a row that is known."""
        first = (place - self.start) * DIGEST_SIZE_BYTES
        return self.digests[first : first + DIGEST_SIZE_BYTES]


class Earlier(NamedTuple):
    """What a stream has of a transaction; it is sent to the tasks.

    Attributes:
        name: The transaction's.
        address: The stream's.
        parts: By the numbers of the partitions.
    """

    name: str
    address: str
    parts: dict[int, Part]

    def checked(
        self, partition: int, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows of a task, once they are known to be the same as before, or new.

        Args:
            partition: The task's.
            batches: Its rows.

        Raises:
            SinkError: They are neither.
        """
        part = self.parts.get(partition, Part(0, b""))
        at = 0
        for batch in batches:
            digests = digests_of(batch)
            for place in range(max(at, part.start), min(at + len(digests), part.end)):
                if digests[place - at] != part.at(place):
                    raise self._refused(f"row {place} of partition {partition} is another one")
            new = digests[max(0, part.end - at) :]
            if new and at <= part.end and self._are_elsewhere(partition, new[:MOVED_ROWS]):
                place = at + len(digests) - len(new)
                raise self._refused(f"row {place} of partition {partition} was in another one")
            at += len(digests)
            yield batch
        if at < part.end:
            raise self._refused(f"partition {partition} has {at} rows, and had {part.end}")

    def _are_elsewhere(self, partition: int, digests: list[bytes]) -> bool:
        left = set(digests)
        for number, part in self.parts.items():
            if number != partition:
                left.difference_update(map(part.at, range(part.start, part.end)))
        return not left

    def _refused(self, why: str) -> SinkError:
        return SinkError(
            f"transactionId {self.name!r:.80} was used before for other rows, or for other "
            f"partitions ({why}): {self.address} gets nothing; write the same rows in the same "
            "partitions, or use another transactionId"
        )


def digests_of(batch: pa.RecordBatch) -> list[bytes]:
    """Return what tells each row of a batch from others."""
    columns = []
    for name in COMPARED:
        if name in batch.schema.names:
            kind = pa.large_binary() if name == "body" else pa.large_string()
            column = batch.column(name)
            if pa.types.is_string(column.type) and name == "body":
                column = column.cast(pa.binary())
            columns.append(column.cast(kind).to_pylist())
        else:
            columns.append([None] * batch.num_rows)
    return [
        blake2b(repr(row).encode(), digest_size=DIGEST_SIZE_BYTES).digest()
        for row in zip(*columns, strict=True)
    ]


def earlier_of(
    options: WriteOptions,
    producer_of: Callable[[int], bytes],
    now_s: Callable[[], float] = time.time,
) -> Earlier | None:
    """Look which rows of a transaction a stream has; None where it has none.

    Args:
        options: The sink's; they name an address and a transaction.
        producer_of: The producer's id of a partition.
        now_s: The time of day.

    Raises:
        SinkError: The stream cannot be read.
    """
    assert options.address is not None
    stream = stream_name(options.address)
    address = STREAMS + stream
    numbers = {producer_of(number): number for number in range(PARTITIONS_MAX)}
    tls = options.certificates.context()
    since_us = max(0, int((now_s() - options.lookback_s) * 1e6))
    try:
        timeout_s = min(FIRST_TIMEOUT_S, options.timeout_s)
        with ArrowClient(options.url, timeout_s=timeout_s, tls=tls, token=options.token) as client:
            found = dict(_rows_of(client, stream, since_us, numbers))
    except UnknownStream:  # each task will say so
        return None
    except ArrowError as error:
        if error.condition == NOT_ALLOWED:  # who may only send cannot be told
            return None
        raise SinkError(f"what {address} has cannot be read: {error.text}") from None
    if not found:
        return None
    return Earlier(options.transaction_id or "", address, _parts_of(found))


def _rows_of(
    client: ArrowClient, stream: str, since_us: int, numbers: dict[bytes, int]
) -> Iterator[tuple[tuple[int, int], bytes]]:
    """Yield partition, place and digest of rows that are there."""
    bounds = client.bounds(stream)
    known = pa.array(numbers, pa.binary())
    start = min(bounds.next, client.offset_at(stream, since_us))
    start = max(start, bounds.first, bounds.next - ROWS_MAX)
    for first, end in list(_places(client, stream, start, bounds.next, known)):
        columns = ["producer", "sequence", *COMPARED]
        for batch in client.read(stream, first, end, columns):
            ours = batch.filter(pc.is_in(batch.column("producer"), known))
            producers, sequences = (ours.column(at).to_pylist() for at in range(2))
            for producer, sequence, digest in zip(
                producers, sequences, digests_of(ours), strict=True
            ):
                yield (numbers[producer], sequence), digest


def _places(
    client: ArrowClient, stream: str, start: int, end: int, known: pa.Array
) -> Iterator[tuple[int, int]]:
    """Yield ranges of offsets in which there are rows of some producers."""
    while start < end:
        try:
            for batch in client.read(stream, start, end, ["producer"]):
                if pc.any(pc.is_in(batch.column(0), known)).as_py():
                    yield start, start + batch.num_rows
                start += batch.num_rows
        except StreamTruncated as error:
            start = max(start + 1, error.first)


def _parts_of(found: dict[tuple[int, int], bytes]) -> dict[int, Part]:
    places: dict[int, list[int]] = {}
    for partition, place in sorted(found):
        known = places.setdefault(partition, [])
        if known and place != known[-1] + 1:
            known.clear()  # retention has left the last ones
        known.append(place)
    return {
        partition: Part(known[0], b"".join(found[partition, place] for place in known))
        for partition, known in places.items()
    }
