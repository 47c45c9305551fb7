"""The shell at a running container: scripts, a person at a terminal, and what goes wrong."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from .meshes import Member, meshed
from .served import COGWORK, ran
from .terminals import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def member(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Member]:
    with meshed(tmp_path_factory.mktemp("shell"), ["box"], []) as members:
        yield members["box"]


def test_a_script_runs_line_by_line_and_its_last_code_is_the_shells(member: Member) -> None:
    script = 'queue declare queue/a\nsend queue/a "b c"\n# nothing\nqueue list --json\nnonsense\n'
    found = subprocess.run(
        [*COGWORK, "shell", member.url], input=script, capture_output=True, text=True, check=False
    )
    declared, listed = found.stdout.splitlines()
    assert declared.startswith("queue/a declared")
    assert [(row["address"], row["depth"]) for row in json.loads(listed)] == [("queue/a", 1)]
    assert found.stderr == "cogwork: No such command 'nonsense' (see `cogwork --help`)\n"
    assert found.returncode == 2


def test_lines_may_be_options_and_exit_ends_it(member: Member) -> None:
    lines = ("-c", "queue declare queue/b", "-c", "exit", "-c", "nonsense")
    found = ran("shell", member.url, *lines)
    assert (found.returncode, found.stderr) == (0, "")


def test_a_container_that_is_not_there_is_told_before_any_line() -> None:
    found = ran("shell", "amqp://127.0.0.1:1", "-c", "status")
    assert found.returncode != 0
    assert found.stderr.startswith("cogwork: amqp://127.0.0.1:1: ")


def test_a_person_completes_repeats_and_leaves(member: Member, tmp_path: Path) -> None:
    ran("send", member.url, "queue/only", "here I am")
    terminal = Terminal("shell", member.url, XDG_STATE_HOME=str(tmp_path))
    terminal.shows("box>")
    terminal.type("queue pee\t")
    terminal.shows("k")
    terminal.type(" queue/onl\t")
    terminal.shows("only")
    terminal.type("\r")
    terminal.shows("here I am")
    terminal.shows("box>")
    terminal.type("watch 0.1 queue list --json\r")
    terminal.shows('"queue/only"')
    terminal.shows('"queue/only"')
    terminal.type("\x03")
    terminal.shows("box>")
    terminal.type("\x04")
    assert terminal.close() == 130, "the last command was interrupted"
    history = tmp_path / "cogwork" / "history"
    assert "queue peek queue/only" in history.read_text()
    assert history.stat().st_mode & 0o077 == 0
