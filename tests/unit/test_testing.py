"""The container for tests of others."""

from __future__ import annotations

import asyncio
import socket
import threading

import pytest

from cogwork import testing
from cogwork.container.container import Container
from cogwork.testing import container


def test_one_that_does_not_listen_in_time_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    start, may_start = Container.start, threading.Event()

    async def wait_and_start(started: Container) -> None:
        await asyncio.to_thread(may_start.wait)
        await start(started)

    monkeypatch.setattr(testing, "START_TIMEOUT_S", 0.0)
    monkeypatch.setattr(Container, "start", wait_and_start)
    running = container()
    with pytest.raises(TimeoutError, match="does not listen after 0 s"):
        running.start()
    may_start.set()
    assert running._started.wait(10)
    running.stop()


def test_one_that_did_not_end_well_can_be_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    stop = Container.stop

    async def fail(stopped: Container, drain_timeout_s: float | None = None) -> None:
        await stop(stopped, drain_timeout_s)
        raise RuntimeError("a mistake")

    running = container()
    with monkeypatch.context() as patched:
        patched.setattr(Container, "stop", fail)
        running.start()
        running.stop()
    host, _, port = running.start().url.removeprefix("amqp://").rpartition(":")
    socket.create_connection((host, int(port)), 5).close()
    running.stop()
