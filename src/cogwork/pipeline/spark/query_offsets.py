"""What Spark's checkpoint keeps of a query: how far each batch goes in each stream, as JSON.

Theory of operation. Spark keeps where a batch ends, and takes it to start where the one before it
has ended. The first one has none before it; nor has, in a later one, a stream that is new, or that
has been made anew. Run again by a new driver, such a batch would start wherever the streams begin
or end by then: with other rows, which a stream takes for those that it has. So the end of a batch
says too where such streams were to be read from, under a key that is no stream's name:
`{"flights": 4711, "starts/": {"flights": 23}}`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = (
    "STARTS",
    "Offset",
    "beginning_at",
    "is_beginning",
    "offset_of",
    "positions_in",
    "starts_in",
)

Offset = dict[str, Any]
"""As Spark keeps it: positions by stream, and starts under `STARTS`."""

STARTS = "starts/"
"""No stream's name ends with a slash."""


def beginning_at(positions: Mapping[str, int]) -> Offset:
    """Return where a query begins, before any batch.

    It is told by starts that are there and empty: a later batch may well end at these positions.
    """
    return {**positions, STARTS: {}}


def is_beginning(offset: Mapping[str, Any]) -> bool:
    """Return whether no batch has ended here."""
    return offset.get(STARTS) == {}


def offset_of(positions: Mapping[str, int], starts: Mapping[str, int]) -> Offset:
    """Return what Spark is to keep of a batch.

    Args:
        positions: The offset that is next, by stream.
        starts: That of the first record, of streams where no batch before this one says it.
    """
    return {**positions, STARTS: dict(starts)} if starts else dict(positions)


def positions_in(offset: Mapping[str, Any]) -> dict[str, int]:
    """Return the offset that is next, by stream."""
    return {name: at for name, at in offset.items() if name != STARTS}


def starts_in(offset: Mapping[str, Any]) -> dict[str, int]:
    """Return where streams start in the batch that ends here, as far as its end says so."""
    return dict(offset.get(STARTS, {}))
