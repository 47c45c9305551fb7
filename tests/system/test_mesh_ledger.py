"""Work over four containers, while consumers and the containers between are killed and stopped.

Two containers take the items in and stay, but for being stopped now and then; the other two have
consumers only, and are killed. Each worker writes an item's id to its own file, waits for the disk,
and only then accepts. Afterwards the ledgers tell: nothing is lost, nothing is confirmed twice.
"""

from __future__ import annotations

import collections
import os
import signal
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from .ledgers import Book, Workers, chance_of, row, twice
from .meshes import Member, linked, meshed
from .served import within

if TYPE_CHECKING:
    import random
    from pathlib import Path

QUEUE, PARKED = "work/ledger", "queue/ledger.parked"
ITEMS = int(os.environ.get("COGWORK_MESH_ITEMS", "6000"))
OWNERS, TRANSIT = ("a", "b"), ("t", "u")
EDGES = [("a", "t"), ("t", "b"), ("b", "u"), ("u", "a")]
WORKERS_EACH = 3
EVENTS = 5
"""Between two looks at what is left, which take their time too."""

SETTLE_TIMEOUT_S = 60.0
CONFIGURATION = f"""
[[queue]]
address = "{QUEUE}"
in_doubt = "%s"
in_doubt_timeout_s = 1.0
dead_letter = "{PARKED}"
"""


def fill(owner: Member, folder: Path, items: list[str]) -> None:
    """Put items into the queue by one container."""
    lines = folder / f"items-{owner.id}"
    lines.write_text("".join(f"{item}\n" for item in items))
    owner.served.run("send", owner.url, QUEUE, "--file", str(lines), "--durable")


def left(owners: list[Member]) -> dict[str, int]:
    """Add up what the owners' shards say of themselves."""
    total: collections.Counter[str] = collections.Counter()
    for owner in owners:
        total.update({key: value for key, value in row(owner.served, QUEUE).items() if key in KEYS})
    return dict(total)


KEYS = ("depth", "ready", "unsettled", "in-doubt", "accepted", "doubts-parked")


def disturb(members: dict[str, Member], crews: dict[str, Workers], chance: random.Random) -> str:
    """Kill or stops somebody; whoever was killed is replaced."""
    kind = chance.random()
    pause_s = chance.uniform(0.05, 1.2)
    if kind < 0.7:
        crew = crews[chance.choice(list(crews))]
        crew.kill_one(chance)
        crew.hire()
        time.sleep(chance.uniform(0.0, 0.1))
        return "worker killed"
    member = members[chance.choice(TRANSIT if kind < 0.9 else OWNERS)]
    if kind < 0.8:
        member.kill()
        time.sleep(pause_s)
        member.start()
        within(SETTLE_TIMEOUT_S, member.listens, f"{member.id} listens")
        crews[member.id].replace()
        return "container killed"
    member.signal(signal.SIGSTOP)
    time.sleep(2 * pause_s)
    member.signal(signal.SIGCONT)
    return "container stopped"


@pytest.mark.timeout(300 + ITEMS // 100)
@pytest.mark.parametrize("policy", ["park", "redeliver"])
def test_no_item_is_lost_or_confirmed_twice(tmp_path: Path, policy: str) -> None:
    """The promise of the distributed queue."""
    chance = chance_of(sys.stdout)
    events: collections.Counter[str] = collections.Counter()
    items = [str(number) for number in range(ITEMS)]
    with (
        meshed(tmp_path, (*OWNERS, *TRANSIT), EDGES, CONFIGURATION % policy) as members,
        ExitStack() as stack,
    ):
        owners = [members[name] for name in OWNERS]
        linked(members.values())
        fill(owners[0], tmp_path, items[: ITEMS // 2])
        fill(owners[1], tmp_path, items[ITEMS // 2 :])
        crews = {
            name: stack.enter_context(Workers(member.served, tmp_path, QUEUE, prefix=name))
            for name, member in members.items()
        }
        for crew in crews.values():
            for _ in range(WORKERS_EACH):
                crew.hire()
        began_s = time.monotonic()
        while left(owners)["ready"] > 0:
            for _ in range(EVENTS):
                events[disturb(members, crews, chance)] += 1
        within(SETTLE_TIMEOUT_S, lambda: left(owners)["depth"] == 0, "every item is done with")
        took_s = time.monotonic() - began_s
        for crew in crews.values():
            crew.dismiss()
        book = Book.of(tmp_path)
        counts = left(owners)
        parked = sum(owner.served.address(PARKED)["depth"] for owner in owners)
    sys.stdout.write(
        f"{policy}: {ITEMS} items, {took_s:.1f} s, {dict(events)}: {counts['accepted']} accepted, "
        f"{book.confirmed.total()} of them confirmed to a worker that lived to hear it, {parked} "
        f"parked, {book.again(marked=True)} taken again and marked\n"
    )
    assert counts["accepted"] + parked == ITEMS
    assert twice(book.confirmed) == [], "confirmed twice"
    assert book.confirmed.total() <= counts["accepted"], "confirmed, and not accepted"
    assert book.again(marked=False) == 0, "taken again without a mark"
    assert len(set(items) - book.taken.keys()) <= parked, "lost: neither taken nor parked"
    if policy == "park":
        assert book.again(marked=True) == 0, "done twice"
    else:
        assert parked == 0
