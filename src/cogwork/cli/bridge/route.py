"""One way from a queue to a queue: takes, sends, settles, and begins anew after each loss."""

from __future__ import annotations

import asyncio
import logging
import random
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cogwork.cli.bridge.contract import Lost, Stopped
from cogwork.client import Retry

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.cli.bridge.contract import Source, Taken, Target

__all__ = ("Counters", "Route")

RETRY = Retry(first_s=0.2, longest_s=5.0)

OPEN_S = 15.0
"""How long both ends may take to be connected."""

CLOSE_S = 8.0
"""How long an end may take to let go; what it holds goes back by itself."""

DRAIN_S = 20.0
"""How long a route may take to finish what it has begun, once it is to stop."""

SETTLED_S = 10.0
"""A route that has stood for so long begins with the first pause again."""

log = logging.getLogger("cogwork")


@dataclass(slots=True)
class Counters:
    """What a route has done.

    Attributes:
        moved: Messages that the target has confirmed and the source was told of.
        sent_again: Messages that the target did not take, or that may come twice.
        connections: How often both ends were connected.
        state: `connecting`, `running`, `waiting` after a loss, `stopped` or `failed`.
        problem: What went wrong last; empty for nothing.
    """

    moved: int = 0
    sent_again: int = 0
    connections: int = 0
    state: str = "connecting"
    problem: str = field(default="")


class Route:
    """Moves messages until it is stopped, or cannot go on.

    Attributes:
        name: What messages say that they have come by.
        title: What people are told.
        counters: What it has done.
    """

    def __init__(
        self,
        name: str,
        title: str,
        make_source: Callable[[], Source],
        make_target: Callable[[], Target],
        idle_s: float | None = None,
    ) -> None:
        """Connect to nothing yet.

        Args:
            name: The same for the same queues, and no other route's.
            title: What people are told.
            make_source: Makes a connection to where messages are taken.
            make_target: Makes one to where they go.
            idle_s: After which time without a message it ends; None for never.
        """
        self.name = name
        self.title = title
        self.counters = Counters()
        self._make_source = make_source
        self._make_target = make_target
        self._idle_s = idle_s
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Take no more, finish what has begun, and end."""
        self._stopping.set()

    async def run(self) -> None:
        """Move messages."""
        loop = asyncio.get_running_loop()
        waits_s = RETRY.waits_s(random.random)
        while not self._stopping.is_set():
            began_s = loop.time()
            try:
                await self._connected()
            except Stopped as problem:
                if self.counters.connections == 0 or not self._may_pass(problem):
                    self._fail(str(problem))
                    return
                self._note(str(problem))
            except Lost as problem:
                self._note(str(problem))
            if self._stopping.is_set():
                break
            if loop.time() - began_s > SETTLED_S:
                waits_s = RETRY.waits_s(random.random)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), next(waits_s))
        self.counters.state = "stopped"

    def _may_pass(self, problem: Stopped) -> bool:
        """Whether what refuses may do so for a while: a broker that starts has no queues yet."""
        return not isinstance(problem, _Final)

    def _note(self, problem: str) -> None:
        self.counters.state, self.counters.problem = "waiting", problem
        log.warning("%s: %s", self.title, problem)

    def _fail(self, problem: str) -> None:
        self.counters.state, self.counters.problem = "failed", problem
        log.error("%s: stopped: %s", self.title, problem)

    async def _connected(self) -> None:
        """Connect both ends, and move messages until one is lost, or it is to stop."""
        source, target = self._make_source(), self._make_target()
        try:
            if not await self._opened(source, target):
                return
            self.counters.connections += 1
            self.counters.state, self.counters.problem = "running", ""
            log.info("%s: running", self.title)
            await self._move(source, target)
        finally:
            for end in (source, target):
                with suppress(Lost, Stopped, TimeoutError):
                    async with asyncio.timeout(CLOSE_S):
                        await end.close()

    async def _opened(self, source: Source, target: Target) -> bool:
        """Open both ends; return whether that was before it is to stop."""

        async def opened() -> None:
            await target.open()
            await source.open()

        opening = asyncio.ensure_future(opened())
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait(
                (opening, stopping), timeout=OPEN_S, return_when=asyncio.FIRST_COMPLETED
            )
            if opening.done():
                opening.result()
            elif not stopping.done():
                raise Lost(f"not connected within {OPEN_S:g} s")
            return opening.done()
        finally:
            opening.cancel()
            stopping.cancel()
            await asyncio.gather(opening, stopping, return_exceptions=True)

    async def _move(self, source: Source, target: Target) -> None:
        while not self._stopping.is_set():
            batch = await self._taken(source)
            if not batch:
                return
            moving = asyncio.ensure_future(self._moved(source, target, batch))
            stopping = asyncio.ensure_future(self._stopping.wait())
            try:
                await asyncio.wait((moving, stopping), return_when=asyncio.FIRST_COMPLETED)
                async with asyncio.timeout(DRAIN_S if self._stopping.is_set() else None):
                    await moving
            except TimeoutError:
                raise Lost(f"no confirmation within {DRAIN_S:g} s: messages come again") from None
            finally:
                moving.cancel()
                stopping.cancel()

    async def _taken(self, source: Source) -> list[Taken]:
        """Return what has come; nothing where it is to stop."""
        taking = asyncio.ensure_future(source.take())
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait(
                (taking, stopping), timeout=self._idle_s, return_when=asyncio.FIRST_COMPLETED
            )
            if taking.done():
                return taking.result()
            self.stop()  # it is idle, if it was not to stop already
            return []
        finally:
            taking.cancel()
            stopping.cancel()

    async def _moved(self, source: Source, target: Target, batch: list[Taken]) -> None:
        """Send a batch, and settle it as far as it was confirmed."""
        try:
            self._note_hop(batch)
            reasons = await target.send([each.copy for each in batch])
        except BaseException:
            with suppress(Lost):
                await source.settle([], batch)
            raise
        done = [each for each, reason in zip(batch, reasons, strict=True) if not reason]
        back = [each for each, reason in zip(batch, reasons, strict=True) if reason]
        await source.settle(done, back)
        self.counters.moved += len(done)
        self.counters.sent_again += len(back)
        if back:
            raise Lost(next(reason for reason in reasons if reason))

    def _note_hop(self, batch: list[Taken]) -> None:
        """Have messages say that they came by here.

        Raises:
            Stopped: One has been here before.
        """
        for each in batch:
            if self.name in each.copy.hops:
                hops = ", ".join(each.copy.hops)
                raise _Final(f"a message was here before: routes form a circle ({hops})")
            each.copy.add_hop(self.name)


class _Final(Stopped):
    """Waiting would not help."""
