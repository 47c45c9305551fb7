"""`cogwork top`: a person at a terminal, a file, programs, and a container that goes and comes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from cogwork.cli.exit_codes import ExitCode

from .meshes import Member, meshed
from .served import READY_TIMEOUT_S, done, ran, within
from .terminals import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def member(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Member]:
    with meshed(tmp_path_factory.mktemp("top"), ["box"], []) as members:
        yield members["box"]


def test_a_person_turns_pages_sorts_and_leaves(member: Member) -> None:
    for address in ("queue/less", "queue/more", "queue/more"):
        done("send", member.url, address, "here I am")
    terminal = Terminal("top", member.url, "--every", "0.2")
    terminal.shows("ready ▼")
    terminal.shows("queue/more")
    terminal.shows("queue/less")
    terminal.type("r")
    terminal.shows("ready ▲")
    terminal.shows("queue/less")
    terminal.shows("queue/more")
    terminal.type("\x1b[C")
    terminal.shows("unsettled ▲")
    terminal.type("4")
    terminal.shows("client")
    terminal.shows("AMQP 1.0")
    terminal.type(" ")
    terminal.shows("paused")
    terminal.type("q")
    assert terminal.close() == 0


def test_what_has_gone_is_told_and_comes_back(member: Member) -> None:
    terminal = Terminal("top", member.url, "--every", "0.2")
    terminal.shows("box")
    member.kill()
    terminal.shows("the container does not answer")
    member.start()
    within(READY_TIMEOUT_S, member.listens, "the container listens again")
    done("queue", "declare", member.url, "queue/anew")
    terminal.shows("queue/anew")
    terminal.type("q")
    assert terminal.close() == 0


def test_programs_get_an_object_a_look(member: Member) -> None:
    done("send", member.url, "queue/json", "a")
    arguments = ("--count", "2", "--every", "0.1", "--json")
    looks = [json.loads(line) for line in done("top", member.url, *arguments).stdout.splitlines()]
    assert len(looks) == 2
    assert [row["ready"] for row in looks[1]["queues"] if row["address"] == "queue/json"] == [1]
    assert looks[0]["frames_per_s"] == 0 < looks[1]["frames_per_s"]


def test_a_file_gets_all_rows_and_no_keys(member: Member) -> None:
    lines = [word for number in range(30) for word in ("-c", f"queue declare queue/row-{number}")]
    done("shell", member.url, *lines)
    found = done("top", member.url, "--count", "1").stdout
    assert all(f"queue/row-{number} " in found for number in range(30))
    assert "q: quit" not in found


def test_a_container_that_was_never_there_is_an_error() -> None:
    found = ran("top", "amqp://127.0.0.1:1", "--count", "1")
    assert found.returncode == ExitCode.CONNECTION
    assert found.stderr.startswith("cogwork: amqp://127.0.0.1:1: ")
