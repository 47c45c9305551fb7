"""What signals make a container do that runs in the foreground."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING, cast

import pytest

from cogwork.container.service import Service

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.container.container import Container


class Starting:
    """A container to which somebody sends a signal as soon as it listens."""

    unsettled = 0

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


def test_a_signal_while_it_starts_stops_it_in_order(number: signal.Signals) -> None:
    container = Starting(number)
    announced: list[bool] = []

    async def story() -> None:
        service = Service(cast("Container", container), lambda: pytest.fail("nothing is read"))
        await asyncio.wait_for(service.run(lambda: announced.append(True)), 60)

    asyncio.run(story())
    assert announced == [True]
    assert container.has_stopped
