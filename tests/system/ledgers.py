"""Workers that write down what they do, and what can be read of it when they have died."""

from __future__ import annotations

import collections
import contextlib
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Self, TextIO

from .served import within

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .served import Served

FOREMAN = Path(__file__).parent / "clients" / "ledger_foreman.py"
LIBRARIES = ("cogwork", "proton")
SETTLE_TIMEOUT_S = 60.0


class Workers:
    """Consumer processes that die and are replaced; a context that ends whoever is left.

    Args:
        container: Where the work is.
        folder: Takes their ledgers, a file for each process.
        queue: The queue's address.
        prefix: Tells the files of several crews apart.
        kinds: Of the workers, in turn: `cogwork` and `proton` take batches, `handler` blocks with
            each item, and `closer` closes again and again in good order.
    """

    def __init__(
        self,
        container: Served,
        folder: Path,
        queue: str,
        prefix: str = "",
        kinds: Sequence[str] = LIBRARIES,
    ) -> None:
        self._kinds = kinds
        self._files = f"{folder}/ledger-{prefix}"
        self._folder = folder
        self._prefix = prefix
        self._running: list[int] = []
        self.hired = 0
        self._foreman = subprocess.Popen(
            [sys.executable, str(FOREMAN), container.url, queue],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def hire(self) -> None:
        """Start one, of each kind in turn."""
        assert self._foreman.stdin is not None
        assert self._foreman.stdout is not None
        kind = self._kinds[self.hired % len(self._kinds)]
        self._foreman.stdin.write(f"{kind} {self._files}{self.hired}\n")
        self._foreman.stdin.flush()
        self._running.append(int(self._foreman.stdout.readline()))
        self.hired += 1

    def kill_one(self, chance: random.Random) -> None:
        """End one of them by SIGKILL, unless it has ended already."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._running.pop(chance.randrange(len(self._running))), signal.SIGKILL)

    def replace(self) -> None:
        """End all of them by SIGKILL, and start as many."""
        count = len(self._running)
        self._end_all()
        for _ in range(count):
            self.hire()

    def dismiss(self) -> None:
        """Let the others end in good order."""
        for worker in self._running:
            os.kill(worker, signal.SIGTERM)
        count = len(self._running)
        within(
            SETTLE_TIMEOUT_S,
            lambda: Book.of(self._folder, self._prefix).ended == count,
            f"{count} workers ended",
        )
        self._running.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end_all()
        self._foreman.communicate()

    def _end_all(self) -> None:
        for worker in self._running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
        self._running.clear()


class Book:
    """Ledgers together.

    Attributes:
        taken: For each item the delivery-counts that it was taken with.
        confirmed: How often each item was confirmed.
        ended: Workers that ended in good order.
    """

    def __init__(self) -> None:
        self.taken: dict[str, list[int]] = collections.defaultdict(list)
        self.confirmed: collections.Counter[str] = collections.Counter()
        self.ended = 0

    @classmethod
    def of(cls, folder: Path, prefix: str = "") -> Book:
        """Read what ledgers say."""
        book = cls()
        for file in folder.glob(f"ledger-{prefix}*"):
            for line in file.read_text().splitlines(keepends=True):
                if line.endswith("\n"):  # the last line may be torn
                    book.enter(*line.split())
        return book

    def enter(self, entry: str, item: str = "", delivery_count: str = "0") -> None:
        """Take in a line of a ledger."""
        if entry == "taken":
            self.taken[item].append(int(delivery_count))
        elif entry == "confirmed":
            self.confirmed[item] += 1
        else:
            self.ended += 1

    def again(self, *, marked: bool) -> int:
        """Count the times that an item was taken after the first, marked or not."""
        return sum(
            sum((count > 0) == marked for count in sorted(counts)[1:])
            for counts in self.taken.values()
        )

    def check(self, policy: str, parked: collections.Counter[str]) -> None:
        """Assert what a queue promises, whoever was killed.

        Args:
            policy: What the queue does with items in doubt: `park` or `redeliver`.
            parked: How often each item was found among the dead letters.
        """
        done_again = twice(self.confirmed)
        assert done_again == [], f"confirmed twice: {done_again}"
        both = parked.keys() & self.confirmed.keys()
        assert both == set(), f"confirmed and parked: {both}"
        unmarked, marked = self.again(marked=False), self.again(marked=True)
        assert unmarked == 0, f"taken again without a mark: {unmarked}"
        if policy == "park":
            assert marked == 0, f"done twice: {marked}"
        else:
            assert parked.total() == 0, f"parked: {parked}"


def row(container: Served, queue: str) -> dict[str, int]:
    """Return what the status command says of a queue."""
    rows = container.status()["queues"]
    found: dict[str, int] = next(row for row in rows if row["address"] == queue)
    return found


def twice(counts: collections.Counter[str]) -> list[str]:
    """Return what was counted more than once."""
    return [item for item, count in counts.items() if count > 1]


def chance_of(output: TextIO) -> random.Random:
    """Return random numbers from a seed that a failure shows."""
    seed = int(os.environ.get("COGWORK_SEED", str(random.SystemRandom().randrange(2**32))))
    output.write(f"COGWORK_SEED={seed}\n")
    return random.Random(seed)
