"""How quickly a stream grows, as people are shown it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import cogwork
from cogwork.testing import container

from .stories import story
from .stream_records import row_of

if TYPE_CHECKING:
    from pathlib import Path

COUNT = 3_000
LOOKS = 30
"""For three seconds: the rate is measured once in each."""


async def rates(client: cogwork.Client, until: int) -> int:
    """Look at the rate for a while, or until it is so high; return the highest one."""
    seen = 0
    for _ in range(LOOKS):
        seen = max(seen, int((await row_of(client, "kept"))["records_per_s"]))
        if seen >= until:
            break
        await asyncio.sleep(0.1)
    return seen


@story
async def test_what_is_there_after_a_restart_has_not_just_come(tmp_path: Path) -> None:
    text = f'data_dir = "{tmp_path}/data"\n[[stream]]\naddress = "stream/kept"\nengine = "raft"\n'
    async with container(text) as url, cogwork.connect(url) as client:
        await client.stream("kept").append(range(COUNT))
        assert await rates(client, until=1) > 0
    async with container(text) as url, cogwork.connect(url) as client:
        assert await rates(client, until=COUNT) == 0
        assert (await row_of(client, "kept"))["next"] == COUNT
        await client.stream("kept").append(range(COUNT))
        assert await rates(client, until=1) > 0
