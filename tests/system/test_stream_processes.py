"""Streams in real processes: the command line, and a stock client."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from forked import forked
from proton import Described, Message, symbol, ulong
from proton.reactor import Filter
from proton.utils import BlockingConnection

import cogwork

from .served import Served, served, within
from .stories import story

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from proton.utils import BlockingReceiver

TIMEOUT_S = 30.0
RABBITMQ = "rabbitmq:stream-offset-spec"

READER = """
import asyncio, sys, cogwork

async def main():
    async with cogwork.connect(sys.argv[1]) as client:
        async for record in client.stream("orders").read(int(sys.argv[2])):
            print(record.offset, record.body, flush=True)

asyncio.run(main())
"""


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Served]:
    """A container with a stream."""
    with served(tmp_path) as container:
        container.run("stream", "create", container.url, "orders", "--retention", "7d")
        yield container


def from_(start: Any, name: str = "cogwork:stream-start") -> Filter:
    """Make the filter that says where to start."""
    return Filter({symbol("start"): Described(symbol(name), start)})


def received(receiver: BlockingReceiver, count: int) -> list[Any]:
    """Take and accept so many messages."""
    found = []
    for _ in range(count):
        found.append(receiver.receive(timeout=TIMEOUT_S))
        receiver.accept()
    return found


def test_a_stock_client_publishes_and_reads_from_an_offset(running: Served) -> None:
    connection = BlockingConnection(running.url, timeout=TIMEOUT_S)
    sender = connection.create_sender("stream/orders")
    for number in range(20):
        sender.send(Message({"number": number}, subject=f"s{number % 2}", durable=True))
    late = connection.create_receiver("stream/orders", credit=100, options=from_(ulong(5)))
    found = received(late, 15)
    assert [message.body["number"] for message in found] == list(range(5, 20))
    assert [message.annotations[symbol("x-opt-offset")] for message in found] == list(range(5, 20))
    times_s = [message.annotations[symbol("x-opt-time")] / 1000 for message in found]
    assert times_s == sorted(times_s)
    assert found[0].subject == "s1"
    sender.send(Message({"number": 20}))
    assert received(late, 1)[0].body == {"number": 20}
    rabbit = connection.create_receiver(
        "stream/orders", credit=5, name="rabbit", options=from_("first", RABBITMQ)
    )
    assert received(rabbit, 1)[0].body == {"number": 0}
    connection.close()


def test_the_command_line_keeps_and_shows_a_stream(running: Served) -> None:
    url = running.url
    running.run("stream", "create", url, "kept", "--capture", "topic/flights.#")
    running.run("send", url, "topic/flights.JFK.LAX", "captured", "--count", "3")
    running.run("send", url, "stream/kept", "sent")
    assert running.run("receive", url, "stream/kept", "--from", "first", "--count", "4") == (
        "captured\n" * 3 + "sent\n"
    )
    place = ("receive", url, "stream/kept", "--count", "1", "--from")
    last = json.loads(running.run(*place, "last", "--json"))
    assert (last["body"], last["message_annotations"]["x-opt-offset"]) == ("sent", 3)
    assert running.run(*place, "today") == "captured\n"
    rows = json.loads(running.run("stream", "list", url, "--json"))
    assert {row["name"]: row["next"] for row in rows} == {"stream/orders": 0, "stream/kept": 4}
    shown = json.loads(running.run("stream", "show", url, "kept", "--json"))
    assert shown["options"] == {"engine": "orb", "capture": ["topic/flights.#"]}
    assert "stream/kept" in running.run("stream", "show", url, "kept")
    assert "begins at offset 2" in running.run("stream", "trim", url, "kept", "--before", "2")
    assert {row["name"] for row in running.status()["streams"]} == {"stream/orders", "stream/kept"}
    trimmed = running.run("stream", "trim", url, "kept", "--before", "3", "--json")
    assert json.loads(trimmed) == {"address": "stream/kept", "first": 3, "next": 4}
    again = running.run("stream", "create", url, "kept", "--capture", "topic/flights.#", "--json")
    assert json.loads(again) == {
        "address": "stream/kept",
        "engine": "orb",
        "problem": None,
        "is_new": False,
    }
    deleted = json.loads(running.run("stream", "delete", url, "kept", "--json"))
    assert deleted == {"address": "stream/kept", "deleted": True}
    assert [row["name"] for row in running.status()["streams"]] == ["stream/orders"]


@story
async def test_a_late_reader_has_what_an_early_one_has_also_when_one_is_killed(
    running: Served, tmp_path: Path
) -> None:
    """A reader is killed in the middle; who takes its place goes on at the next offset."""
    count = 3_000
    output = tmp_path / "read"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    def start(offset: int) -> subprocess.Popen[bytes]:
        with output.open("ab") as file:
            return subprocess.Popen(
                [sys.executable, "-c", READER, running.url, str(offset)],
                stdout=file,
                env=environment,
            )

    def lines() -> list[str]:
        text = output.read_text() if output.exists() else ""
        return text[: text.rfind("\n") + 1].splitlines()

    async with cogwork.connect(running.url) as client:
        stream = client.stream("orders")
        await stream.append(range(count // 3))
        process = start(0)
        within(TIMEOUT_S, lambda: len(lines()) > 0, "the reader reads")
        await stream.append(range(count // 3, count * 2 // 3))
        process.send_signal(signal.SIGKILL)
        process.wait()
        whole = lines()
        output.write_text("".join(f"{line}\n" for line in whole))
        process = start(len(whole))
        await stream.append(range(count * 2 // 3, count))
        within(TIMEOUT_S, lambda: len(lines()) == count, "all was read")
        process.kill()
        process.wait()
        assert lines() == [f"{number} {number}" for number in range(count)]


def test_a_reader_that_goes_leaves_nothing_behind(running: Served) -> None:
    with forked(
        *("receive", running.url, "stream/orders", "--from", "first", "--timeout", "5"),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as reader:
        running.run("send", running.url, "stream/orders", "x")
        assert reader.stdout is not None
        assert reader.stdout.readline() == b"x\n"
        rows: list[dict[str, Any]] = running.status()["streams"]
        assert (rows[0]["consumers"], rows[0]["behind"]) == (1, 0)
        reader.send_signal(signal.SIGINT)
        assert reader.wait(TIMEOUT_S) in (0, 130)
    within(TIMEOUT_S, lambda: not running.status()["streams"][0]["consumers"], "it has gone")
