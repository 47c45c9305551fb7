"""Dead letters of a queue on disk: sent until they are accepted, few at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from kept_queues import KeptQueue
from text_messages import text_of

from cogwork.amqp.message import Header, decode_sections
from cogwork.amqp.types import UInt
from cogwork.dataplane.queue.restoration import restore
from cogwork.nodes.queue import burial as burial_module
from cogwork.nodes.queue.burial import Burial
from cogwork.nodes.queue.dead_letters import LETTER_ID
from cogwork.plugin.effects import Report, Send

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cogwork.dataplane.queue.store import Store
    from cogwork.plugin.effects import Effect


class Mourning:
    """A queue on disk, and what becomes of its dead letters, step by step."""

    def __init__(self) -> None:
        self.queue = KeptQueue(accepts_dead=False)
        self.queue.store.handler = self
        self.address, self.store = "queue/a", self.queue.store
        self.burial = Burial(self, "queue/dead", self._carry_out)
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
        """The letters are asked for tick by tick."""

    def _carry_out(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                self.sent.append(effect)
            elif isinstance(effect, Report):
                self.reports.append(effect.text)

    def restart(self) -> None:
        """Has another queue go on, of what this one wrote."""
        self.queue = self.queue.restarted()
        self.queue.store.handler = self
        self.store = self.queue.store
        self.store.leave_dead([number for number, *_ in self.queue.letters])
        self.burial = Burial(self, "queue/dead", self._carry_out)

    def die(self, *texts: str) -> None:
        self.queue.send(*texts, header=Header(ttl=UInt(1)))
        self.queue.store.tick(self.now_s + 10)

    def tick(self, seconds: float = 0.1) -> list[str]:
        """Lets time pass; returns what is sent."""
        self.now_s += seconds
        before = len(self.sent)
        self.burial.tick(self.now_s)
        return [text_of(each.message) for each in self.sent[before:]]

    def answer(self, text: str, *, accepted: bool) -> None:
        """Has the last letter of that text answered."""
        letter = next(each for each in self.sent[::-1] if text_of(each.message) == text)
        assert letter.on_outcome is not None
        letter.on_outcome(accepted=accepted)

    @property
    def waiting(self) -> int:
        return self.queue.count("leaving")


@pytest.fixture
def mourning() -> Mourning:
    return Mourning()


def test_an_item_is_given_up_once_its_letter_is_accepted(mourning: Mourning) -> None:
    mourning.die("a", "b")
    assert mourning.tick() == ["a", "b"]
    assert mourning.tick() == []
    assert mourning.waiting == 2
    mourning.answer("a", accepted=True)
    assert mourning.waiting == 1
    assert mourning.sent[0].address == "queue/dead"


def test_what_is_not_accepted_is_sent_again_after_a_while(mourning: Mourning) -> None:
    mourning.die("a", "b")
    mourning.tick()
    mourning.answer("a", accepted=False)
    mourning.answer("b", accepted=False)
    assert mourning.tick(burial_module.RETRY_S) == ["a", "b"]
    mourning.answer("a", accepted=False)
    assert mourning.tick() == []
    assert mourning.tick(burial_module.RETRY_S) == ["a"]
    mourning.answer("a", accepted=True)
    mourning.answer("b", accepted=True)
    assert mourning.waiting == 0


def test_what_is_sent_again_is_the_same_letter_and_no_other_item_s(mourning: Mourning) -> None:
    mourning.die("a", "b")
    mourning.tick()
    mourning.answer("a", accepted=False)
    mourning.answer("b", accepted=False)
    mourning.tick(burial_module.RETRY_S)
    mourning.restart()
    mourning.tick()
    letters = [
        (decode_sections(each.message).delivery_annotations or {})[LETTER_ID]
        for each in mourning.sent
    ]
    assert letters == letters[:2] * 3
    assert len(set(letters)) == 2


def test_what_was_accepted_by_an_owner_that_could_not_keep_it_is_sent_again(
    mourning: Mourning,
) -> None:
    mourning.die("a")
    mourning.tick()
    mourning.is_durable = False
    mourning.answer("a", accepted=True)
    assert mourning.waiting == 1
    mourning.is_durable = True
    assert mourning.tick(burial_module.RETRY_S) == ["a"]
    mourning.answer("a", accepted=True)
    assert mourning.waiting == 0


def test_no_letter_leaves_before_it_is_durable_that_its_item_is_dead(mourning: Mourning) -> None:
    mourning.is_durable = False
    mourning.die("a")
    assert mourning.tick() == []
    mourning.is_durable = True
    assert mourning.tick() == ["a"]
    assert mourning.waiting == 1


def test_that_letters_wait_is_reported_once(mourning: Mourning) -> None:
    mourning.die("a", "b")
    mourning.tick()
    mourning.answer("a", accepted=False)
    mourning.answer("b", accepted=False)
    assert mourning.reports == ["dead letters of queue/a wait: queue/dead does not accept them"]
    mourning.tick(burial_module.RETRY_S)
    mourning.answer("a", accepted=True)
    mourning.answer("b", accepted=False)
    assert len(mourning.reports) == 2


def test_few_letters_are_under_way(mourning: Mourning, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(burial_module, "WINDOW", 2)
    mourning.die("a", "b", "c", "d")
    assert mourning.tick() == ["a", "b"]
    mourning.answer("a", accepted=False)
    assert mourning.tick() == []
    mourning.answer("b", accepted=True)
    assert text_of(mourning.sent[-1].message) == "c"
    assert mourning.waiting == 3


def test_what_another_owner_had_meanwhile_is_sent_once(mourning: Mourning) -> None:
    mourning.is_durable = False
    mourning.die("a")
    mourning.queue.core.flush()
    (letter,) = mourning.store.take_dead(10)
    mourning.queue.commit()
    image = mourning.queue.image()
    mourning.store.clear()
    mourning.store.leave_dead([letter[0]])
    assert mourning.store.take_dead(10) == []
    mourning.store.journal = mourning.queue.journal
    restore(mourning.store, image)
    mourning.store.leave_dead([letter[0]])
    assert mourning.store.take_dead(10) == [letter]
    assert mourning.store.take_dead(10) == []
