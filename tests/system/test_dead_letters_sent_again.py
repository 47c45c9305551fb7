"""Dead letters of a queue on disk, whose container is killed while they are on their way.

What was accepted and is not yet noted as accepted is sent again after the restart: the dead-letter
queue takes it once all the same.
"""

from __future__ import annotations

import collections
import json
import sys
import time
from typing import TYPE_CHECKING

import pytest

from .ledgers import chance_of, row, twice
from .meshes import Member, meshed
from .publishers import Publishers
from .served import within

if TYPE_CHECKING:
    from pathlib import Path

QUEUE, DEAD = "queue/orders", "queue/orders.dead"
ITEMS = 15_000
KILLS = 8
TIMEOUT_S = 60.0
CONFIGURATION = f"""
[[queue]]
address = "{QUEUE}"
durability = "disk"
ttl_s = 0.05
dead_letter = "{DEAD}"

[[queue]]
address = "{DEAD}"
durability = "disk"
"""


def left(member: Member) -> int:
    queue = row(member.served, QUEUE)
    return queue["depth"] + queue["leaving"]


def restarted(member: Member) -> None:
    member.kill()
    member.start()
    within(TIMEOUT_S, member.listens, "the container listens")


@pytest.mark.timeout(240)
def test_each_dead_letter_arrives_once_however_often_its_container_is_killed(
    tmp_path: Path,
) -> None:
    chance = chance_of(sys.stdout)
    head = f'data_dir = "{tmp_path}/data"\n'
    with meshed(tmp_path, ["box"], [], CONFIGURATION, head=lambda _name: head) as members:
        member = members["box"]
        with Publishers(member.url, tmp_path, QUEUE, ITEMS) as publishers:
            within(TIMEOUT_S, lambda: publishers.have_begun, "every publisher begins")
            for _ in range(KILLS):
                time.sleep(chance.uniform(0.1, 0.5))
                restarted(member)
            within(TIMEOUT_S, lambda: publishers.are_done, "every publisher is done")
            said = publishers.said()
        within(TIMEOUT_S, lambda: left(member) == 0, "all letters are accepted")
        depth = str(row(member.served, DEAD)["depth"])
        printed = member.served.run("receive", member.url, DEAD, "--count", depth, "--json")
    dead_letters = collections.Counter(json.loads(line)["body"] for line in printed.splitlines())
    sys.stdout.write(f"{len(said['accepted'])} accepted, {len(said['doubt'])} in doubt\n")
    assert twice(dead_letters) == [], "dead-lettered twice"
    assert said["accepted"] - dead_letters.keys() == set(), "lost"
    assert dead_letters.keys() <= said["accepted"] | said["doubt"], "invented"
