"""The synchronous mesh on threads, and in processes, that are not those it was made for."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import cogwork
from cogwork.sync.loop_thread import LoopThread

PROGRAM = Path(__file__).with_name("sync_program.py")

TIMEOUT_S = 30


def written(name: str, url: str) -> Any:
    """Run a program, which is to be quiet, and return what it writes."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), name, url],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_a_half_read_reply_ends_on_the_loops_thread_wherever_it_is_collected(url: str) -> None:
    assert written("collected", url) == ["cogwork-client"] * 2


def test_dropping_a_half_read_reply_waits_for_nothing(url: str) -> None:
    assert written("dropped", url) == "went on"


def test_the_loops_thread_is_told_that_it_would_wait_for_itself(url: str) -> None:
    published, closed, plainly = written("on_its_own_thread", url)
    for told in (published, closed):
        assert "RuntimeError: the client's own thread would wait for itself" in told
        assert "plain `def`" in told
    assert plainly == 1


def test_the_child_of_a_fork_is_told_to_connect_again(url: str) -> None:
    told, again, in_parent = written("forked", url)
    assert told == "the client belongs to another process: connect again in this one"
    assert again == "connected again"
    assert in_parent == [1, 2]


def test_any_number_of_threads_may_close_a_mesh(url: str) -> None:
    assert written("closed_by_many", url) == ["Disconnected: the client was closed"] * 20


def test_what_is_handed_over_while_the_loop_ends_is_not_waited_for() -> None:
    thread, ends, goes_on = LoopThread(), threading.Event(), threading.Event()
    raised: list[BaseException] = []

    async def end_slowly() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            thread._is_running = True  # as a thread saw it that looked a moment ago
            ends.set()
            await asyncio.to_thread(goes_on.wait, 10)

    def be_late() -> None:
        thread.loop.call_soon_threadsafe(goes_on.set)
        try:
            thread.wait(asyncio.sleep(60))
        except BaseException as error:
            raised.append(error)

    thread.spawn(end_slowly)
    thread.wait(asyncio.sleep(0))
    stopping = threading.Thread(target=thread.stop, daemon=True)
    stopping.start()
    assert ends.wait(10)
    late = threading.Thread(target=be_late, daemon=True)
    late.start()
    late.join(10)
    stopping.join(10)
    assert not stopping.is_alive()
    assert [type(error) for error in raised] == [cogwork.Disconnected]
    with pytest.raises(cogwork.Disconnected, match="the client was closed"):
        thread.wait(asyncio.sleep(0))
