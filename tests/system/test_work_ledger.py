"""Very many items of work, while the workers are killed at random.

Each worker writes an item's id to its own file, waits for the disk, and only then accepts. So the
ledgers tell afterwards what happened to every item: nothing is lost, nothing is confirmed twice,
and what was in doubt when a worker died is parked, or comes again and says so.
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import sys
import time
from typing import TYPE_CHECKING

import pytest

from .ledgers import Book, Workers, chance_of, row, twice
from .served import Served, served, within

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator
    from pathlib import Path

QUEUE, PARKED = "work/ledger", "queue/ledger.parked"
ITEMS = int(os.environ.get("COGWORK_LEDGER_ITEMS", "6000"))
WORKERS = 4
CREDIT = 100
"""As much as a worker asks for: so many items at most are in doubt when it dies."""

PAUSE_MAX_S = 0.08
"""Between deaths: a worker lives for a sixth of a second, and takes a third of that to begin."""

SETTLE_TIMEOUT_S = 60.0

CONFIGURATION = f"""
[[queue]]
address = "{QUEUE}"
in_doubt = "%s"
in_doubt_timeout_s = 0.2
dead_letter = "{PARKED}"
"""


@contextlib.contextmanager
def working(container: Served, folder: Path) -> Iterator[Workers]:
    """Employ workers for the length of a `with` block."""
    with Workers(container, folder, QUEUE) as workers:
        yield workers


def work_under_fire(container: Served, workers: Workers, chance: random.Random) -> int:
    """Kill and replaces workers until no work is left; return how many died."""
    deaths = 0
    for _ in range(WORKERS):
        workers.hire()
    while row(container, QUEUE)["ready"] > 0:
        for _ in range(WORKERS):
            time.sleep(chance.uniform(0.0, PAUSE_MAX_S))
            workers.kill_one(chance)
            workers.hire()
            deaths += 1
    within(SETTLE_TIMEOUT_S, lambda: is_idle(row(container, QUEUE)), "no item is in doubt")
    workers.dismiss()
    return deaths


def is_idle(queue: dict[str, int]) -> bool:
    """Return whether the queue is done with every item."""
    return queue["depth"] == 0 and queue["unsettled"] == 0 and queue["in-doubt"] == 0


def fill(container: Served, folder: Path) -> set[str]:
    """Put all items into the queue; return their ids."""
    items = [str(number) for number in range(ITEMS)]
    lines = folder / "items"
    lines.write_text("".join(f"{item}\n" for item in items))
    container.run("send", container.url, QUEUE, "--file", str(lines), "--durable")
    assert row(container, QUEUE)["depth"] == ITEMS
    return set(items)


def parked(container: Served) -> list[str]:
    """Take all parked items; return their ids, once each has said why it is there."""
    count = container.address(PARKED)["depth"]
    if count == 0:
        return []
    printed = container.run("receive", container.url, PARKED, "--count", str(count), "--json")
    messages = [json.loads(line) for line in printed.splitlines()]
    reasons = collections.Counter(
        (
            it["message_annotations"]["x-opt-dead-letter-reason"],
            it["message_annotations"]["x-opt-dead-letter-source"],
        )
        for it in messages
    )
    assert reasons == {("in-doubt", QUEUE): count}
    return [message["body"] for message in messages]


@pytest.fixture
def chance() -> random.Random:
    """Random numbers from a seed that a failure shows."""
    return chance_of(sys.stdout)


@pytest.mark.timeout(600)
def test_every_item_is_done_once_or_parked(tmp_path: Path, chance: random.Random) -> None:
    """The policy of `work/…`: nothing is done twice."""
    with served(tmp_path, CONFIGURATION % "park") as container:
        items = fill(container, tmp_path)
        began_s = time.monotonic()
        with working(container, tmp_path) as workers:
            deaths = work_under_fire(container, workers, chance)
            book = Book.of(tmp_path)
        took_s = time.monotonic() - began_s
        queue = row(container, QUEUE)
        kept = collections.Counter(parked(container))
    sys.stdout.write(
        f"park: {ITEMS} items, {deaths} workers killed, {took_s:.1f} s: {queue['accepted']} "
        f"accepted, {book.confirmed.total()} of them confirmed to a worker that lived to hear it, "
        f"{kept.total()} parked, of which {len(kept.keys() & book.taken.keys())} had been taken\n"
    )
    done = items - kept.keys()
    assert done - book.taken.keys() == set(), "lost: neither taken nor parked"
    assert queue["accepted"] == len(done)
    assert queue["doubts-parked"] == kept.total()
    assert twice(book.confirmed) == []
    assert 0 <= queue["accepted"] - book.confirmed.total() <= deaths * CREDIT
    assert twice(kept) == []
    assert book.again(marked=True) + book.again(marked=False) == 0, "done twice"
    assert book.confirmed.keys() & kept.keys() == set(), "confirmed, and yet parked"
    assert kept.total() <= deaths * CREDIT, "parked without a death"


@pytest.mark.timeout(600)
def test_every_item_is_done_and_says_when_it_comes_again(
    tmp_path: Path, chance: random.Random
) -> None:
    """The policy of `queue/…`: at least once, and what may have been done before says so."""
    with served(tmp_path, CONFIGURATION % "redeliver") as container:
        items = fill(container, tmp_path)
        began_s = time.monotonic()
        with working(container, tmp_path) as workers:
            deaths = work_under_fire(container, workers, chance)
            book = Book.of(tmp_path)
        took_s = time.monotonic() - began_s
        queue = row(container, QUEUE)
        kept = parked(container)
    sys.stdout.write(
        f"redeliver: {ITEMS} items, {deaths} workers killed, {took_s:.1f} s: {queue['accepted']} "
        f"accepted, {book.confirmed.total()} of them confirmed to a worker that lived to hear it, "
        f"{book.again(marked=True)} taken again and marked\n"
    )
    assert items - book.taken.keys() == set(), "lost"
    assert queue["accepted"] == ITEMS
    assert kept == []
    assert twice(book.confirmed) == []
    assert 0 <= queue["accepted"] - book.confirmed.total() <= deaths * CREDIT
    assert book.again(marked=False) == 0, "came again without a mark"
    assert book.again(marked=True) <= deaths * CREDIT, "came again without a death"
