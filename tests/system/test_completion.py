"""A shell that has sourced the script completes what the command has."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .served import done

BASH = """
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_cogwork_completion cogwork
printf '%s\\n' "${COMPREPLY[@]}"
"""
"""What bash does when somebody presses the key; `compopt` works only then."""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("completion") / "cogwork.bash"
    file.write_text(done("completion", "bash").stdout)
    return file


def completed(script: Path, *words: str) -> set[str]:
    """Return what bash offers for the last word."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    ran = subprocess.run(
        ["bash", "-c", BASH, "bash", str(script), "cogwork", *words],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert ran.stderr == ""
    return set(ran.stdout.split())


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("metr",), {"metrics"}),
        (("s",), {"serve", "send", "status", "stream", "schema", "shell"}),
        (("queue", "pu"), {"purge"}),
        (("cluster", "status", "--wa"), {"--watch"}),
        (("completion", ""), {"bash", "zsh", "fish"}),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else "",
)
def test_bash_offers_what_there_is(script: Path, words: tuple[str, ...], offered: set[str]) -> None:
    found = completed(script, *words)
    assert found >= offered
    assert all(each.startswith(words[-1]) for each in found)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_script_is_one_of_its_shell(shell: str, tmp_path: Path) -> None:
    told = json.loads(done("completion", shell, "--json").stdout)
    assert told["shell"] == shell
    assert "_COGWORK_COMPLETE" in told["script"]
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed (Debian package {shell})")
    file = tmp_path / "script"
    file.write_text(told["script"])
    subprocess.run([program, "-n", str(file)], check=True, timeout=60)
