"""A stream of this container's own engine, as other containers are served it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from cogwork.engines.orb import OrbHost
from cogwork.plugin.engine.batch import Batch
from cogwork.plugin.engine.commands import Append, Fence
from cogwork.plugin.engine.sequencer import encode
from cogwork.replication.calls import Failed, Place, Proposal, StreamKey
from cogwork.replication.proxied_engine import ProxiedEngine

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from cogwork.plugin.engine.contract import Appended, Engine


class Broken:
    """A stream that fails at what nobody expects: at a fence, and at one batch."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> object:
        return getattr(self._engine, name)

    async def fence(self) -> int:
        raise RuntimeError("no fence")

    def append(self, batch: Batch, epoch: int | None = None) -> Awaitable[Appended]:
        appended = self._engine.append(batch, epoch)
        return self._lost(appended) if next(batch.records()) == b"lost" else appended

    async def _lost(self, appended: Awaitable[Appended]) -> Appended:
        await appended
        raise RuntimeError("lost")


@pytest.mark.parametrize(
    ("command", "why"),
    [(Fence(), "no fence"), (Append(Batch.of([b"lost"]), None, 0), "lost")],
)
def test_a_fault_at_one_command_is_told_and_the_others_are_carried_out(
    command: Fence | Append, why: str
) -> None:
    async def story() -> None:
        faults = list[str]()
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: faults.append(str(context["exception"]))
        )
        engine: Any = Broken(await OrbHost().open("s", {}))
        proxied = ProxiedEngine(engine, "a")
        answers: asyncio.Queue[Any] = asyncio.Queue()
        append = encode(Append(Batch.of([b"1"]), None, 0))
        proxied.call(Proposal(1, StreamKey("s"), [encode(command), append]), answers.put_nowait)
        proxied.call(Proposal(2, StreamKey("s"), [append]), answers.put_nowait)
        async with asyncio.timeout(30):
            told = {each.number: each.results for each in [await answers.get() for _ in range(2)]}
        assert isinstance(told[1][0], Failed)
        assert told[1][0].kind == "Unknown"
        assert f"a fault in container a: RuntimeError('{why}')" in told[1][0].text
        assert isinstance(told[1][1], Place)
        assert [type(each) for each in told[2]] == [Place]
        assert faults == [why]
        await proxied.close()

    asyncio.run(story())
