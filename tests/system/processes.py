"""What Linux tells of processes."""

from __future__ import annotations

from pathlib import Path

__all__ = ("children_of",)


def children_of(process_id: int) -> list[int]:
    """Return the processes that the first thread of one has started."""
    path = Path(f"/proc/{process_id}/task/{process_id}/children")
    return [int(word) for word in path.read_text().split()]
