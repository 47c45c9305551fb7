"""The columns of every stream."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa

from cogwork.pipeline.columns import COLUMNS as TABLE

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("COLUMNS", "columns_of", "schema_of")

_KINDS = {
    "string": pa.string(),
    "binary": pa.binary(),
    "int64": pa.int64(),
    "time": pa.timestamp("us", tz="UTC"),
    "texts": pa.map_(pa.string(), pa.string()),
}
_TYPES = {each.name: _KINDS[each.kind] for each in TABLE}

COLUMNS = tuple(_TYPES)
"""The names of all columns, in their order."""


def columns_of(columns: Sequence[str] | None) -> tuple[str, ...]:
    """Return the columns that are meant, in the order in which they were named.

    Args:
        columns: Their names; None for all.

    Raises:
        ValueError: There is no such column, it is named twice, or none is.
    """
    if columns is None:
        return COLUMNS
    unknown = [name for name in columns if name not in _TYPES]
    if unknown:
        raise ValueError(f"there is no column {unknown[0]!r}; there are {', '.join(COLUMNS)}")
    if not columns:
        raise ValueError(f"no column is named; there are {', '.join(COLUMNS)}")
    if len(set(columns)) != len(columns):
        raise ValueError(f"a column is named twice in {', '.join(columns)}")
    return tuple(columns)


def schema_of(columns: Sequence[str] | None = None) -> pa.Schema:
    """Return the schema of batches with these columns, in this order.

    Args:
        columns: Their names; None for all.

    Raises:
        ValueError: There is no such column, or it is named twice.
    """
    return _schema_of(columns_of(columns))


@lru_cache(maxsize=64)
def _schema_of(columns: tuple[str, ...]) -> pa.Schema:
    return pa.schema([(name, _TYPES[name]) for name in columns])
