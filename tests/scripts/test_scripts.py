"""Plays the scripts, and compares what happens with what they say.

A script is text. A line that begins with `>` is a command; the lines under it, indented, are what
happens; lines that begin with `#` tell the story. `COGWORK_REWRITE=1 pytest tests/scripts` writes
down what happens now: the difference is then for people to read.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from raft_stage import Stage

SCRIPTS = sorted(Path(__file__).parent.glob("*.txt"))
INDENT = "    "


def play(text: str) -> str:
    """Return the script with what happens now."""
    stage = Stage()
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith(INDENT):
            continue
        lines.append(line)
        if line.startswith(">"):
            lines.extend(INDENT + told for told in stage.play(line.removeprefix(">").strip()))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_what_happens_is_what_the_script_says(path: Path) -> None:
    text = path.read_text()
    played = play(text)
    if os.environ.get("COGWORK_REWRITE"):
        path.write_text(played)
    else:
        assert played == text


def test_there_are_scripts() -> None:
    assert len(SCRIPTS) >= 12


def test_a_wrong_expectation_is_found() -> None:
    text = "> members a\n    nothing that happens\n"
    assert play(text) != text


def test_what_was_played_can_be_played_again() -> None:
    once = play("# a story\n> members a\n\n> timeout a\n> state\n")
    assert play(once) == once
    assert "a: leader in term 1" in once
