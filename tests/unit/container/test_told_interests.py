"""Who waits until neighbours know what is wanted here, and for how long."""

from __future__ import annotations

import asyncio

from cogwork.container.mesh.told_interests import LONGEST_S, ToldInterests


def test_who_waits_goes_on_when_the_neighbours_know() -> None:
    async def run() -> None:
        is_known = False
        told = ToldInterests(lambda: is_known)
        waiting = [asyncio.create_task(told.when_known()) for _ in range(3)]
        done, _ = await asyncio.wait(waiting, timeout=LONGEST_S / 10)
        assert done == set()
        is_known = True
        await asyncio.wait_for(asyncio.gather(*waiting), 5)
        await asyncio.wait_for(told.when_known(), 5)

    asyncio.run(run())


def test_a_neighbour_that_never_answers_holds_nobody_up_for_long() -> None:
    async def run() -> None:
        told = ToldInterests(lambda: False)
        begun_s = asyncio.get_running_loop().time()
        await asyncio.wait_for(asyncio.gather(told.when_known(), told.when_known()), 20)
        assert asyncio.get_running_loop().time() - begun_s >= LONGEST_S * 0.9
        await asyncio.wait_for(told.when_known(), 20)

    asyncio.run(run())
