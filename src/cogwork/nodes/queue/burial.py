"""Dead letters of a queue on disk, on their way to the dead-letter address.

Theory of operation. A dead item stays on disk until its dead letter has been accepted, and that
is durable, however long it takes: the dead-letter queue may be full, or the container that has it
away. A letter that is not accepted is sent again after a while. Few are under way at once; the
others wait in the store, which takes no more messages once as many wait as the queue may hold
items.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

from cogwork.nodes.queue.dead_letters import dead_letter
from cogwork.spi.effects import Report, Send

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from cogwork.dataplane.store import Store
    from cogwork.spi.effects import Effect

__all__ = ("Burial",)

WINDOW = 100
"""Letters under way at once: their messages are in memory twice."""

RETRY_S = 1.0


class Mourner(Protocol):
    """A queue, as far as its dead are concerned."""

    address: str
    store: Store

    def give_up(self, number: int, keep: Callable[[int], None]) -> None:
        """Gives up an item that was put aside and accepted elsewhere, once that is durable."""


class Burial:
    """Sends the dead letters of one queue."""

    def __init__(
        self, queue: Mourner, target: str, emit: Callable[[Iterable[Effect]], None]
    ) -> None:
        """Has nothing to send yet.

        Args:
            queue: Whose dead they are.
            target: The dead-letter address.
            emit: Has effects carried out.
        """
        self._queue = queue
        self._target = target
        self._emit = emit
        self._under_way = 0
        self._returned: list[int] = []
        self._now_s = self._retry_s = 0.0
        self._is_stuck = False

    def letters(self) -> Iterator[Effect]:
        """Yields the letters that may be under way, too."""
        queue = self._queue
        room = WINDOW - self._under_way - len(self._returned)
        for number, reason, message, error, failures in queue.store.take_dead(room):
            self._under_way += 1
            letter = dead_letter(message, queue.address, reason, error, failures)
            yield Send(self._target, letter, partial(self._answered, number))

    def tick(self, now_s: float) -> Iterator[Effect]:
        """Sends again what was not accepted a while ago."""
        self._now_s = now_s
        if self._returned and now_s >= self._retry_s:
            returned, self._returned = self._returned, []
            self._queue.store.leave_dead(returned)
        yield from self.letters()

    def _answered(self, number: int, *, accepted: bool) -> None:
        self._under_way -= 1
        if accepted:
            self._is_stuck = False
            self._queue.give_up(number, self._keep)
            self._emit(self.letters())
        else:
            self._keep(number)

    def _keep(self, number: int) -> None:
        """Has a letter sent again in a while."""
        if not self._returned:
            self._retry_s = self._now_s + RETRY_S
        self._returned.append(number)
        if not self._is_stuck:
            self._is_stuck = True
            source = self._queue.address
            text = f"dead letters of {source} wait: {self._target} does not accept them"
            self._emit([Report(text)])
