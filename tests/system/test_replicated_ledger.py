"""A replicated queue, while those who own it are killed for good, or stopped until others own it.

Publishers write down what was accepted, workers what they took and what was confirmed to them.
Afterwards: what was accepted was taken or is parked, nothing was confirmed or parked twice, and
nothing was taken again without a mark.
"""

from __future__ import annotations

import collections
import json
import math
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, cast

import pytest

from .ledgers import Book, Workers, chance_of, row, twice
from .meshes import Member, linked, meshed
from .publishers import Publishers
from .served import within

if TYPE_CHECKING:
    import random
    from pathlib import Path

QUEUE, PARKED = "work/ledger", "queue/ledger.parked"
ITEMS = int(os.environ.get("COGWORK_REPLICATED_ITEMS", "6000"))
REPLICAS = ("a", "b", "c", "d", "e")
TRANSIT = "t"
EDGES = [
    *((one, other) for one in REPLICAS for other in REPLICAS if one < other),
    *((TRANSIT, each) for each in REPLICAS),
]
KILLED_FOR_GOOD = 2
"""As many as five replicas can do without."""

SETTLE_TIMEOUT_S = 90.0
CONFIGURATION = f"""
[[queue]]
address = "{QUEUE}"
durability = "replicated"
replicas = {json.dumps(REPLICAS)}
in_doubt = "%s"
in_doubt_timeout_s = 2.0
dead_letter = "{PARKED}"

[[queue]]
address = "{PARKED}"
durability = "replicated"
replicas = {json.dumps(REPLICAS)}
"""


class Story:
    """What happens to the containers.

    Attributes:
        members: Those that live, by name.
        crews: The workers at each of them.
        events: What has happened, counted.
    """

    def __init__(self, folder: Path, members: dict[str, Member], chance: random.Random) -> None:
        self.members = dict(members)
        self.crews = {
            name: Workers(member.served, folder, QUEUE, prefix=name)
            for name, member in members.items()
        }
        self.events: collections.Counter[str] = collections.Counter()
        self._chance = chance
        for crew in self.crews.values():
            crew.hire()

    @property
    def transit(self) -> Member:
        return self.members[TRANSIT]

    def owner(self) -> Member | None:
        """Who owns the queue, as the container without a replica knows it."""
        name = row(self.transit.served, QUEUE)["owner"]
        return self.members.get(str(name))

    def depth(self) -> int | None:
        """Items in the queue; None while that is not known."""
        owner = self.owner()
        return None if owner is None else depth_at(owner, QUEUE)

    def kill_the_owner_for_good(self) -> None:
        within(SETTLE_TIMEOUT_S, lambda: self.owner() is not None, "somebody owns the queue")
        owner = self.owner()
        assert owner is not None
        owner.kill()
        self.dismiss(owner.id)
        del self.members[owner.id]
        self.events["owner killed for good"] += 1

    def disturb(self) -> None:
        """Kill a worker, or stops whoever owns the queue for a while."""
        time.sleep(self._chance.uniform(0.0, 0.4))
        owner = self.owner()
        if owner is None or self._chance.random() < 0.6:
            crew = self.crews[self._chance.choice(list(self.crews))]
            crew.kill_one(self._chance)
            crew.hire()
            self.events["worker killed"] += 1
            return
        owner.signal(signal.SIGSTOP)
        time.sleep(self._chance.uniform(0.1, 4.0))
        owner.signal(signal.SIGCONT)
        self.events["owner stopped"] += 1

    def work_off(self) -> None:
        """Wait until every item is done with, as long as they get fewer."""
        fewest, until_s = math.inf, time.monotonic() + SETTLE_TIMEOUT_S
        while fewest:
            depth = self.depth()
            if depth is not None and depth < fewest:
                fewest, until_s = depth, time.monotonic() + SETTLE_TIMEOUT_S
            assert time.monotonic() < until_s, f"{fewest} items, which do not get fewer"
            time.sleep(0.05)

    def dismiss(self, name: str) -> None:
        self.crews.pop(name).__exit__(None, None, None)

    def replace_workers(self) -> None:
        for crew in self.crews.values():
            crew.replace()


def depth_at(owner: Member, queue: str) -> int | None:
    """Items of a queue at its owner; None where that is another one by now."""
    found: dict[str, object] = dict(row(owner.served, queue))
    return cast("int", found["depth"]) if found["owner"] == owner.id else None


def keeper_of(member: Member) -> str:
    """Return who owns what is parked: the last kill may have been of its owner, too."""
    within(SETTLE_TIMEOUT_S, lambda: row(member.served, PARKED)["owner"] is not None, "an owner")
    return str(row(member.served, PARKED)["owner"])


def parked(member: Member, owner: Member) -> list[str]:
    within(SETTLE_TIMEOUT_S, lambda: depth_at(owner, PARKED) is not None, "the parked are known")
    count = depth_at(owner, PARKED)
    if not count:
        return []
    printed = member.served.run(
        "receive", member.url, PARKED, "--count", str(count), "--timeout", "20", "--json"
    )
    return [json.loads(line)["body"] for line in printed.splitlines()]


@pytest.mark.timeout(300 + ITEMS // 50)
@pytest.mark.parametrize("policy", ["park", "redeliver"])
def test_what_was_accepted_outlives_its_owners(tmp_path: Path, policy: str) -> None:
    """The promise of a replicated queue."""
    chance = chance_of(sys.stdout)
    voters = f"[cluster]\nprimaries = {json.dumps(REPLICAS)}\n"

    def head(name: str) -> str:
        return voters if name == TRANSIT else f'data_dir = "{tmp_path}/{name}"\n{voters}'

    names = (*REPLICAS, TRANSIT)
    with meshed(tmp_path, names, EDGES, CONFIGURATION % policy, head=head) as members:
        linked(members.values())
        story = Story(tmp_path, members, chance)
        within(SETTLE_TIMEOUT_S, lambda: story.owner() is not None, "somebody owns the queue")
        with Publishers(story.transit.url, tmp_path, QUEUE, ITEMS) as publishers:
            within(SETTLE_TIMEOUT_S, lambda: publishers.have_begun, "every publisher begins")
            for _ in range(KILLED_FOR_GOOD):
                for _ in range(3):
                    story.disturb()
                story.kill_the_owner_for_good()
            while not publishers.are_done:
                story.disturb()
            story.replace_workers()
            story.work_off()
            said = publishers.said()
        for name in list(story.crews):
            story.dismiss(name)
        left = collections.Counter(parked(story.transit, members[keeper_of(story.transit)]))
    check(tmp_path, policy, said, left, story.events)


def check(
    folder: Path,
    policy: str,
    said: dict[str, set[str]],
    left: collections.Counter[str],
    events: collections.Counter[str],
) -> None:
    book = Book.of(folder)
    sys.stdout.write(
        f"{policy}: {dict(events)}: {len(said['accepted'])} accepted, {len(said['doubt'])} in doubt"
        f" of {ITEMS}; {len(book.taken)} taken, {book.confirmed.total()} confirmed to a worker that"
        f" lived to hear it, {left.total()} parked, of which {len(left.keys() & book.taken.keys())}"
        f" had been taken, {book.again(marked=True)} taken again and marked\n"
    )
    seen = book.taken.keys() | left.keys()
    assert events["owner killed for good"] == KILLED_FOR_GOOD
    assert len(said["accepted"]) + len(said["doubt"]) == ITEMS // 3 * 3
    assert said["accepted"] - seen == set(), "lost: accepted, and neither taken nor parked"
    assert seen <= said["accepted"] | said["doubt"], "invented"
    assert twice(left) == [], "parked twice"
    book.check(policy, left)
