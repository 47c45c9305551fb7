"""`cogwork up`: a mesh in one terminal, with real processes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from cogwork.cli.commands.up import primaries_of
from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.process.fleet import Fleet

from .processes import children_of
from .served import COGWORK, done, within

if TYPE_CHECKING:
    from collections.abc import Iterator

START_TIMEOUT_S = 60.0
CONVERGE_TIMEOUT_S = 40.0
STOP_TIMEOUT_S = 40.0


class Up:
    """A running `cogwork up`, with its output in two files."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.out, self.err = folder / "out", folder / "err"
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self.process = subprocess.Popen(
                [*COGWORK, "up", *arguments], stdout=out, stderr=err, start_new_session=True
            )
        within(START_TIMEOUT_S, self._has_said, "it says where the containers listen")
        self.rows: list[dict[str, Any]] = json.loads(self.out.read_text())["containers"]

    def _has_said(self) -> bool:
        assert self.process.poll() is None, self.err.read_text()
        return "\n" in self.out.read_text()

    def url(self, name: str) -> str:
        return next(str(row["url"]) for row in self.rows if row["id"] == name)

    def process_id(self, name: str) -> int:
        return next(int(row["process_id"]) for row in self.rows if row["id"] == name)

    def said(self, text: str) -> bool:
        return text in self.err.read_text()

    def mesh(self, name: str) -> dict[str, dict[str, Any]]:
        """Return the containers, as one of them sees the mesh."""
        found = json.loads(command("mesh", self.url(name), "--json"))
        return {row["id"]: row for row in found["containers"]}

    def reaches(self, name: str) -> set[str]:
        return {row["id"] for row in self.mesh(name).values() if row["cost"] is not None}

    @property
    def left(self) -> list[int]:
        """The processes that are still there."""
        return [row["process_id"] for row in self.rows if is_alive(row["process_id"])]

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(STOP_TIMEOUT_S)


def is_alive(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True


@contextlib.contextmanager
def up(folder: Path, *arguments: str) -> Iterator[Up]:
    running = Up(folder, *arguments, "--json")
    try:
        yield running
    finally:
        running.process.kill()
        running.process.wait()
        for process_id in running.left:
            os.kill(process_id, signal.SIGKILL)


def command(*arguments: str) -> str:
    return done(*arguments).stdout


def test_three_containers_start_as_one_and_end_as_one(tmp_path: Path) -> None:
    with up(tmp_path, "3") as running:
        assert [row["id"] for row in running.rows] == ["c1", "c2", "c3"]
        assert len({row["url"] for row in running.rows}) == 3
        names = {"c1", "c2", "c3"}
        within(
            CONVERGE_TIMEOUT_S,
            lambda: all(running.reaches(name) == names for name in names),
            "each reaches all",
        )
        assert running.said("c2 │ ")
        assert running.end(signal.SIGINT) == ExitCode.OK
        assert running.left == []
        assert "Traceback" not in running.err.read_text()
        assert "cogwork: " not in running.err.read_text(), "nothing went wrong"


def test_what_is_published_at_one_arrives_at_another(tmp_path: Path) -> None:
    with up(tmp_path, "3", "--topology", "line") as running:
        receiver = subprocess.Popen(
            [*COGWORK, "receive", running.url("c1"), "topic/news.#", "--count", "2"],
            stdout=subprocess.PIPE,
            text=True,
        )
        within(
            CONVERGE_TIMEOUT_S,
            lambda: running.mesh("c3").get("c1", {}).get("interests", {}).get("topic") == 1,
            "c3 knows what c1 wants",
        )
        assert running.mesh("c3")["c1"]["next_hop"] == "c2"
        command("send", running.url("c3"), "topic/news.now", "hello", "--count", "2")
        out, _ = receiver.communicate(timeout=20)
        assert out == "hello\nhello\n"
        assert running.end(signal.SIGTERM) == ExitCode.OK
        assert running.left == []


def test_one_that_dies_is_reported_and_the_others_go_on(tmp_path: Path) -> None:
    with up(tmp_path, "4") as running:
        within(CONVERGE_TIMEOUT_S, lambda: len(running.reaches("c1")) == 4, "c1 reaches all")
        os.kill(running.process_id("c2"), signal.SIGKILL)
        within(30, lambda: running.said("container c2 was killed by SIGKILL"), "it is reported")
        within(
            CONVERGE_TIMEOUT_S,
            lambda: running.reaches("c1") == {"c1", "c3", "c4"},
            "the others reach each other",
        )
        assert running.mesh("c1")["c3"]["next_hop"] == "c4"
        assert running.mesh("c1")["c2"]["unreachable_s"] is not None
        picture = ET.fromstring(command("mesh", running.url("c1"), "--svg"))
        boxes = [each.attrib.get("class", "") for each in picture.iter()]
        assert boxes.count("box away") == 1
        assert running.end(signal.SIGINT) == ExitCode.OK
        assert running.left == []


def test_when_none_is_left_it_ends(tmp_path: Path) -> None:
    with up(tmp_path, "2") as running:
        for row in running.rows:
            os.kill(row["process_id"], signal.SIGTERM)
        assert running.process.wait(STOP_TIMEOUT_S) == ExitCode.ERROR
        assert running.said("container c1 exited with code 0")
        assert running.said("cogwork: no container is left")


def test_a_link_comes_and_goes_while_they_run(tmp_path: Path) -> None:
    file = tmp_path / "links"
    file.write_text("north\nsouth\n")
    with up(tmp_path, "2", "--topology", str(file)) as running:
        north, south = running.url("north"), running.url("south").removeprefix("amqp://")
        assert running.reaches("north") == {"north"}
        added = json.loads(command("link", "add", north, south, "--cost", "7", "--json"))
        assert added["cost"] == 7
        within(CONVERGE_TIMEOUT_S, lambda: running.reaches("south") == {"north", "south"}, "linked")
        (row,) = json.loads(command("link", "list", north, "--json"))
        assert (row["url"], row["direction"], row["state"]) == (f"amqp://{south}", "out", "up")
        assert (row["neighbour"], row["cost"], row["error"]) == ("south", 7, None)
        (row,) = json.loads(command("link", "list", running.url("south"), "--json"))
        assert (row["direction"], row["neighbour"], row["cost"]) == ("in", "north", 7)
        assert json.loads(command("link", "remove", north, south, "--json")) == {"links_removed": 1}
        within(CONVERGE_TIMEOUT_S, lambda: running.reaches("north") == {"north"}, "not linked")
        assert json.loads(command("link", "list", north, "--json")) == []


def test_ports_that_are_taken_are_left_out(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port: int = taken.getsockname()[1]
        with up(tmp_path, "1", "--base-port", str(port)) as running:
            assert int(running.url("c1").rpartition(":")[2]) > port


def test_it_goes_on_though_nobody_reads_the_log_any_more(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with out.open("wb") as output:
        process = subprocess.Popen(
            [*COGWORK, "up", "2", "--json"],
            stdout=output,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    assert process.stderr is not None
    try:
        within(START_TIMEOUT_S, lambda: "\n" in out.read_text(), "they listen")
        rows = json.loads(out.read_text())["containers"]
        urls = [row["url"] for row in rows]
        process.stderr.close()
        os.kill(rows[0]["process_id"], signal.SIGUSR2)  # it logs a line
        done("status", urls[1])
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_TIMEOUT_S) == ExitCode.OK
        assert not any(is_alive(row["process_id"]) for row in rows)
    finally:
        process.kill()
        process.wait()


@pytest.mark.skipif(sys.platform != "linux", reason="the children are found in /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_can_be_ended_while_it_starts(number: signal.Signals) -> None:
    process = subprocess.Popen(
        [*COGWORK, "up", "3"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with process:
        within(START_TIMEOUT_S, lambda: len(children_of(process.pid)) > 0, "the first one starts")
        children = children_of(process.pid)
        process.send_signal(number)
        out, err = process.communicate(timeout=STOP_TIMEOUT_S)
    assert process.returncode == ExitCode.OK, err
    assert out == ""
    assert not any(is_alive(child) for child in children)


def test_one_that_cannot_start_ends_the_others_with_its_code(
    capfd: pytest.CaptureFixture[str],
) -> None:
    announced: list[dict[str, int]] = []
    commands = {
        "good": ["serve", "--json", "--listen", "127.0.0.1:0"],
        "bad": ["serve", "--json", "--link", "tomato"],
    }
    code = asyncio.run(Fleet(commands).run(announced.append))
    assert code == ExitCode.USAGE
    assert announced == []
    err = capfd.readouterr().err
    assert 'bad  │ cogwork: options: --link: found "tomato"' in err
    assert "cogwork: container bad exited with code 2" in err


def test_they_are_one_cluster_that_keeps_its_data_for_as_long_as_it_runs(tmp_path: Path) -> None:
    with up(tmp_path, "3") as running:
        folder = Path(json.loads(running.out.read_text())["data_dir"])
        assert {each.name for each in folder.iterdir()} == {"c1", "c2", "c3"}
        made = done("stream", "create", running.url("c2"), "orders", "--engine", "raft")
        assert made.stdout == "stream/orders created\n"
        assert not made.stderr
        done("send", running.url("c3"), "stream/orders", "one")
        read = ("receive", running.url("c1"), "stream/orders", "--from", "first", "--count", "1")
        assert command(*read) == "one\n"
        shown = json.loads(command("stream", "show", running.url("c1"), "orders", "--json"))
        assert sorted(shown["voters"]) == ["c1", "c2", "c3"]
        assert running.end(signal.SIGINT) == ExitCode.OK
        assert not folder.exists()


def test_a_directory_that_is_named_is_kept(tmp_path: Path) -> None:
    data = tmp_path / "data"
    for is_first in (True, False):
        with up(tmp_path, "1", "--data", str(data)) as running:
            if is_first:
                done("stream", "create", running.url("c1"), "orders", "--engine", "raft")
            within(30, lambda: "orders" in command("stream", "list", running.url("c1")), "there")
            assert running.end(signal.SIGTERM) == ExitCode.OK


@pytest.mark.parametrize(
    ("count", "voting"), [(1, 1), (2, 1), (3, 3), (4, 3), (5, 5), (6, 5), (100, 5)]
)
def test_an_odd_number_of_them_votes(count: int, voting: int) -> None:
    ids = [f"c{number}" for number in range(count)]
    assert primaries_of(ids) == ids[:voting]
