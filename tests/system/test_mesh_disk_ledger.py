"""The distributed queue on disk, while the owners of its shards are killed and restarted, too."""

from __future__ import annotations

import collections
import json
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
ITEMS = int(os.environ.get("COGWORK_MESH_DISK_ITEMS", "8000"))
OWNERS, TRANSIT = ("a", "b"), ("t",)
EDGES = [("a", "t"), ("t", "b"), ("a", "b")]
WORKERS_EACH = 2
EVENTS = 4
SETTLE_TIMEOUT_S = 90.0
CONFIGURATION = f"""
[[queue]]
address = "{QUEUE}"
durability = "disk"
in_doubt = "%s"
in_doubt_timeout_s = 2.0
dead_letter = "{PARKED}"

[[queue]]
address = "{PARKED}"
durability = "disk"
"""


def depth(owners: list[Member], key: str = "depth") -> int:
    return sum(row(owner.served, QUEUE)[key] for owner in owners)


def disturb(members: dict[str, Member], crews: dict[str, Workers], chance: random.Random) -> str:
    """Kill or stops somebody; whoever was killed is replaced."""
    kind = chance.random()
    if kind < 0.5:
        crew = crews[chance.choice(list(crews))]
        crew.kill_one(chance)
        crew.hire()
        time.sleep(chance.uniform(0.0, 0.2))
        return "worker killed"
    member = members[chance.choice(list(members))]
    if kind < 0.85:
        member.kill()
        time.sleep(chance.uniform(0.05, 1.0))
        member.start()
        within(SETTLE_TIMEOUT_S, member.listens, f"{member.id} listens")
        crews[member.id].replace()
        return "owner killed" if member.id in OWNERS else "container killed"
    member.signal(signal.SIGSTOP)
    time.sleep(chance.uniform(0.1, 2.0))
    member.signal(signal.SIGCONT)
    return "container stopped"


def parked_at(owner: Member) -> list[str]:
    count = owner.served.address(PARKED)["depth"]
    if count == 0:
        return []
    printed = owner.served.run(
        "receive", owner.url, PARKED, "--count", str(count), "--timeout", "5", "--json"
    )
    return [json.loads(line)["body"] for line in printed.splitlines()]


@pytest.mark.timeout(300 + ITEMS // 100)
@pytest.mark.parametrize("policy", ["park", "redeliver"])
def test_no_item_is_lost_or_confirmed_twice(tmp_path: Path, policy: str) -> None:
    """The promise of the distributed queue, with owners that are killed and come back."""
    chance = chance_of(sys.stdout)
    events: collections.Counter[str] = collections.Counter()
    items = [str(number) for number in range(ITEMS)]
    with ExitStack() as stack:
        members = stack.enter_context(
            meshed(
                tmp_path,
                (*OWNERS, *TRANSIT),
                EDGES,
                CONFIGURATION % policy,
                head=lambda name: f'data_dir = "{tmp_path}/{name}"\n',
            )
        )
        owners = [members[name] for name in OWNERS]
        linked(members.values())
        for owner, part in zip(owners, (items[::2], items[1::2]), strict=True):
            lines = tmp_path / f"items-{owner.id}"
            lines.write_text("".join(f"{item}\n" for item in part))
            owner.served.run("send", owner.url, QUEUE, "--file", str(lines), "--durable")
        crews = {
            name: stack.enter_context(Workers(member.served, tmp_path, QUEUE, prefix=name))
            for name, member in members.items()
        }
        for crew in crews.values():
            for _ in range(WORKERS_EACH):
                crew.hire()
        began_s = time.monotonic()
        while depth(owners, "ready") > 0:
            for _ in range(EVENTS):
                events[disturb(members, crews, chance)] += 1
        for crew in crews.values():
            crew.replace()
        within(SETTLE_TIMEOUT_S, lambda: depth(owners) == 0, "every item is done with")
        took_s = time.monotonic() - began_s
        parked = collections.Counter(each for owner in owners for each in parked_at(owner))
    book = Book.of(tmp_path)
    sys.stdout.write(
        f"{policy}: {ITEMS} items, {took_s:.1f} s, {dict(events)}: {len(book.taken)} taken, "
        f"{book.confirmed.total()} confirmed to a worker that lived to hear it, {parked.total()} "
        f"parked, of which {len(parked.keys() & book.taken.keys())} had been taken, "
        f"{book.again(marked=True)} taken again and marked\n"
    )
    assert set(items) - (book.taken.keys() | parked.keys()) == set(), "lost"
    assert twice(parked) == [], "parked twice"
    book.check(policy, parked)
