"""Dead letters that die again elsewhere: what they say of their first death."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

import pytest

import cogwork

from .meshes import linked, meshed
from .served import within

if TYPE_CHECKING:
    from pathlib import Path

    from .meshes import Member

WORK, LATER, GRAVE = "work/a", "queue/later", "queue/grave"
CLOCK_STEP = timedelta(milliseconds=1)
"""A time is told in whole milliseconds."""

CONFIGURATION = f"""
[[queue]]
address = "{WORK}"
durability = "%(durability)s"
dead_letter = "{LATER}"

[[queue]]
address = "{LATER}"
durability = "%(durability)s"
ttl_s = %(ttl_s)s
dead_letter = "{GRAVE}"

[[queue]]
address = "{GRAVE}"
durability = "%(durability)s"
"""


async def die(members: dict[str, Member]) -> datetime:
    """Have an item rejected; return when it was alive."""
    async with cogwork.connect(members["a"].url) as client:
        await client.publish(WORK, "x")
    async with cogwork.connect(members["c"].url) as client, client.consume(WORK) as items:
        async with asyncio.timeout(30):
            item = await anext(items)
        alive = datetime.now(UTC)
        await item.reject("no")
    return alive


async def last_dead_letter(url: str) -> cogwork.Message:
    async with cogwork.connect(url) as client, client.consume(GRAVE) as items:
        async with asyncio.timeout(60):
            item = await anext(items)
        await item.accept()
    return item


@pytest.mark.parametrize("durability", ["memory", "disk", "replicated"])
def test_a_dead_letter_tells_its_first_death_and_its_last(tmp_path: Path, durability: str) -> None:
    def head(name: str) -> str:
        kept = f'data_dir = "{tmp_path}/{name}"\n' if durability != "memory" else ""
        voters = '[cluster]\nvoters = ["a", "b", "c"]\n' if durability == "replicated" else ""
        return kept + voters

    # Long enough to kill whoever has the dead letter while it waits.
    ttl_s = 0.3 if durability == "memory" else 6.0
    configuration = CONFIGURATION % {"durability": durability, "ttl_s": ttl_s}
    edges = ["ab", "bc", "ca"]
    with meshed(tmp_path, "abc", edges, configuration, head=head) as members:
        linked(members.values())
        alive = asyncio.run(die(members))
        if durability != "memory":
            within(30.0, partial(waits, members), "the first letter waits")
            for member in members.values():
                member.kill()
            for member in members.values():
                member.start()
            linked(members.values())
        said = asyncio.run(last_dead_letter(members["b"].url)).annotations
        dead_twice = datetime.now(UTC)
    assert (said["x-opt-dead-letter-source"], said["x-opt-dead-letter-reason"]) == (
        LATER,
        "expired",
    )
    assert said["x-opt-first-dead-letter-source"] == WORK
    assert said["x-opt-first-dead-letter-reason"] == "rejected"
    died = said["x-opt-first-dead-letter-time"]
    assert isinstance(died, datetime)
    assert alive - CLOCK_STEP <= died <= dead_twice - timedelta(seconds=ttl_s) + CLOCK_STEP
    assert said["x-opt-dead-letter-count"] == 2


def waits(members: dict[str, Member]) -> bool:
    """Return whether the dead letter is in the queue that it waits in, and nowhere else."""
    rows = [row for member in members.values() for row in member.served.status()["queues"]]
    kept = [row["depth"] for row in rows if row["address"] == LATER]
    return sum(kept) == 1 and not any(r["leaving"] for r in rows if r["address"] == WORK)
