"""`cogwork bench isr` and `cogwork bench xsr`, against brokers of a mesh and of their own."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
from typing import TYPE_CHECKING, Any

import cogwork
from cogwork.cli.main import run

from .meshes import linked, meshed

if TYPE_CHECKING:
    from pathlib import Path

SHORT = ("--seconds", "0.2", "--size", "250", "--queues", "2")


def bench(*words: str, code: int = 0) -> list[dict[str, Any]]:
    """Runs the command; returns what it prints with `--json`."""
    with contextlib.redirect_stdout(io.StringIO()) as output:
        assert run(("bench", *words, *SHORT, "--json")) == code
    return [json.loads(line) for line in output.getvalue().splitlines()]


async def records(url: str, count: int) -> list[tuple[str | None, dict[str, Any]]]:
    found: list[tuple[str | None, dict[str, Any]]] = []
    async with cogwork.connect(url) as mesh, mesh.stream("$telemetry") as stream:
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
