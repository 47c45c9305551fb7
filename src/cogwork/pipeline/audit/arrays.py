"""Columns as arrays of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ("filled", "is_there", "micros")


def filled(column: pa.Array) -> NDArray[np.int64]:
    """Return whole numbers of 64 bits; zero for those that are null."""
    if column.null_count:
        column = column.fill_null(0)
    numbers: NDArray[np.int64] = column.to_numpy(zero_copy_only=False)
    return numbers


def micros(times: pa.Array) -> pa.Array:
    """Return times as microseconds since 1970, UTC."""
    return times.cast(pa.timestamp("us", tz="UTC"), safe=False).cast(pa.int64())


def is_there(column: pa.Array) -> NDArray[np.bool_]:
    """Return which values are not null."""
    there: NDArray[np.bool_] = column.is_valid().to_numpy(zero_copy_only=False)
    return there
