"""`cogwork bench isr` and `cogwork bench xsr`, against brokers of a mesh and of their own."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import cogwork
from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.main import run

from .meshes import linked, meshed

SHORT = ("--seconds", "0.2", "--size", "250", "--queues", "2")


def bench(*words: str, code: int = 0) -> list[dict[str, Any]]:
    """Run the command; return what it prints with `--json`."""
    with contextlib.redirect_stdout(io.StringIO()) as output:
        assert run(("bench", *words, *SHORT, "--json")) == code
    return [json.loads(line) for line in output.getvalue().splitlines()]


async def records(url: str, count: int) -> list[tuple[str | None, dict[str, Any]]]:
    found: list[tuple[str | None, dict[str, Any]]] = []
    async with cogwork.connect(url) as client, client.stream("$telemetry") as stream:
        async for record in stream.read("first"):
            assert isinstance(record.body, bytes)
            if record.subject == "bench":
                found.append((record.subject, json.loads(record.body)))
            if len(found) == count:
                break
    return found


def check(found: dict[str, Any], brokers: int) -> None:
    assert found["problems"] == []
    assert (found["kind"], found["brokers"], found["queues"]) == ("bench", brokers, 2)
    assert found["messages"] == sum(each["messages"] for each in found["by_broker"]) > 0
    assert abs(found["tm_per_wd"] - found["rate"] * 8 * 3600 / 1e9) < 0.001  # both are rounded
    alone = found["single_rate"] * brokers
    assert abs(found["efficiency"] - found["rate"] / alone) < 0.01


def test_brokers_of_a_mesh_are_measured_and_the_figures_kept(tmp_path: Path) -> None:
    with meshed(tmp_path, ["a", "b", "c"], [("a", "b"), ("a", "c")], "[telemetry]\n") as members:
        linked(members.values())
        urls = [member.url for member in members.values()]
        (inside,) = bench("isr", *urls, "--brokers", "2", "--telemetry")
        (outside,) = bench("xsr", *urls, "--brokers", "2", "--telemetry")
        kept = asyncio.run(asyncio.wait_for(records(urls[0], 2), 20))
    assert [each for _, each in kept] == [inside, outside]
    check(inside, 2)
    check(outside, 2)
    assert [each["url"] for each in inside["by_broker"]] == urls[:2]
    assert [each["url"] for each in outside["by_broker"]] == urls[1:]
    assert (inside["ratio"], outside["ratio"]) == (1.0, 4.0)


def test_brokers_are_started_where_none_is_named() -> None:
    (found,) = bench("xsr", "--brokers", "1")
    check(found, 1)


def test_the_telemetry_needs_a_url() -> None:
    assert bench("isr", "--telemetry", code=2) == []


def test_sigterm_ends_what_was_started_and_says_no_more_than_ctrl_c() -> None:
    words = ("bench", "isr", "--seconds", "0.2", "--size", "250", "--size", "300", "--json")
    with subprocess.Popen(
        [sys.executable, "-m", "cogwork.cli.main", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()  # of several figures: it goes on
        listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text("ascii")
        started = listed.split()
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=60)
    assert started
    assert process.returncode == ExitCode.INTERRUPTED
    assert told.strip() == b""
    # One that was just being started ends as its parent has gone.
    deadline_s = time.monotonic() + 20
    while left := [each for each in started if Path("/proc", each).exists()]:
        assert time.monotonic() < deadline_s, left
        time.sleep(0.05)


def test_a_worker_whose_parent_was_killed_says_nothing() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "cogwork.bench.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        assert worker.stderr is not None
        worker.stdout.close()
        worker.stdin.write(b"no job\n")
        worker.stdin.close()
        assert worker.stderr.read() == b""
        assert worker.wait(20) == ExitCode.ERROR
