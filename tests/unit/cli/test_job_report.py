"""What `cogwork pipeline run --json` tells, and that nothing else is on its stdout."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")

from cogwork.cli.commands.pipelines.job_report import told_as_json
from cogwork.cli.exit_codes import ExitCode
from cogwork.pipeline.spark import job, listener, session
from cogwork.pipeline.spark.errors import JobFailed, OptionError
from cogwork.pipeline.spark.query_runs import QueryRuns

if TYPE_CHECKING:
    from pathlib import Path


def told(
    capfd: pytest.CaptureFixture[str], error: BaseException | None, runs: QueryRuns | None = None
) -> dict[str, Any]:
    """Return what is told where this is how it ended."""
    ended_by = None
    try:
        with told_as_json("job.py") as report:
            report.runs = runs
            print("a word")  # noqa: T201  # as a job does
            subprocess.run([sys.executable, "-c", "print('another')"], check=True)
            if error is not None:
                raise error
    except BaseException as raised:
        ended_by = raised
    assert ended_by is error
    out, err = capfd.readouterr()
    assert sorted(err.splitlines()) == ["a word", "another"]
    found: dict[str, Any] = json.loads(out)
    assert found.pop("file") == "job.py"
    assert found.pop("seconds") > 0
    return found


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (None, ExitCode.OK, None),
        (JobFailed("job.py:1: no"), ExitCode.ERROR, "job.py:1: no"),
        (OptionError("no such option"), ExitCode.USAGE, "no such option"),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED, "interrupted"),
        (SystemExit(7), 7, None),
        (SystemExit(300), 44, None),
        (SystemExit(-1), 255, None),
        (SystemExit("a reason"), ExitCode.ERROR, None),
        (ZeroDivisionError("a mistake"), ExitCode.ERROR, "a mistake"),
    ],
    ids=repr,
)
def test_how_it_ended(
    capfd: pytest.CaptureFixture[str], error: BaseException | None, code: int, text: str | None
) -> None:
    assert told(capfd, error) == {"exit_code": code, "error": text, "queries": []}


def test_what_its_queries_did(capfd: pytest.CaptureFixture[str]) -> None:
    runs = QueryRuns()
    runs.started("1", "one")
    runs.started("2", "two")
    for rows in (5, 0, None):
        runs.progressed({"runId": "2", "numInputRows": rows})
    runs.progressed({"runId": "nobody's", "numInputRows": 1})
    assert not runs.wait(0.01)
    runs.ended("1")
    runs.ended("2")
    assert runs.wait(0)
    assert told(capfd, None, runs)["queries"] == [
        {"query": "one", "batches": 0, "rows": 0},
        {"query": "two", "batches": 3, "rows": 5},
    ]


def test_what_follows_the_file_is_the_jobs_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from cogwork.cli.main import run  # noqa: PLC0415  # what it loads is what is patched

    class Session:
        def stop(self) -> None:
            """Have nothing to do."""

    class Listener:
        runs = QueryRuns()

    found: list[tuple[str, ...]] = []
    monkeypatch.setattr(session, "open_session", lambda *_, **__: Session())
    monkeypatch.setattr(listener, "listen", lambda *_: Listener())
    monkeypatch.setattr(job, "run_job", lambda *given, **_: found.append(given[2]))
    file = tmp_path / "job.py"
    file.write_text("")
    own = ("--json", "--url", "mine", "-x", "7")
    assert run(["pipeline", "run", "--url", "amqp://there", str(file), *own]) == ExitCode.OK
    assert found == [own]
    assert run(["pipeline", "run", "--no-such", str(file)]) == ExitCode.USAGE


def test_a_file_that_is_no_python_is_told_too(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from cogwork.cli.main import run  # noqa: PLC0415  # what it loads is what is patched

    file = tmp_path / "job.py"
    file.write_text('print("a"')
    assert run(["pipeline", "run", "--json", str(file)]) == ExitCode.ERROR
    out, err = capfd.readouterr()
    told = json.loads(out)
    assert told["exit_code"] == ExitCode.ERROR
    assert told["error"] == f"{file}:1: SyntaxError: '(' was never closed"
    assert err == f"cogwork: {told['error']}\n"
