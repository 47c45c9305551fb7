"""What is wrong with the options of `cogwork pipeline` is told before anything takes minutes."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.main import run

if TYPE_CHECKING:
    from pathlib import Path

WITHOUT_SPARK = """
import sys
sys.modules["pyspark"] = None
from cogwork.cli.main import main
main(sys.argv[1:])
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    file = tmp_path / "job.py"
    file.write_text("")
    return file


@pytest.mark.parametrize(
    "words",
    [
        ["run", "JOB"],
        ["archive", "amqp://localhost", "orders", "--to", "DIR"],
        ["audit", "--archive", "DIR"],
        ["analytics", "--archive", "DIR"],
    ],
    ids=lambda words: words[0],
)
def test_two_places_for_spark_are_a_mistake_in_the_command_line(
    words: list[str], job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = {"JOB": str(job), "DIR": str(tmp_path / "archive")}
    command, *rest = (named.get(word, word) for word in words)
    both = ["--master", "local[1]", "--remote", "sc://h"]
    assert run(["pipeline", command, *both, *rest]) == ExitCode.USAGE
    assert "--master and --remote exclude each other" in capsys.readouterr().err


@pytest.mark.parametrize("as_json", [True, False])
def test_without_spark_a_job_is_told_what_to_install(job: Path, as_json: bool) -> None:
    words = [sys.executable, "-c", WITHOUT_SPARK, "pipeline", "run", *["--json"] * as_json]
    done = subprocess.run([*words, str(job)], capture_output=True, text=True, check=False)
    said = "pyspark is not installed: pip install 'cogwork[spark]'"
    assert done.stderr == f"cogwork: {said}\n"
    assert done.returncode == ExitCode.ERROR
    if as_json:
        told = json.loads(done.stdout)
        assert (told["exit_code"], told["error"]) == (ExitCode.ERROR, said)


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        ("file", "is a file"),
        ("file/below", "is not a directory"),
        ("file/far/below", "is not a directory"),
    ],
)
def test_plots_need_a_folder_that_can_be_made(
    folder: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    words = ["pipeline", "analytics", "--archive", str(tmp_path / "none"), "--png"]
    assert run([*words, str(tmp_path / folder)]) == ExitCode.USAGE
    told = capsys.readouterr().err
    assert "'--png'" in told
    assert said in told
    # These could be made, and the archive is what is missing.
    assert run([*words, str(tmp_path / "far" / "below")]) != ExitCode.USAGE
    assert "--png" not in capsys.readouterr().err
