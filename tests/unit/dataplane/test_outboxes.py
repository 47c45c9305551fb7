"""A producer's outbox: each message once, in order, whatever becomes of links and answers."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from peers import Peer

from cogwork.amqp.outcomes import Released
from cogwork.dataplane.client.flusher import Flusher
from cogwork.dataplane.client.outbox import ACCEPTED_CODE
from cogwork.dataplane.client.stream_outbox import StreamOutbox
from cogwork.dataplane.core import Core
from cogwork.dataplane.message.messages import Message
from cogwork.dataplane.transport.outgoing import OutgoingLink

if TYPE_CHECKING:
    from collections.abc import Callable

    from peers import Arrival

    from cogwork.dataplane.client.dispatches import Batch, Post

STEPS = 120


class Answered:
    """An outcome, as the outbox has it explained."""

    def __init__(self, code: int, _state: bytes | None) -> None:
        self.code = code

    def error(self) -> Exception | None:
        return None if self.code == ACCEPTED_CODE else RuntimeError(f"outcome {self.code}")


class Kept:
    """A stream that keeps each producer's messages in the order of their sequences."""

    def __init__(self) -> None:
        self.bodies: list[object] = []
        self._next: dict[bytes, int] = {}

    def takes(self, arrival: Arrival) -> bool:
        message = Message.decode(arrival.message)
        producer: Any = message.annotations["x-opt-producer"]
        sequence: Any = message.annotations["x-opt-sequence"]
        following = self._next.get(producer, 0)
        if sequence == following:
            self._next[producer] = following + 1
            self.bodies.append(message.body)
        return int(sequence) <= following


class Chance:
    """A sender and its stream, with links that come and go."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.core = Core()
        self.kept = Kept()
        self.later: list[Callable[[], object]] = []
        self.posted: list[object] = []
        self.dispatches: list[Post | Batch[Answered]] = []
        flusher = Flusher(self.core, lambda run: run())
        self.outbox: StreamOutbox[Answered] = StreamOutbox(
            flusher, pytest.fail, Answered, lambda: b"producer", self._call_later
        )
        self.attach()

    def _call_later(self, _delay_s: float, work: Callable[[], object]) -> None:
        self.later.append(work)

    def attach(self) -> None:
        self.peer = Peer(self.core, frame_size=self.random.choice((512, 65536)))
        self.link = OutgoingLink(self.peer.session, 0)
        self.peer.session.map_link(0, self.link)
        self.unanswered: list[Arrival] = []
        self.outbox.attach(self.link)
        self.grant()

    def lose(self) -> None:
        """Lose the connection: what arrived may have been kept, and nobody hears of it."""
        for arrival in self.peer.take():
            if self.random.random() < 0.5 and not self.kept.takes(arrival):
                break
        self.outbox.stop()
        self.link.detach()
        self.outbox.detach()
        self.peer.session.end()
        self.peer.wire.stop()
        self.attach()

    def grant(self) -> None:
        self.peer.flow(self.link, self.random.randrange(400))

    def post(self) -> None:
        size = self.random.choice((1, 10, 300, 3000))
        bodies: list[object] = [
            bytes([len(self.posted) % 256]) * size if self.random.random() < 0.9 else "words"
            for _ in range(self.random.choice((1, 2, 50, 700)))
        ]
        self.posted += bodies
        if len(bodies) == 1:
            self.dispatches.append(self.outbox.append_one(bodies[0]))
        else:
            self.dispatches.append(self.outbox.append_all(bodies))

    def answer(self) -> None:
        """Answer for some of what has arrived, the oldest first; now and then it takes none."""
        self.unanswered += self.peer.take()
        count = self.random.randrange(len(self.unanswered) + 1)
        answered, self.unanswered = self.unanswered[:count], self.unanswered[count:]
        is_busy = self.random.random() < 0.1
        said = [not is_busy and self.kept.takes(arrival) for arrival in answered]
        start = 0
        while start < count:
            end = start + 1
            while end < count and said[end] == said[start]:
                end += 1
            state = None if said[start] else Released()
            self.peer.settle(answered[start], state, last=answered[end - 1])
            start = end

    def wait(self) -> None:
        later, self.later = self.later, []
        for work in later:
            work()

    def step(self) -> None:
        steps = (self.post, self.answer, self.answer, self.grant, self.wait, self.lose)
        self.random.choices(steps, (3, 3, 3, 3, 2, 0.3))[0]()

    def finish(self) -> None:
        for _ in range(2000):
            if not self.outbox.backlog_count and not self.outbox.unsettled_count and not self.later:
                break
            self.unanswered += self.peer.take()
            for arrival in self.unanswered:
                self.peer.settle(arrival, None if self.kept.takes(arrival) else Released())
            self.unanswered = []
            self.wait()
            self.peer.flow(self.link, 400)


@pytest.mark.parametrize("seed", range(25))
def test_each_message_is_kept_once_and_in_order(seed: int) -> None:
    chance = Chance(seed)
    for _ in range(STEPS):
        chance.step()
    chance.finish()
    assert chance.kept.bodies == chance.posted, f"seed {seed}"
    assert chance.outbox.unsettled_count == 0
    for dispatch in chance.dispatches:
        assert next(dispatch.__await__(), None) is None  # it is done, and was accepted
