"""A stream that takes more at once than its retention keeps."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from cogwork.container.vhost.engines import EngineHosts, VhostEngines
from cogwork.nodes.stream import StreamNode
from cogwork.plugin.engine.batch import Batch
from cogwork.plugin.loopback import Loopback

if TYPE_CHECKING:
    from cogwork.plugin.node import NodeContext

KEPT = {"engine": "orb", "retention_records": 10}
STREAM = "stream/small"


def kept_small(context: NodeContext) -> StreamNode:
    return StreamNode(replace(context, options=KEPT, engines=VhostEngines(EngineHosts("x"), "")))


async def turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_what_retention_gives_up_before_it_is_seen_is_no_problem() -> None:
    async def story() -> None:
        loop = Loopback(kept_small, STREAM)
        node = cast("StreamNode", loop.node)
        await turns()
        assert node.engine is not None
        record = Batch.of([b"x"])
        answers = [node.engine.append(record) for _ in range(50)]
        await asyncio.gather(*answers)
        await asyncio.sleep(0.2)
        await node.engine.append(record)
        await turns()
        assert node.status()["bytes_in"] == len(record.payload), "the last one, and no other"
        assert loop.reports == []
        loop.close()

    asyncio.run(story())
