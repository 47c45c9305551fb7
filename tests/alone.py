"""What only one of the processes that run tests may do at a time."""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ("alone",)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep other processes out of a folder, which it makes, for the length of a `with` block."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
