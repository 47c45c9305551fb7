"""A worker's ledger: a file that outlives it, whenever it is killed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


class Ledger:
    """A file of lines: `taken ITEM DELIVERY-COUNT`, `confirmed ITEM`, and `ended`.

    Args:
        path: Of the file.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def take(self, items: Iterable[tuple[object, int]]) -> None:
        """Write down items that are about to be accepted, and wait for the disk."""
        self._write(f"taken {item} {count}\n" for item, count in items)
        os.fsync(self._file)

    def confirm(self, items: Iterable[object]) -> None:
        """Write down items whose accepts the container has confirmed."""
        self._write(f"confirmed {item}\n" for item in items)

    def end(self) -> None:
        """Say that the worker ended in good order."""
        self._write(["ended\n"])

    def _write(self, lines: Iterable[str]) -> None:
        text = "".join(lines).encode()
        assert os.write(self._file, text) == len(text)
