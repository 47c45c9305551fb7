"""A queue with a home, while that and workers are killed: publishers and workers are elsewhere.

The same ledgers as of one container (`test_basic_ledger`): what was confirmed was taken, nothing
was acknowledged twice, nothing taken again without the mark of it.
"""

from __future__ import annotations

import collections
import os
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from .basic_clients import basic_channel
from .ledgers import chance_of, row
from .meshes import Member, linked, meshed
from .served import within
from .test_basic_ledger import EXCHANGE, QUEUE, SETTLE_TIMEOUT_S, Crew, entries

if TYPE_CHECKING:
    import random
    from pathlib import Path

ITEMS = int(os.environ.get("COGWORK_HOMED_LEDGER_ITEMS", "3000"))
PUBLISHERS, WORKERS = 2, 3
CONFIGURATION = (
    f'[[queue]]\naddress = "queue/{QUEUE}"\nhome = "a"\n'
    f'[[exchange]]\nname = "{EXCHANGE}"\ntype = "topic"\n'
    f'[[binding]]\nsource = "{EXCHANGE}"\ndestination = "queue/{QUEUE}"\nkey = "item.*"\n'
)


def disturb(home: Member, crew: Crew, chance: random.Random) -> str:
    """Kill a worker, or the home; whoever was killed is replaced."""
    time.sleep(chance.uniform(0.0, 0.6))
    if chance.random() < 0.5:
        crew.kill_one(chance)
        crew.hire()
        return "worker killed"
    home.kill()
    time.sleep(chance.uniform(0.0, 0.3))
    home.start()
    within(SETTLE_TIMEOUT_S, home.listens, "the home listens")
    return "home killed"


@pytest.mark.timeout(300 + ITEMS // 50)
def test_what_was_confirmed_elsewhere_outlives_every_kill_of_the_home(tmp_path: Path) -> None:
    chance = chance_of(sys.stdout)
    events: collections.Counter[str] = collections.Counter()

    def head(name: str) -> str:
        return f'data_dir = "{tmp_path}/{name}"\n'

    with ExitStack() as stack:
        members = stack.enter_context(
            meshed(tmp_path, "abc", ["ab", "bc", "ca"], CONFIGURATION, head=head)
        )
        linked(members.values())
        publishing = stack.enter_context(Crew(members["b"].port, tmp_path))
        working = stack.enter_context(Crew(members["c"].port, tmp_path))
        for _ in range(WORKERS):
            working.hire()
        publishing.publish(ITEMS)
        while not publishing.are_published or events["home killed"] < 2:
            events[disturb(members["a"], working, chance)] += 1
        within(
            SETTLE_TIMEOUT_S,
            lambda: row(members["a"].served, f"queue/{QUEUE}")["depth"] == 0,
            "every item is done with",
        )
        working.dismiss()
        with basic_channel(members["b"].served) as channel:
            assert channel.queue_declare(QUEUE, passive=True).method.message_count == 0
    said = collections.defaultdict(set)
    for what, *item in entries(tmp_path, "publisher"):
        said[what].update(item)
    taken: dict[str, list[str]] = collections.defaultdict(list)
    confirmed: collections.Counter[str] = collections.Counter()
    for what, *facts in entries(tmp_path, "worker"):
        if what == "taken":
            taken[facts[0]].append(facts[1])
        elif what == "confirmed":
            confirmed[facts[0]] += 1
    again = [item for item, marks in taken.items() if len(marks) > 1]
    sys.stdout.write(
        f"{dict(events)}: {len(said['accepted'])} confirmed, {len(said['doubt'])} in doubt of"
        f" {ITEMS}; {len(taken)} taken, {len(again)} of them again; {confirmed.total()} known to be"
        " acknowledged\n"
    )
    assert said["doubt"] == set(), "the home was back in time"
    assert len(said["accepted"]) == ITEMS // PUBLISHERS * PUBLISHERS
    assert said["accepted"] - taken.keys() == set(), "lost: confirmed, and not taken"
    assert taken.keys() <= said["accepted"], "invented"
    assert [item for item, count in confirmed.items() if count > 1] == [], "acknowledged twice"
    unmarked = [item for item in again if taken[item].count("0") > 1]
    assert unmarked == [], "taken again without a mark"
    assert [item for item, count in confirmed.items() if count > 1] == [], "acknowledged twice"
