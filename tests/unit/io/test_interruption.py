"""When signals interrupt a command."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

import pytest

from cogwork.io.interruption import interrupted_by_sigterm, interrupted_later

if TYPE_CHECKING:
    from collections.abc import Iterator

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture(autouse=True)
def _handlers_as_before() -> Iterator[None]:
    before = {each: signal.getsignal(each) for each in SIGNALS}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for each, handler in before.items():
        signal.signal(each, handler)


@interrupted_by_sigterm()
def start(number: int, started: list[str]) -> None:
    with interrupted_later():
        signal.raise_signal(number)
        started.append("a process")
    started.append("what comes after")


@interrupted_later()
def fail_to_start() -> None:
    signal.raise_signal(signal.SIGINT)
    raise ValueError("it cannot be started")


@pytest.mark.parametrize("number", SIGNALS)
def test_what_is_started_is_known_before_a_signal_interrupts(number: int) -> None:
    started: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        start(number, started)
    assert started == ["a process"]


def test_an_error_is_told_before_a_signal_that_came() -> None:
    with pytest.raises(KeyboardInterrupt) as caught:
        fail_to_start()
    assert isinstance(caught.value.__context__, ValueError)


def test_what_is_ignored_stays_so_and_handlers_come_back() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with interrupted_later():
        signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_in_another_thread_nothing_changes() -> None:
    seen = []

    def look() -> None:
        with interrupted_later():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]
