"""The pipeline's commands with `--remote`, on a Spark Connect server of this machine."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")
pytest.importorskip("grpc", reason="the extra [spark] is not installed")

from archives import assert_no_orphan, assert_whole
from spark_clusters import HERE, command, connect_server

import cogwork.sync
import cogwork.testing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAMES = ("in", "out", "again")

STREAMS = "".join(f'[[stream]]\naddress = "stream/{name}"\n' for name in NAMES)

ROWS = 1000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with connect_server(tmp_path_factory.mktemp("connect")) as url:
        yield url


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with cogwork.testing.container(STREAMS) as url:
        with cogwork.sync.connect(url) as mesh:
            mesh.stream("in").append([b"%d" % number for number in range(ROWS)])
        yield url


@pytest.mark.timeout(400)
def test_a_job_runs_unchanged_over_spark_connect(server: str, url: str, tmp_path: Path) -> None:
    status = (sys.executable, "-m", "cogwork.cli.main", "status", url, "--json")
    job = (str(HERE / "connect_job.py"), str(tmp_path / "checkpoint"), *status)
    told = command("pipeline", "run", "--url", url, "--remote", server, *job, place=tmp_path)
    assert told == f"{ROWS} of pyspark.sql.connect.session\n"


@pytest.mark.timeout(400)
def test_an_archive_is_written_and_audited_over_spark_connect(
    server: str, url: str, tmp_path: Path
) -> None:
    to, remote = str(tmp_path / "archive"), ("--remote", server, "--json")
    words = ("pipeline", "archive", url, "in", "--to", to, "--once")
    (row,) = json.loads(command(*words, *remote, place=tmp_path))["streams"]
    assert (row["rows"], row["mark"]) == (ROWS, ROWS)
    assert_whole(url, tmp_path / "archive", "in")
    assert_no_orphan(tmp_path / "archive", "in")
    report = json.loads(command("pipeline", "audit", "--archive", to, *remote, place=tmp_path))
    assert [check["verdict"] for check in report["checks"]] == ["holds"] * 3
