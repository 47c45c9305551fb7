"""The wheel of deadlines, and the replies that are kept by key."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, cast

from cogwork.rpc.serving import keyed
from cogwork.rpc.serving.keyed import KeyedReplies
from cogwork.rpc.wheel import SLOT_S, Wheel

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from cogwork.rpc.serving.keyed import Asker
    from cogwork.rpc.serving.reply_sender import ReplySender


class FakeLoop:
    """A clock, and the one timer that a wheel has."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.timers: list[FakeTimer] = []

    def time(self) -> float:
        return self.now_s

    def call_at(self, when_s: float, callback: Callable[[], object]) -> FakeTimer:
        timer = FakeTimer(when_s, callback)
        self.timers.append(timer)
        return timer

    def advance(self, to_s: float) -> None:
        while True:
            self.timers = [timer for timer in self.timers if not timer.is_cancelled]
            due = [timer for timer in self.timers if timer.when_s <= to_s]
            if not due:
                break
            first = min(due, key=lambda timer: timer.when_s)
            self.timers.remove(first)
            self.now_s = max(self.now_s, first.when_s)
            first.callback()
        self.now_s = to_s


class FakeTimer:
    def __init__(self, when_s: float, callback: Callable[[], object]) -> None:
        self.when_s = when_s
        self.callback = callback
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class Noted:
    def __init__(self, loop: FakeLoop) -> None:
        self._loop = loop
        self.told_s: list[float] = []

    def on_due(self) -> None:
        self.told_s.append(self._loop.now_s)


def wheel_of(loop: FakeLoop) -> Wheel:
    return Wheel(cast(asyncio.AbstractEventLoop, loop))


def test_deadlines_are_told_in_time_and_once_under_random_histories() -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # noqa: T201  # shown where the test fails
    chance = random.Random(seed)
    loop = FakeLoop()
    wheel = wheel_of(loop)
    kept: list[tuple[float, Noted]] = []
    removed: list[Noted] = []
    for _ in range(2_000):
        due_s = loop.now_s + chance.choice([0.0, 0.001, 0.05, 0.3, 2.0]) * chance.random()
        noted = Noted(loop)
        slot = wheel.add(due_s, noted)
        if chance.random() < 0.5:
            wheel.remove(slot, noted)
            removed.append(noted)
        else:
            kept.append((due_s, noted))
        if chance.random() < 0.3:
            loop.advance(loop.now_s + chance.random() * 0.05)
        assert len([timer for timer in loop.timers if not timer.is_cancelled]) <= 1
    loop.advance(loop.now_s + 5)
    assert not any(noted.told_s for noted in removed)
    for due_s, noted in kept:
        assert len(noted.told_s) == 1
        assert -1e-6 <= noted.told_s[0] - due_s <= 2 * SLOT_S
    assert not loop.timers


def test_what_is_removed_leaves_no_timer_behind() -> None:
    loop = FakeLoop()
    wheel = wheel_of(loop)
    notes = [Noted(loop) for _ in range(100)]
    for noted in notes:
        wheel.remove(wheel.add(loop.now_s + 60, noted), noted)
    loop.advance(loop.now_s + 61)
    assert not loop.timers
    assert not wheel._slots


def asker(number: int) -> Asker:
    return cast("ReplySender", None), "reply", number, lambda: None


def test_a_repeated_key_runs_nothing_and_has_the_reply() -> None:
    replies = KeyedReplies(lambda: 0.0)
    key = ("start", "k")
    assert replies.begin(key, asker(1)) == (True, None)
    assert replies.begin(key, asker(2)) == (False, None)
    assert [waiting[2] for waiting in replies.finish(key, b"done")] == [2]
    assert replies.begin(key, asker(3)) == (False, b"done")
    assert replies.begin(("stop", "k"), asker(4)) == (True, None)


def test_a_call_that_did_not_end_may_be_made_again() -> None:
    replies = KeyedReplies(lambda: 0.0)
    assert replies.begin(("start", "k"), asker(1))[0]
    assert replies.finish(("start", "k"), None) == []
    assert replies.begin(("start", "k"), asker(2)) == (True, None)


def test_keys_are_forgotten_by_time_and_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed, "KEPT_MAX", 10)
    now_s = [0.0]
    replies = KeyedReplies(lambda: now_s[0])
    replies.begin(("m", "runs"), asker(0))
    for number in range(50):
        replies.begin(("m", str(number)), asker(number))
        replies.finish(("m", str(number)), b"r")
        assert len(replies) <= 11
    assert replies.begin(("m", "runs"), asker(1)) == (False, None)
    now_s[0] = keyed.KEPT_S + 1
    assert replies.begin(("m", "49"), asker(2)) == (True, None)


def test_keys_are_forgotten_by_the_size_of_their_replies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed, "KEPT_BYTES_MAX", 100)
    replies = KeyedReplies(lambda: 0.0)
    for number in range(50):
        replies.begin(("m", str(number)), asker(number))
        replies.finish(("m", str(number)), b"r" * 30)
        assert len(replies) <= 5
    assert replies.begin(("m", "49"), asker(1)) == (False, b"r" * 30)
    assert replies.begin(("m", "0"), asker(1)) == (True, None)
