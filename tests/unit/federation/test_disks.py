"""Which containers keep a queue on disk, and what they tell each other of it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from cogwork.container.federation.disks import Disks
from cogwork.router.addresses import AddressRule
from cogwork.router.mesh.messages import Interest, InterestKind

QUEUE = "queue/a"
HAS_IT, WOULD, NEITHER = (1, 0), (0, 1), (0, 0)


class Side:
    """A container whose rules keep queues on disk, and that has none of its own."""

    def __init__(self, *others: str) -> None:
        self.told: list[tuple[int, int]] = []
        routes = SimpleNamespace(next_hops=dict.fromkeys(others, ""))
        mesh = SimpleNamespace(set_interest=self._take, mesh=SimpleNamespace(routes=routes))
        rule = AddressRule(prefix="queue", kind="queue", options={"durability": "disk"})
        vhost = SimpleNamespace(name="", nodes={}, rule_of=lambda address: (address, rule))
        self.disks = Disks(cast("Any", mesh), cast("Any", vhost))

    def _take(self, interest: Interest) -> None:
        assert interest[:3] == (InterestKind.DISK, "", QUEUE)
        self.told.append((interest.consumers, interest.producers))


def says(figures: tuple[int, int]) -> Interest:
    return Interest(InterestKind.DISK, "", QUEUE, *figures)


async def hear(side: Side, container: str, figures: tuple[int, int]) -> None:
    if figures == NEITHER:
        side.disks.lose_interest(container, says(HAS_IT))
    else:
        side.disks.take_interest(container, says(figures))
    await asyncio.sleep(0)


def test_who_would_keep_a_queue_says_so_while_somebody_has_it() -> None:
    async def story() -> None:
        side = Side("b", "c")
        await hear(side, "b", HAS_IT)
        assert side.told == [WOULD]
        await hear(side, "c", WOULD)
        await hear(side, "b", NEITHER)
        assert side.told == [WOULD, NEITHER], "two that only would do not keep each other saying it"

    asyncio.run(story())


def test_many_containers_are_counted() -> None:
    async def story() -> None:
        side = Side(*"bcdefgh")
        await hear(side, "h", WOULD)
        said = "not on disk at containers b, c, d, e, f and 1 more"
        assert side.disks.problem(QUEUE, "disk") == said
        assert side.disks.problem(QUEUE, "memory") == "in memory here, on disk at container h"
        assert side.disks.problem(QUEUE, "replicated") is None

    asyncio.run(story())
