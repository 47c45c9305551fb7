"""The supervisor, with children that only say that they listen."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from typing import TYPE_CHECKING

from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.process.children import LEFT
from cogwork.cli.process.supervisor import Supervisor, Timing, WorkerProcess

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    import pytest

TIMING = Timing(start_s=20.0, stop_s=20.0, pause_s=0.02, pause_max_s=0.08)

WAITS_S = 20.0

GOOD = """
import os, signal, sys, time
def on_signal(number, frame):
    with open(sys.argv[1], "a") as file:
        file.write(signal.Signals(number).name + "\\n")
    if number == signal.SIGTERM:
        sys.exit(0)
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(number, on_signal)
print(os.getpid(), flush=True)
while True:
    time.sleep(0.1)
"""
ENDS_AT_ONCE = "import sys; sys.exit(3)"
IS_KILLED = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
SAYS_NOTHING = "import time; time.sleep(60)"
DOES_NOT_STOP = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("here", flush=True)
time.sleep(60)
"""
WAITS_FOR_STDIN = """
import sys
print("here", flush=True)
sys.stdin.read()
open(sys.argv[1], "w").close()
"""
DIES_TWICE = """
import os, signal, sys, time
with open(sys.argv[1], "a") as file:
    file.write("x")
print("here", flush=True)
if os.path.getsize(sys.argv[1]) <= 2:
    sys.exit(9)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
while True:
    time.sleep(0.1)
"""


def command(text: str, file: Path | None = None) -> tuple[str, ...]:
    return (sys.executable, "-S", "-c", text, str(file))


async def true(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAITS_S):
        while not condition():
            await asyncio.sleep(0.01)


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what the supervisor has logged; asyncio may have to say something of processes."""
    return [each.getMessage() for each in caplog.records if each.name == "cogwork"]


def supervise(
    commands: dict[str, tuple[str, ...]],
    story: Callable[[Supervisor], Awaitable[None]] | None = None,
    timing: Timing = TIMING,
) -> tuple[ExitCode, list[WorkerProcess]]:
    """Run a supervisor; once all listen, the story, then SIGTERM. Returns what was announced."""
    announced: list[WorkerProcess] = []

    async def main() -> ExitCode:
        supervisor = Supervisor(commands, timing)
        told: list[asyncio.Task[None]] = []

        async def tell() -> None:
            try:
                if story is not None:
                    await story(supervisor)
            finally:
                os.kill(os.getpid(), signal.SIGTERM)

        def announce(workers: list[WorkerProcess]) -> None:
            announced.extend(workers)
            told.append(asyncio.create_task(tell()))

        code = await supervisor.run(announce)
        assert all(
            worker.process is None or worker.process.returncode is not None
            for worker in supervisor.workers
        )
        for task in told:
            await task
        return code

    return asyncio.run(main()), announced


def test_all_are_started_announced_and_stopped(tmp_path: Path) -> None:
    files = [tmp_path / "0", tmp_path / "1"]
    commands = {f"n.{at}": command(GOOD, file) for at, file in enumerate(files)}
    code, announced = supervise(commands)
    assert code is ExitCode.OK
    assert [worker.id for worker in announced] == ["n.0", "n.1"]
    assert [worker.said for worker in announced] == [
        str(worker.process.pid) for worker in announced if worker.process is not None
    ]
    assert [file.read_text() for file in files] == ["SIGTERM\n", "SIGTERM\n"]


def test_signals_are_passed_on(tmp_path: Path) -> None:
    files = [tmp_path / "0", tmp_path / "1"]
    names = ("SIGHUP", "SIGUSR1", "SIGUSR2")

    async def passed_on(name: str) -> None:
        os.kill(os.getpid(), signal.Signals[name])
        await true(lambda: all(name in file.read_text() for file in files))

    async def story(_: Supervisor) -> None:
        for name in names:
            await passed_on(name)

    for file in files:
        file.touch()
    commands = {f"n.{at}": command(GOOD, file) for at, file in enumerate(files)}
    code, _ = supervise(commands, story)
    assert code is ExitCode.OK
    assert files[1].read_text().split() == [*names, "SIGTERM"]


def test_one_that_dies_is_started_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "cogwork")

    async def story(supervisor: Supervisor) -> None:
        first, second = supervisor.workers
        before = first.said
        other = second.said
        first.signal(signal.SIGKILL)
        await true(lambda: first.said != before and first.listens.is_set())
        assert second.said == other

    commands = {"n.0": command(GOOD, tmp_path / "0"), "n.1": command(GOOD, tmp_path / "1")}
    code, _ = supervise(commands, story)
    assert code is ExitCode.OK
    assert told(caplog) == ["worker n.0 was killed by SIGKILL; restarting it in 0.02 s"]


def test_pauses_grow_while_it_keeps_dying(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    lives = tmp_path / "lives"

    async def story(supervisor: Supervisor) -> None:
        supervisor.workers[1].command = command(DIES_TWICE, lives)
        supervisor.workers[1].signal(signal.SIGKILL)
        await true(lambda: lives.exists() and lives.read_text() == "xxx")
        await true(supervisor.workers[1].listens.is_set)

    commands = {"n.0": command(GOOD, tmp_path / "0"), "n.1": command(GOOD, tmp_path / "1")}
    code, _ = supervise(commands, story)
    assert code is ExitCode.OK
    assert told(caplog) == [
        "worker n.1 was killed by SIGKILL; restarting it in 0.02 s",
        "worker n.1 exited with code 9; restarting it in 0.04 s",
        "worker n.1 exited with code 9; restarting it in 0.08 s",
    ]


def test_one_that_has_lived_for_long_begins_with_the_first_pause(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def kill_once(supervisor: Supervisor) -> None:
        before = supervisor.workers[0].said
        supervisor.workers[0].signal(signal.SIGKILL)
        await true(lambda: supervisor.workers[0].said != before)

    async def story(supervisor: Supervisor) -> None:
        for _ in range(3):
            await kill_once(supervisor)

    timing = Timing(pause_s=0.01, settled_s=0.0)
    supervise({"n.0": command(GOOD, tmp_path / "0")}, story, timing)
    assert [message.rpartition(" in ")[2] for message in told(caplog)] == ["0.01 s"] * 3


# -- what goes wrong at the start


def test_what_the_first_one_refuses_is_asked_of_no_other(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    commands = {"n.0": command(ENDS_AT_ONCE), "n.1": command(WAITS_FOR_STDIN, tmp_path / "1")}
    code, announced = supervise(commands)
    assert code is ExitCode.CONFIGURATION
    assert announced == []
    assert not (tmp_path / "1").exists()
    assert capfd.readouterr().err == ""  # it has said itself what is wrong


def test_one_that_cannot_start_takes_the_others_with_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    commands = {"n.0": command(GOOD, tmp_path / "0"), "n.1": command(IS_KILLED)}
    code, announced = supervise(commands)
    assert code is ExitCode.ERROR
    assert announced == []
    assert (tmp_path / "0").read_text() == "SIGTERM\n"
    assert capfd.readouterr().err == "cogwork: worker n.1 was killed by SIGKILL\n"


def test_one_that_never_listens_is_a_time_out(capfd: pytest.CaptureFixture[str]) -> None:
    code, announced = supervise({"n.0": command(SAYS_NOTHING)}, timing=Timing(start_s=0.05))
    assert code is ExitCode.TIMEOUT
    assert announced == []
    assert capfd.readouterr().err == "cogwork: not all workers listen after 0.05 s\n"


# -- the end


def test_one_that_does_not_stop_is_killed(capfd: pytest.CaptureFixture[str]) -> None:
    code, _ = supervise({"n.0": command(DOES_NOT_STOP)}, timing=Timing(stop_s=0.05))
    assert code is ExitCode.ERROR
    assert capfd.readouterr().err == "cogwork: worker n.0 does not stop; killing it\n"


def test_one_that_waits_to_start_again_is_not_waited_for(tmp_path: Path) -> None:
    async def story(supervisor: Supervisor) -> None:
        supervisor.workers[0].signal(signal.SIGKILL)
        await true(lambda: not supervisor.workers[0].listens.is_set())

    timing = Timing(pause_s=3600.0)
    code, _ = supervise({"n.0": command(GOOD, tmp_path / "0")}, story, timing)
    assert code is ExitCode.OK


def test_one_that_is_just_being_made_is_ended_too() -> None:
    async def story() -> int:
        stopping = asyncio.Event()
        stopping.set()
        worker = WorkerProcess("n.0", command(SAYS_NOTHING))
        return await worker.live(stopping)

    assert asyncio.run(story()) == -signal.SIGTERM


def test_workers_notice_that_their_supervisor_has_gone(tmp_path: Path) -> None:
    mark = tmp_path / "ended"
    text = (
        "import asyncio, json, os, signal, sys\n"
        "from cogwork.cli.process.supervisor import Supervisor\n"
        "def announce(workers): os.kill(os.getpid(), signal.SIGKILL)\n"
        "commands = {'n.0': json.loads(sys.argv[1])}\n"
        "asyncio.run(Supervisor(commands).run(announce))\n"
    )

    async def story() -> int:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", text, json.dumps(command(WAITS_FOR_STDIN, mark))
        )
        code = await process.wait()
        await true(mark.exists)
        return code

    assert asyncio.run(story()) == -signal.SIGKILL


HAS_LEFT = f"""
import signal, sys, time
signal.signal(signal.SIGUSR1, lambda *_: sys.exit({LEFT}))
print("here", flush=True)
while True:
    time.sleep(0.1)
"""


def leave(workers: list[WorkerProcess]) -> None:
    for each in workers:
        each.signal(signal.SIGUSR1)


def test_one_that_has_left_is_not_started_again(tmp_path: Path) -> None:
    async def story(supervisor: Supervisor) -> None:
        leave(supervisor.workers[1:])
        keeper = supervisor.workers[1].keeper
        await true(keeper.done)
        await asyncio.sleep(5 * TIMING.pause_max_s)
        assert not supervisor.workers[0].keeper.done()

    commands = {"n.0": command(GOOD, tmp_path / "0"), "n.1": command(HAS_LEFT)}
    code, _ = supervise(commands, story)
    assert code is ExitCode.OK


def test_it_ends_when_all_have_left() -> None:
    async def main() -> ExitCode:
        commands = {"n.0": command(HAS_LEFT), "n.1": command(HAS_LEFT)}
        async with asyncio.timeout(WAITS_S):
            return await Supervisor(commands, TIMING).run(leave)

    assert asyncio.run(main()) is ExitCode.OK
