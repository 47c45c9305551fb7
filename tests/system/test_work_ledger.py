"""A hundred thousand items of work, while the workers are killed at random.

Each worker writes an item's id to its own file, waits for the disk, and only then accepts. So the
ledgers tell afterwards what happened to every item: nothing is lost, nothing was done twice, and
what was in doubt when a worker died is parked, item by item.
"""

from __future__ import annotations

import collections
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .served import NEEDS_CONTAINER, Served, served, within

if TYPE_CHECKING:
    from collections.abc import Iterable

pytestmark = NEEDS_CONTAINER

CONSUMER = Path(__file__).parent / "clients" / "ledger_consumer.py"
QUEUE, PARKED = "work/ledger", "queue/ledger.parked"
ITEMS = int(os.environ.get("COGWORK_LEDGER_ITEMS", "100000"))
WORKERS = 4
CREDIT = 100
"""As much as a worker asks for: so many items at most are in doubt when it dies."""

LIFE_MAX_S = 2.0
PARKING_TIMEOUT_S = 20.0

CONFIGURATION = f"""
[[queue]]
address = "{QUEUE}"
in_doubt = "park"
in_doubt_timeout_s = 0.2
dead_letter = "{PARKED}"
"""


class Workers:
    """Consumer processes that die and are replaced.

    Args:
        container: Where the work is.
        folder: Takes their ledgers, a file for each process.
    """

    def __init__(self, container: Served, folder: Path) -> None:
        self._container = container
        self._folder = folder
        self._running: list[subprocess.Popen[bytes]] = []
        self.started = 0

    def hire(self) -> None:
        """Starts one."""
        ledger = self._folder / f"ledger-{self.started}"
        command = [sys.executable, str(CONSUMER), self._container.url, QUEUE, str(ledger)]
        self._running.append(subprocess.Popen(command))
        self.started += 1

    def kill_one(self, chance: random.Random) -> None:
        """Ends one of them by SIGKILL."""
        victim = self._running.pop(chance.randrange(len(self._running)))
        victim.kill()
        victim.wait()

    def dismiss(self) -> None:
        """Lets the others end in good order."""
        for process in self._running:
            process.terminate()
        for process in self._running:
            assert process.wait(30) == 0, "a worker did not end in good order"

    def entries(self) -> Iterable[tuple[str, str]]:
        """Yields what the ledgers say: `taken` or `confirmed`, and the item."""
        for file in self._folder.glob("ledger-*"):
            for line in file.read_text().splitlines(keepends=True):
                if line.endswith("\n"):  # the last line may be torn
                    entry, item = line.split()
                    yield entry, item


def work_under_fire(container: Served, workers: Workers, chance: random.Random) -> int:
    """Kills and replaces workers until no work is left; returns how many died."""
    deaths = 0
    for _ in range(WORKERS):
        workers.hire()
    while container.address(QUEUE)["depth"] > 0:
        time.sleep(chance.uniform(0.0, LIFE_MAX_S))
        workers.kill_one(chance)
        workers.hire()
        deaths += 1
    return deaths


def idle(container: Served) -> bool:
    """Tells whether every item is confirmed or parked."""
    row = container.address(QUEUE)
    return bool(row["depth"] == 0 and row["unsettled"] == 0)


def drain(container: Served, address: str) -> list[str]:
    """Takes all items of a queue; returns their bodies."""
    depth = int(container.address(address)["depth"])
    if depth == 0:
        return []
    printed = container.run(
        "receive", container.url, address, "--count", str(depth), "--timeout", "30"
    )
    return printed.split()


@pytest.mark.timeout(300)
def test_every_item_is_done_once_or_parked(tmp_path: Path) -> None:
    seed = int(os.environ.get("COGWORK_SEED", str(random.SystemRandom().randrange(2**32))))
    chance = random.Random(seed)
    items = {str(number) for number in range(ITEMS)}
    lines = tmp_path / "items"
    lines.write_text("".join(f"{item}\n" for item in sorted(items, key=int)))
    with served(tmp_path, CONFIGURATION) as container:
        container.run("send", container.url, QUEUE, "--file", str(lines), "--durable")
        assert container.address(QUEUE)["depth"] == ITEMS
        workers = Workers(container, tmp_path)
        deaths = work_under_fire(container, workers, chance)
        within(PARKING_TIMEOUT_S, lambda: idle(container), f"no item is in doubt (seed {seed})")
        workers.dismiss()
        parked = drain(container, PARKED)
    told: dict[str, list[str]] = collections.defaultdict(list)
    for entry, item in workers.entries():
        told[entry].append(item)
    summary = (
        f"seed {seed}: {ITEMS} items, {deaths} workers died, {len(told['taken'])} taken, "
        f"{len(told['confirmed'])} confirmed, {len(parked)} parked"
    )
    sys.stdout.write(f"{summary}\n")
    assert items - set(told["taken"]) - set(parked) == set(), f"lost: {summary}"
    assert repeated(told["confirmed"]) == [], f"confirmed twice: {summary}"
    assert repeated(told["taken"]) == [], f"done twice: {summary}"
    assert repeated(parked) == [], f"parked twice: {summary}"
    assert set(told["confirmed"]) & set(parked) == set(), f"confirmed and parked: {summary}"
    assert len(parked) <= deaths * CREDIT, f"parked without a death: {summary}"


def repeated(items: list[str]) -> list[str]:
    """Returns the items that are there more than once."""
    return [item for item, count in collections.Counter(items).items() if count > 1]
