"""The same jobs on a real standalone cluster, whose executors are killed in the middle of them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")

from archives import assert_no_orphan, assert_whole
from spark_clusters import JOB_S, cluster, run_job

import cogwork.sync
import cogwork.testing
from cogwork.pipeline.arrow import ArrowClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAMES = ("in", "out", "again")

STREAMS = "".join(f'[[stream]]\naddress = "stream/{name}"\n' for name in NAMES)

ROWS = 6000

KILLS = int(os.environ.get("COGWORK_KILLS", "1"))
"""Of each part; an executor that is started again takes some seconds."""


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with cluster(tmp_path_factory.mktemp("cluster")) as url:
        yield url


@pytest.fixture
def url() -> Iterator[str]:
    with cogwork.testing.container(STREAMS) as url:
        with cogwork.sync.connect(url) as mesh:
            mesh.stream("in").append([b"%d" % number for number in range(ROWS)])
        yield url


def numbers(url: str, stream: str) -> list[int]:
    with ArrowClient(url) as client:
        return [
            int(body)
            for batch in client.read(stream, *client.bounds(stream), ["body"])
            for body in batch.column("body").to_pylist()
        ]


@pytest.mark.timeout(JOB_S + 100)
@pytest.mark.soak
def test_a_job_runs_unchanged_on_a_cluster(master: str, url: str, tmp_path: Path) -> None:
    told = run_job(master, url, tmp_path, "cluster_job.py", str(tmp_path / "checkpoint"))
    assert told == "2 executors\n"
    assert sorted(numbers(url, "again")) == list(range(ROWS))


@pytest.mark.timeout(JOB_S + 100 + 60 * KILLS)
@pytest.mark.soak
def test_executors_that_are_killed_leave_no_gap_and_nothing_twice(
    master: str, url: str, tmp_path: Path, seed: int
) -> None:
    words = (str(tmp_path), str(seed), str(KILLS))
    told = run_job(master, url, tmp_path, "killed_job.py", *words, timeout_s=JOB_S + 60 * KILLS)
    assert told == f"{3 * KILLS} executors were killed\n", f"seed {seed}"
    for name in ("out", "again"):
        assert sorted(numbers(url, name)) == list(range(ROWS)), f"seed {seed}: stream {name}"
    assert_whole(url, tmp_path / "archive", "in")
    assert_no_orphan(tmp_path / "archive", "in")
    assert_whole(url, tmp_path / "archive", "in")
