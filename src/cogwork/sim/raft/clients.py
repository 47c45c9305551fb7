"""Clients: they append in pipelines, try again elsewhere, and read what must be there.

One that counts (producer and sequence) sends everything unanswered again, in order, to another
replica whenever it has waited for too long. One that does not count never tries again: what it is
not answered stays unknown.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cogwork.plugin.engine.batch import Batch

if TYPE_CHECKING:
    from cogwork.plugin.engine.contract import Appended
    from cogwork.sim.raft.world import World

__all__ = ("Client", "Request")

PATIENCE_S = 0.7
"""How long a client waits for the oldest answer before it tries elsewhere."""

PAUSE_S = 0.08
"""Where a refusal names nobody."""

WAY_MIN_S, WAY_MAX_S = 0.0002, 0.005
"""How far a client is from a replica."""


@dataclass(slots=True, eq=False)
class Request:
    """One append.

    Attributes:
        client: Whose.
        batch: What.
        floor: The stream was answered to be so long when it was first made.
        answer: What it was answered.
        replica: Where it was sent last.
    """

    client: Client
    batch: Batch
    floor: int
    answer: Appended | None = None
    replica: str = ""


@dataclass(slots=True, eq=False)
class Client:
    """Somebody who appends.

    Attributes:
        world: Where it lives.
        name: Its name, which is its producer id where it counts.
        counts: Whether it gives producer and sequence.
        window: So many appends are unanswered at most.
        left: So many more it will make.
        pace_s: Between two of them.
        waiting: What is unanswered, oldest first.
        answered: How many were answered.
        replica: Where it believes the leader to be.
    """

    world: World
    name: str
    counts: bool
    window: int
    left: int
    pace_s: float
    waiting: deque[Request] = field(default_factory=deque)
    answered: int = 0
    replica: str = ""
    _sequence: int = 0
    _tries: int = 0
    _since_s: float = 0.0
    _is_pausing: bool = False

    def start(self) -> None:
        """Begin to append."""
        self.world.after(self.pace_s * self.world.random.random(), self._go_on)

    @property
    def is_done(self) -> bool:
        """Whether all was made and nothing that counts is unanswered."""
        return not self.left and not self.waiting

    def on_answer(self, request: Request, answer: Appended) -> None:
        """Take an answer, of which there may be several."""
        if request.answer is not None:
            return
        request.answer = answer
        self.answered += 1
        self.world.checker.on_answer(request, answer)
        self._since_s = self.world.clock.now_s
        self.replica = request.replica
        if request in self.waiting:
            self.waiting.remove(request)

    def on_refusal(self, request: Request, hint: str | None, replica: str) -> None:
        """Take the news that a replica is not the leader, or take no more now."""
        if request.replica != replica:
            return
        if self.counts:
            if not self.waiting or request is not self.waiting[0] or self._is_pausing:
                return
            if hint and hint != replica:
                self._go_elsewhere(hint)
            else:
                self._is_pausing = True
                self.world.after(PAUSE_S, self._go_on_after_pause)
        elif request in self.waiting:
            self.waiting.remove(request)
            self.replica = hint or self.world.some_replica()

    def _go_on(self) -> None:
        world = self.world
        if self.left and len(self.waiting) < self.window:
            self.left -= 1
            self._append()
        elif self.waiting and world.clock.now_s - self._since_s > PATIENCE_S:
            if self.counts:
                self._go_elsewhere(None)
            else:
                self.waiting.clear()
                self.replica = ""
        if self.left or self.waiting:
            world.after(self.pace_s * (0.5 + world.random.random()), self._go_on)

    def _go_on_after_pause(self) -> None:
        self._is_pausing = False
        self._go_elsewhere(None)

    def _append(self) -> None:
        world = self.world
        count = 1 + (world.random.random() < 0.2)
        sequence = self._sequence
        self._sequence += count
        records = [f"{self.name}/{sequence + i}".encode() for i in range(count)]
        batch = (
            Batch.of(records, self.name.encode(), sequence) if self.counts else Batch.of(records)
        )
        request = Request(self, batch, world.checker.answered_end)
        world.checker.on_request(request)
        if not self.waiting:
            self._since_s = world.clock.now_s
        self.waiting.append(request)
        self._send(request)

    def _go_elsewhere(self, hint: str | None) -> None:
        """Send everything unanswered again, in order."""
        self._since_s = self.world.clock.now_s
        self._tries += 1
        self.replica = hint if hint and self._tries % 3 else self.world.some_replica()
        for request in self.waiting:
            self._send(request)

    def _send(self, request: Request) -> None:
        world = self.world
        replica = self.replica = self.replica or world.some_replica()
        request.replica = replica
        world.after(
            WAY_MIN_S + (WAY_MAX_S - WAY_MIN_S) * world.random.random(),
            lambda: world.take(replica, request),
        )
