"""How long a command waits that sends, and what it says of what it could not send."""

from __future__ import annotations

import asyncio
import json
import signal
from typing import TYPE_CHECKING

import pytest

import cogwork
from cogwork.cli.exit_codes import ExitCode

from .served import COGWORK, Served, ended, served, started

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("waited")) as running:
        yield running


def limited(*words: str) -> tuple[int, str, dict[str, object]]:
    """Send with a time-out; return the exit code, and what is told to people and to programs."""
    done = ended("send", *words, "--json")
    return done.returncode, done.stderr, json.loads(done.stdout)


def test_a_sender_that_is_to_wait_no_longer_takes_back_what_waits(container: Served) -> None:
    asked = (container.url, "nobody/ever", "x", "--count", "3", "--timeout", "0.5")
    code, err, told = limited(*asked)
    assert code == ExitCode.TIMEOUT, err
    assert err.startswith("cogwork: nothing was taken for 0.5 s: nobody/ever is full, or nobody")
    assert err.endswith("; no message has an outcome\n")
    assert (told["sent"], told["outcomes"]) == (0, {})
    assert str(told["problem"]).startswith("nothing was taken for 0.5 s: nobody/ever is full")
    assert container.run("receive", container.url, "nobody/ever", "--timeout", "0.5") == ""


def test_what_was_sent_and_is_not_answered_in_time_is_in_doubt(container: Served) -> None:
    async def two_of_five() -> tuple[int, str, dict[str, object]]:
        async with (
            cogwork.connect(container.url) as client,
            client.consume("slow/work", credit=5) as consumer,
        ):
            asked = (container.url, "slow/work", "x", "--count", "5", "--timeout", "3")
            sending = asyncio.create_task(asyncio.to_thread(limited, *asked))
            for _ in range(2):
                [item] = await consumer.take(1)
                await item.accept()
            return await sending

    code, err, told = asyncio.run(two_of_five())
    assert code == ExitCode.TIMEOUT
    assert err == (
        "cogwork: nothing was taken for 3 s: what was sent has no outcome yet; "
        "2 accepted, 3 in-doubt\n"
    )
    assert (told["sent"], told["outcomes"]) == (5, {"accepted": 2, "in-doubt": 3})


def test_a_sender_goes_on_as_long_as_something_is_taken(container: Served) -> None:
    async def slow() -> int:
        async with (
            cogwork.connect(container.url) as client,
            client.consume("slowly/taken", credit=1) as consumer,
        ):
            asked = ("send", container.url, "slowly/taken", "x", "--count", "5", "--timeout", "2")
            sending = await asyncio.create_subprocess_exec(*COGWORK, *asked)
            for _ in range(5):
                [item] = await consumer.take(1)
                await asyncio.sleep(0.7)
                await item.accept()
            return await asyncio.wait_for(sending.wait(), 30)

    assert asyncio.run(slow()) == ExitCode.OK


@pytest.mark.parametrize(
    ("number", "of_interrupts"),
    [
        (signal.SIGINT, signal.SIG_DFL),
        (signal.SIGTERM, signal.SIG_DFL),
        (signal.SIGTERM, signal.SIG_IGN),  # as in a script's background
    ],
)
def test_a_sender_that_is_ended_tells_how_far_it_came(
    container: Served, number: int, of_interrupts: signal.Handlers
) -> None:
    before = signal.signal(signal.SIGINT, of_interrupts)
    try:
        running = started("send", container.url, "queue/ended", "--file", "-", "--json")
        with running as process:
            assert process.stdin is not None
            process.stdin.write("a line\n")
            process.stdin.flush()
            assert container.run("receive", container.url, "queue/ended", "--count", "1")
            process.send_signal(number)
            assert process.wait(30) == ExitCode.INTERRUPTED
            assert process.stdout is not None
            told = json.loads(process.stdout.read())
    finally:
        signal.signal(signal.SIGINT, before)
    assert (told["address"], told["sent"], told["problem"]) == ("queue/ended", 1, "interrupted")
