"""Holds the messages of a virtual host's publishers to the schemas of their addresses.

Theory of operation. Messages of guarded addresses wait in their links (`CheckedLink`). Most are
decided over within the same batch: a small one by a compiled schema costs a few microseconds. What
costs more (large messages, a schema that is to be compiled, whatever needs more steps than a small
message does) is done in a thread, one message of a link at a time, while what is behind it waits.
The links take turns, and a turn of the event loop spends two milliseconds on it at most.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING

from cogwork.container.schemas.guards import IGNORE
from cogwork.container.schemas.judge import failed, judge
from cogwork.dataplane.addresses.checkpoint import Checkpoint
from cogwork.schema.errors import TooCostly

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor

    from cogwork.container.schemas.guards import Guards
    from cogwork.dataplane.addresses.checked import CheckedLink
    from cogwork.dataplane.core import Core
    from cogwork.schema import Registry

__all__ = ("Checker",)

SLICE_S = 0.002
"""What a turn of the event loop may spend on checks, but for the message that is being checked."""

COUNT_MAX = 32
"""Messages of a link in its turn."""

SIZE_MAX_BYTES = 4096
STEPS_MAX = 3_000
"""What a message may have and cost to be decided over at once: half a millisecond at worst."""

PATIENCE_S = 10.0
"""So long messages wait until it is known what is registered; then they are given back."""

COUNTED_MAX = 10_000
"""Addresses whose refused messages are counted."""


class Checker:
    """Looks at messages, and decides.

    Attributes:
        registry: What is registered; None while that is not known.
        checkpoint: Where the links stop.
        checked: Counts the messages that were looked at.
        rejected: Counts those that were rejected.
        dropped: Counts those that would have been, but nobody waited for their outcome.
        invalid: Counts both by address.
    """

    def __init__(self, core: Core, guards: Guards, executor: Callable[[], Executor]) -> None:
        """Initialize it; it knows of nothing that is registered.

        Args:
            core: The data plane.
            guards: Which addresses are held to schemas.
            executor: Has threads for what takes long.
        """
        self.registry: Registry | None = None
        self.checkpoint = Checkpoint(core, guards, self)
        self.checked = self.rejected = self.dropped = 0
        self.invalid: dict[str, int] = {}
        self._core = core
        self._guards = guards
        self._executor = executor
        self._known = asyncio.Event()
        self._turns: dict[CheckedLink, None] = {}
        self._busy: set[CheckedLink] = set()
        self._is_due = False
        self._patience: asyncio.TimerHandle | None = None
        self._is_closed = False

    # -- what the data plane and the registry say

    def on_arrivals(self, links: Sequence[CheckedLink]) -> None:
        """Take links that have messages again."""
        self._turns.update((link, None) for link in links if link not in self._busy)
        if not self._is_due:
            self._work()

    def know(self, registry: Registry) -> None:
        """Take what is registered, as far as it goes from now on."""
        self.registry = registry
        self._known.set()
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
        if self._turns:
            self._later()

    def close(self) -> None:
        """Decide no more: what waits is its senders' again."""
        self._is_closed = True
        if self._patience is not None:
            self._patience.cancel()
        self._give_back([*self._turns, *self._busy])

    # -- deciding

    def _later(self) -> None:
        if not self._is_due and not self._is_closed:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        self._is_due = False
        self._work()
        self._core.flush()

    def _work(self) -> None:
        """Give the links their turns, for as long as this may take now."""
        if self._is_closed:
            self._give_back(list(self._turns))
        elif self.registry is None:
            self._wait()
        else:
            until_s = time.monotonic() + SLICE_S
            while self._turns:
                link = next(iter(self._turns))
                del self._turns[link]
                self._serve(link, self.registry, until_s)
                if time.monotonic() >= until_s:
                    break
            if self._turns:
                self._later()

    def _serve(self, link: CheckedLink, registry: Registry, until_s: float) -> None:
        """Decide over a link's oldest messages: one at least, others while there is time."""
        verdicts: list[bytes | None] = []
        costly: tuple[bytes, bytes, bool] | None = None
        for message in link.look(COUNT_MAX, COUNT_MAX * SIZE_MAX_BYTES):
            address, data, is_settled = message
            try:
                verdict = self._decided(registry, address, data)
            except TooCostly:
                costly = message
                break
            if verdict is not None:
                self._count(address, is_settled=is_settled)
            verdicts.append(verdict)
            if time.monotonic() >= until_s:
                break
        if self._decide(link, verdicts) and costly is not None:
            self._busy.add(link)
            self._hand_over(link, registry, costly)
        elif link.waiting:
            self._turns[link] = None

    def _decide(self, link: CheckedLink, verdicts: Sequence[bytes | None]) -> bool:
        """Have a link go by what was decided; return whether it could."""
        try:
            link.decide(verdicts)
        except Exception as error:  # what a message meets on its way must not stop the others
            if self._core.on_error is None:
                raise
            self._core.on_error(self.checkpoint, error)
            return False
        return True

    def _decided(self, registry: Registry, address: bytes, data: bytes) -> bytes | None:
        """Decide over a message at once.

        Raises:
            TooCostly: That would take too long.
        """
        policy = self._guards[address]
        if policy == IGNORE:
            return None
        if len(data) > SIZE_MAX_BYTES:
            raise TooCostly("it is large")
        name = address.decode().removeprefix("/")
        self.checked += 1
        try:
            return judge(registry.version_of(name), policy, name, data, STEPS_MAX)
        except TooCostly:
            self.checked -= 1
            raise
        except Exception as error:  # a fault of ours: it must not stop the others' messages
            return failed(error)

    def _hand_over(
        self, link: CheckedLink, registry: Registry, message: tuple[bytes, bytes, bool]
    ) -> None:
        """Have a thread decide over a link's oldest message."""
        address, data, is_settled = message
        name = address.decode().removeprefix("/")
        work = partial(judge, registry.version_of(name), self._guards[address], name, data)
        future = asyncio.get_running_loop().run_in_executor(self._executor(), work)
        future.add_done_callback(partial(self._done, link, address, is_settled))

    def _done(
        self,
        link: CheckedLink,
        address: bytes,
        is_settled: bool,  # called back
        future: asyncio.Future[bytes | None],
    ) -> None:
        self._busy.discard(link)
        if self._is_closed or future.cancelled():
            return
        error = future.exception()
        verdict = failed(error) if error is not None else future.result()
        self.checked += 1
        if verdict is not None:
            self._count(address, is_settled=is_settled)
        self._decide(link, [verdict])
        if link.waiting:
            self._turns[link] = None
            self._later()
        self._core.flush()

    def _count(self, address: bytes, *, is_settled: bool) -> None:
        if is_settled:
            self.dropped += 1
        else:
            self.rejected += 1
        name = address.decode().removeprefix("/")
        if name in self.invalid or len(self.invalid) < COUNTED_MAX:
            self.invalid[name] = self.invalid.get(name, 0) + 1

    # -- for messages that wait in no link

    def decide_now(self, address: bytes, data: bytes) -> bytes | None:
        """Decide over one message: None lets it pass, octets are a rejected outcome.

        Raises:
            TooCostly: That would take too long; `decide_later` does it.
        """
        if self.registry is None:
            raise TooCostly("it is not known what is registered")
        verdict = self._decided(self.registry, address, data)
        if verdict is not None:
            self._count(address, is_settled=False)
        return verdict

    async def decide_later(self, address: bytes, data: bytes) -> bytes | None:
        """Decide over one message that `decide_now` did not; the same, once that is done."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._known.wait()
        except TimeoutError as error:
            return failed(error)
        assert self.registry is not None
        name = address.decode().removeprefix("/")
        work = partial(judge, self.registry.version_of(name), self._guards[address], name, data)
        loop = asyncio.get_running_loop()
        try:
            verdict = await loop.run_in_executor(self._executor(), work)
        except Exception as error:  # a fault of ours
            verdict = failed(error)
        self.checked += 1
        if verdict is not None:
            self._count(address, is_settled=False)
        return verdict

    # -- while nothing is known

    def _wait(self) -> None:
        if self._patience is None and self._turns:
            loop = asyncio.get_running_loop()
            self._patience = loop.call_later(PATIENCE_S, self._lose_patience)

    def _lose_patience(self) -> None:
        self._patience = None
        if self.registry is None:
            self._give_back(list(self._turns))
            self._core.flush()

    def _give_back(self, links: Sequence[CheckedLink]) -> None:
        for link in links:
            self._turns.pop(link, None)
            self.dropped += link.give_back()
