"""A queue on disk, while its container is killed and restarted under load.

Publishers write down what was accepted, workers what they took and what was confirmed to them.
Afterwards: what was accepted was taken or is parked, nothing was confirmed twice, and nothing was
taken again without a mark.
"""

from __future__ import annotations

import collections
import json
import os
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from .ledgers import Book, Workers, chance_of, row, twice
from .meshes import Member, meshed
from .publishers import Publishers
from .served import within

if TYPE_CHECKING:
    import random
    from pathlib import Path

QUEUE, PARKED = "work/ledger", "queue/ledger.parked"
ITEMS = int(os.environ.get("COGWORK_DISK_ITEMS", "9000"))
WORKERS = 4
SETTLE_TIMEOUT_S = 60.0

CONFIGURATION = f"""
[[queue]]
address = "{QUEUE}"
durability = "disk"
in_doubt = "%s"
in_doubt_timeout_s = 1.0
dead_letter = "{PARKED}"

[[queue]]
address = "{PARKED}"
durability = "disk"
"""


def disturb(member: Member, crew: Workers, chance: random.Random) -> str:
    """Kill a worker, or the container; whoever was killed is replaced."""
    time.sleep(chance.uniform(0.0, 0.6))
    if chance.random() < 0.6:
        crew.kill_one(chance)
        crew.hire()
        return "worker killed"
    member.kill()
    time.sleep(chance.uniform(0.0, 0.3))
    member.start()
    within(SETTLE_TIMEOUT_S, member.listens, "the container listens")
    if chance.random() < 0.5:
        crew.replace()
        return "container and workers killed"
    return "container killed"


def is_idle(member: Member) -> bool:
    queue = row(member.served, QUEUE)
    return queue["depth"] == 0


def taken_out(member: Member) -> list[str]:
    """Empty the dead-letter queue; return the items."""
    count = member.served.address(PARKED)["depth"]
    if count == 0:
        return []
    printed = member.served.run("receive", member.url, PARKED, "--count", str(count), "--json")
    return [json.loads(line)["body"] for line in printed.splitlines()]


@pytest.mark.timeout(300 + ITEMS // 100)
@pytest.mark.parametrize("policy", ["park", "redeliver"])
def test_what_was_accepted_outlives_every_kill(tmp_path: Path, policy: str) -> None:
    """The promise of a queue on disk."""
    chance = chance_of(sys.stdout)
    events: collections.Counter[str] = collections.Counter()
    with ExitStack() as stack:
        members = stack.enter_context(
            meshed(
                tmp_path,
                ["box"],
                [],
                CONFIGURATION % policy,
                head=lambda name: f'data_dir = "{tmp_path}/{name}"\n',
            )
        )
        member = members["box"]
        publishers = stack.enter_context(Publishers(member.url, tmp_path, QUEUE, ITEMS))
        crew = stack.enter_context(Workers(member.served, tmp_path, QUEUE))
        for _ in range(WORKERS):
            crew.hire()
        within(SETTLE_TIMEOUT_S, lambda: publishers.have_begun, "every publisher begins")
        while not publishers.are_done or "container killed" not in events:
            events[disturb(member, crew, chance)] += 1
        crew.replace()
        within(SETTLE_TIMEOUT_S, lambda: is_idle(member), "every item is done with")
        crew.dismiss()
        said = publishers.said()
        parked = collections.Counter(taken_out(member))
    book = Book.of(tmp_path)
    sys.stdout.write(
        f"{policy}: {dict(events)}: {len(said['accepted'])} accepted, {len(said['doubt'])} in doubt"
        f" of {ITEMS}; {len(book.taken)} taken, {book.confirmed.total()} confirmed to a worker that"
        f" lived to hear it, {parked.total()} parked, {book.again(marked=True)} taken again and"
        " marked\n"
    )
    seen = book.taken.keys() | parked.keys()
    assert len(said["accepted"]) + len(said["doubt"]) == ITEMS // 3 * 3
    assert said["accepted"] - seen == set(), "lost: accepted, and neither taken nor parked"
    assert seen <= said["accepted"] | said["doubt"], "invented"
    assert twice(parked) == [], "parked twice"
    book.check(policy, parked)
