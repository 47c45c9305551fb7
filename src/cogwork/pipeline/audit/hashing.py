"""Hashes of rows, the same that Spark's `xxhash64` has of the same columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from cogwork.dataplane.tables.hashes import SEED, hash_numbers, hash_texts
from cogwork.pipeline.arrow.places import place_of, plain

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ("add_column", "first_hashes", "row_hashes")


def first_hashes(rows: int) -> NDArray[np.uint64]:
    """Return what the hashes of rows are without any columns."""
    return np.full(rows, SEED, np.uint64)


def row_hashes(*columns: pa.Array) -> NDArray[np.uint64]:
    """Hash rows.

    Args:
        *columns: Texts, octets or whole numbers of 64 bits; dictionaries of texts or octets, too.
    """
    hashes = first_hashes(len(columns[0]))
    for column in columns:
        add_column(hashes, column)
    return hashes


def add_column(hashes: NDArray[np.uint64], column: pa.Array, *, characters: int = -1) -> None:
    """Hash one more column.

    Args:
        hashes: Those of the columns before it; replaced.
        column: The column.
        characters: So many of each text are hashed; all where negative.
    """
    if pa.types.is_integer(column.type):
        numbers = place_of(plain(column, pa.int64()))
        hash_numbers(hashes, numbers.validity, numbers.offsets, numbers.first)
        return
    if pa.types.is_dictionary(column.type):
        indexes, values = plain(column.indices, pa.int32()), plain(column.dictionary, pa.binary())
        rows = place_of(indexes)
        where = (rows.validity, rows.offsets, rows.first)
    else:
        values = plain(column, pa.binary())
        rows = place_of(values)
        where = (rows.validity, 0, rows.first)
    texts = place_of(values)
    hash_texts(hashes, where, (texts.offsets, texts.data, texts.first), characters)
