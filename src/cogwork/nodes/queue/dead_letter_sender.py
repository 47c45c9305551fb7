"""Dead letters of a queue on disk, on their way to the dead-letter address.

Theory of operation. A dead letter is sent once it is durable that its item is dead: another owner
of the queue must not find the item alive, and have a consumer confirm it. Where a queue delivers
ahead of its records, there is no other owner: it is sent at once, because clients look for what
they have rejected, and all output is held until it is durable. A dead item stays on disk until its
dead letter has been accepted, and that is durable, however long it takes: the dead-letter queue may
be full, or the container that has it away. A dead letter that is not accepted is sent again after a
while. Few are under way at once; the others wait in the store, which takes no more messages once as
many wait as the queue may hold items.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

from cogwork.plugin.dead_letters import dead_letter, dead_letter_id
from cogwork.plugin.effects import Report, Send

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cogwork.dataplane.queue.store import Store
    from cogwork.plugin.effects import Effect

__all__ = ("DeadLetterSender",)

Dead = tuple[int, str, bytes, bytes | None, int, int]
"""An item that is dead: its number, the reason, the message, the error, how often it failed, and
when it died."""

WINDOW = 100
"""Letters under way at once: their messages are in memory twice."""

RETRY_S = 1.0


class DeadLetterSource(Protocol):
    """A queue, as far as its dead are concerned."""

    address: str
    store: Store

    def when_durable(self, call: Callable[[bool], object]) -> None:
        """Have a call made once it is known whether all that has happened so far is durable."""

    def give_up(self, number: int, keep: Callable[[int], None]) -> None:
        """Give up an item that was put aside and accepted elsewhere, once that is durable."""


class DeadLetterSender:
    """Sends the dead letters of one queue.

    Attributes:
        target: The dead-letter address.
    """

    def __init__(
        self, queue: DeadLetterSource, target: str, emit: Callable[[Iterable[Effect]], None]
    ) -> None:
        """Start with nothing to send yet.

        Args:
            queue: Whose dead they are.
            target: The dead-letter address.
            emit: Has effects carried out.
        """
        self._queue = queue
        self.target = target
        self._emit = emit
        self._under_way = 0
        self._returned: list[int] = []
        self._now_s = self._retry_s = 0.0
        self._is_stuck = False

    def send(self) -> None:
        """Send the dead letters that fit into the window, once their deaths are durable."""
        dead = self._queue.store.take_dead(WINDOW - self._under_way - len(self._returned))
        if dead:
            self._under_way += len(dead)
            self._send_in_time(dead)

    def _send_in_time(self, dead: list[Dead]) -> None:
        """Send dead letters now if nothing depends on their deaths, else once these are durable."""
        store = self._queue.store
        if store.delivers_ahead:
            store.core.hold_output()
            self._send(dead)
        else:
            self._queue.when_durable(partial(self._send_if, dead))

    def _send_if(self, dead: list[Dead], is_durable: bool) -> None:
        if is_durable:
            self._send(dead)
        else:
            self._under_way -= len(dead)
            self._queue.store.leave_dead([number for number, *_ in dead])

    def _send(self, dead: list[Dead]) -> None:
        self._emit(map(self._send_effect, dead))

    def _send_effect(self, dead: Dead) -> Effect:
        number, reason, message, error, failures, died_ms = dead
        source = self._queue.address
        name = dead_letter_id(source, self._queue.store.shard, number)
        letter = dead_letter(
            message,
            source,
            reason,
            error,
            failures,
            died_ms=died_ms,
            target=self.target,
            letter=name,
        )
        return Send(self.target, letter, partial(self._answered, number))

    def tick(self, now_s: float) -> None:
        """Send again what was not accepted a while ago."""
        self._now_s = now_s
        if self._returned and now_s >= self._retry_s:
            returned, self._returned = self._returned, []
            self._queue.store.leave_dead(returned)
        self.send()

    def _answered(self, number: int, *, accepted: bool) -> None:
        self._under_way -= 1
        if accepted:
            self._is_stuck = False
            self._queue.give_up(number, self._keep)
            self.send()
        else:
            self._keep(number)

    def _keep(self, number: int) -> None:
        """Have a dead letter sent again in a while."""
        if not self._returned:
            self._retry_s = self._now_s + RETRY_S
        self._returned.append(number)
        if not self._is_stuck:
            self._is_stuck = True
            source = self._queue.address
            text = f"dead letters of {source} wait: {self.target} does not accept them"
            self._emit([Report(text)])
