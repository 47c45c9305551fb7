"""Where one batch ends and the next begins.

Theory of operation. Batches are cut at multiples of the offset, and before the records of one
would take more than a limit. What counts is only what a record holds besides its annotations,
which is the same however it came: so a range is cut in the same places each time it is read, from
whatever container, and whoever begins at a cut goes on with the same batches.
"""

from __future__ import annotations

__all__ = ("ROWS_MAX", "SIZE_MAX_BYTES", "limit_of")

ROWS_MAX = 8192
SIZE_MAX_BYTES = 3 << 20


def limit_of(start: int, end: int) -> int:
    """Return where a batch that begins at `start` ends at the latest."""
    return min(end, (start // ROWS_MAX + 1) * ROWS_MAX)
