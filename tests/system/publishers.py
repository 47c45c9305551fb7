"""Publishers that write down what became of each item."""

from __future__ import annotations

import collections
import subprocess
import sys
from pathlib import Path

PUBLISHER = Path(__file__).parent / "clients" / "disk_publisher.py"
NAMES = "xyz"


class Publishers:
    """Processes that publish; a context that ends them.

    Args:
        url: Where they connect.
        folder: Takes what they write down.
        queue: The queue's address.
        count: How many items they publish together.
    """

    def __init__(self, url: str, folder: Path, queue: str, count: int) -> None:
        self._files = [folder / f"published-{name}" for name in NAMES]
        each = str(count // len(NAMES))
        self._processes = [
            subprocess.Popen(
                [sys.executable, str(PUBLISHER), url, queue, file.name[-1], str(file), each]
            )
            for file in self._files
        ]

    def said(self) -> dict[str, set[str]]:
        """What they wrote down: items by what became of them."""
        found: dict[str, set[str]] = collections.defaultdict(set)
        for file in self._files:
            for line in file.read_text().splitlines() if file.exists() else ():
                kind, _, item = line.partition(" ")
                found[kind].add(item)
        return found

    @property
    def have_begun(self) -> bool:
        return all(file.exists() and file.stat().st_size for file in self._files)

    @property
    def are_done(self) -> bool:
        return all(process.poll() is not None for process in self._processes)

    def __enter__(self) -> Publishers:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
