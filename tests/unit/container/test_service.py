"""What signals make a container do that runs in the foreground."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from typing import TYPE_CHECKING, cast

import pytest

from cogwork.config.settings import Configuration
from cogwork.container import service as service_module
from cogwork.container.service import Service
from cogwork.io.wakefulness import DEVICE, Wakefulness

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.container.container import Container


class Starting:
    """A container to which somebody sends a signal as soon as it listens."""

    unsettled = 0
    configuration = Configuration(keep_awake=True)
    failure = None

    def __init__(self, number: signal.Signals) -> None:
        self.number = number
        self.has_stopped = False

    async def start(self) -> None:
        os.kill(os.getpid(), self.number)

    async def stop(self, drain_timeout_s: float | None = None) -> None:
        del drain_timeout_s
        self.has_stopped = True


@pytest.fixture(params=[signal.SIGTERM, signal.SIGINT])
def number(request: pytest.FixtureRequest) -> Iterator[signal.Signals]:
    found: signal.Signals = request.param
    before = signal.signal(found, lambda *_: pytest.fail(f"{found.name} was not taken"))
    yield found
    signal.signal(found, before)


def announcements_of(container: Starting) -> int:
    """Run a container until it stops; return how often it said that it listens."""
    announced: list[bool] = []

    async def story() -> None:
        service = Service(cast("Container", container), lambda: pytest.fail("nothing is read"))
        await asyncio.wait_for(service.run(lambda: announced.append(True)), 60)

    asyncio.run(story())
    return len(announced)


def test_a_signal_while_it_starts_stops_it_in_order(number: signal.Signals) -> None:
    container = Starting(number)
    assert announcements_of(container) == 1
    assert container.has_stopped


class Unwilling(Wakefulness):
    """What the kernel lets write its file once, or not even that."""

    tries = 0

    def __init__(self) -> None:
        super().__init__(os.devnull)
        self._refuse()

    def look(self) -> None:
        self._refuse()

    def _refuse(self) -> None:
        self.tries -= 1
        if self.tries < 0:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


@pytest.mark.parametrize("tries", [0, 1])
def test_whoever_may_not_keep_processors_awake_says_so_and_serves(
    tries: int,
    number: signal.Signals,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(Unwilling, "tries", tries)
    monkeypatch.setattr(service_module, "Wakefulness", Unwilling)
    container = Starting(number)
    assert announcements_of(container) == 1
    assert container.has_stopped
    said = f"keep_awake has no effect: cannot use {DEVICE}: Permission denied"
    assert [each.getMessage() for each in caplog.records if each.levelname == "WARNING"] == [said]
