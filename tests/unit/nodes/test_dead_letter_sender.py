"""Dead letters of a queue on disk: sent until they are accepted, few at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from kept_queues import KeptQueue
from text_messages import text_of

from cogwork.amqp.message import Header, decode_sections
from cogwork.amqp.types import UInt
from cogwork.dataplane.queue.restoration import restore
from cogwork.nodes.queue import dead_letter_sender as sender_module
from cogwork.nodes.queue.dead_letter_sender import DeadLetterSender
from cogwork.plugin.dead_letters import DEAD_LETTER_ID
from cogwork.plugin.effects import Report, Send

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cogwork.dataplane.queue.store import Store
    from cogwork.plugin.effects import Effect


class DyingQueue:
    """A queue on disk, and what becomes of its dead letters, step by step."""

    def __init__(self) -> None:
        self.queue = KeptQueue(accepts_dead=False)
        self.queue.store.handler = self
        self.address, self.store = "queue/a", self.queue.store
        self.dead_letter_sender = DeadLetterSender(self, "queue/dead", self._carry_out)
        self.now_s = self.queue.core.now
        self.is_durable = True
        self.sent: list[Send] = []
        self.reports: list[str] = []

    def when_durable(self, call: Callable[[bool], object]) -> None:
        call(self.is_durable)

    def give_up(self, number: int, keep: Callable[[int], None]) -> None:
        if self.is_durable:
            self.store.moved([number])
        else:
            keep(number)

    def on_batch(self, store: Store) -> None:
        """The dead letters are asked for tick by tick."""

    def _carry_out(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                self.sent.append(effect)
            elif isinstance(effect, Report):
                self.reports.append(effect.text)

    def restart(self) -> None:
        """Have another queue go on, of what this one wrote."""
        self.queue = self.queue.restarted()
        self.queue.store.handler = self
        self.store = self.queue.store
        self.store.leave_dead([number for number, *_ in self.queue.dead_letters])
        self.dead_letter_sender = DeadLetterSender(self, "queue/dead", self._carry_out)

    def die(self, *texts: str) -> None:
        self.queue.send(*texts, header=Header(ttl=UInt(1)))
        self.queue.store.tick(self.now_s + 10)

    def tick(self, seconds: float = 0.1) -> list[str]:
        """Let time pass; return what is sent."""
        self.now_s += seconds
        before = len(self.sent)
        self.dead_letter_sender.tick(self.now_s)
        return [text_of(each.message) for each in self.sent[before:]]

    def answer(self, text: str, *, accepted: bool) -> None:
        """Have the last dead letter of that text answered."""
        letter = next(each for each in self.sent[::-1] if text_of(each.message) == text)
        assert letter.on_outcome is not None
        letter.on_outcome(accepted=accepted)

    @property
    def waiting(self) -> int:
        return self.queue.count("leaving")


@pytest.fixture
def dying() -> DyingQueue:
    return DyingQueue()


def test_an_item_is_given_up_once_its_dead_letter_is_accepted(dying: DyingQueue) -> None:
    dying.die("a", "b")
    assert dying.tick() == ["a", "b"]
    assert dying.tick() == []
    assert dying.waiting == 2
    dying.answer("a", accepted=True)
    assert dying.waiting == 1
    assert dying.sent[0].address == "queue/dead"


def test_what_is_not_accepted_is_sent_again_after_a_while(dying: DyingQueue) -> None:
    dying.die("a", "b")
    dying.tick()
    dying.answer("a", accepted=False)
    dying.answer("b", accepted=False)
    assert dying.tick(sender_module.RETRY_S) == ["a", "b"]
    dying.answer("a", accepted=False)
    assert dying.tick() == []
    assert dying.tick(sender_module.RETRY_S) == ["a"]
    dying.answer("a", accepted=True)
    dying.answer("b", accepted=True)
    assert dying.waiting == 0


def test_what_is_sent_again_is_the_same_dead_letter_and_no_other_item_s(dying: DyingQueue) -> None:
    dying.die("a", "b")
    dying.tick()
    dying.answer("a", accepted=False)
    dying.answer("b", accepted=False)
    dying.tick(sender_module.RETRY_S)
    dying.restart()
    dying.tick()
    dead_letters = [
        (decode_sections(each.message).delivery_annotations or {})[DEAD_LETTER_ID]
        for each in dying.sent
    ]
    assert dead_letters == dead_letters[:2] * 3
    assert len(set(dead_letters)) == 2


def test_what_was_accepted_by_an_owner_that_could_not_keep_it_is_sent_again(
    dying: DyingQueue,
) -> None:
    dying.die("a")
    dying.tick()
    dying.is_durable = False
    dying.answer("a", accepted=True)
    assert dying.waiting == 1
    dying.is_durable = True
    assert dying.tick(sender_module.RETRY_S) == ["a"]
    dying.answer("a", accepted=True)
    assert dying.waiting == 0


def test_no_dead_letter_leaves_before_the_death_of_its_item_is_durable(
    dying: DyingQueue,
) -> None:
    dying.is_durable = False
    dying.die("a")
    assert dying.tick() == []
    dying.is_durable = True
    assert dying.tick() == ["a"]
    assert dying.waiting == 1


def test_that_dead_letters_wait_is_reported_once(dying: DyingQueue) -> None:
    dying.die("a", "b")
    dying.tick()
    dying.answer("a", accepted=False)
    dying.answer("b", accepted=False)
    assert dying.reports == ["dead letters of queue/a wait: queue/dead does not accept them"]
    dying.tick(sender_module.RETRY_S)
    dying.answer("a", accepted=True)
    dying.answer("b", accepted=False)
    assert len(dying.reports) == 2


def test_few_dead_letters_are_under_way(dying: DyingQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender_module, "WINDOW", 2)
    dying.die("a", "b", "c", "d")
    assert dying.tick() == ["a", "b"]
    dying.answer("a", accepted=False)
    assert dying.tick() == []
    dying.answer("b", accepted=True)
    assert text_of(dying.sent[-1].message) == "c"
    assert dying.waiting == 3


def test_what_another_owner_had_meanwhile_is_sent_once(dying: DyingQueue) -> None:
    dying.is_durable = False
    dying.die("a")
    dying.queue.core.flush()
    (letter,) = dying.store.take_dead(10)
    dying.queue.commit()
    image = dying.queue.image()
    dying.store.clear()
    dying.store.leave_dead([letter[0]])
    assert dying.store.take_dead(10) == []
    dying.store.journal = dying.queue.journal
    restore(dying.store, image)
    dying.store.leave_dead([letter[0]])
    assert dying.store.take_dead(10) == [letter]
    assert dying.store.take_dead(10) == []


def test_where_items_go_out_ahead_dead_letters_do_and_what_follows_is_held(
    dying: DyingQueue,
) -> None:
    dying.store.delivers_ahead = True
    dying.is_durable = False
    dying.die("a")
    dying.queue.commit()
    assert dying.queue.core.held_connections == 0
    assert dying.tick() == ["a"]
    assert dying.queue.core.held_connections == 1
    dying.answer("a", accepted=True)
    assert dying.waiting == 1
