"""A driver of Spark that is killed while it writes: no gap, and nothing twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")

import cogwork.sync
import cogwork.testing
from cogwork.pipeline.arrow import ArrowClient

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent

STREAMS = "".join(f'[[stream]]\naddress = "stream/{name}"\n' for name in ("in", "out"))

ROWS = 12_000

KILLS = int(os.environ.get("COGWORK_KILLS", "1"))
"""Each is another start of Spark: some ten seconds."""

WAIT_S = 200.0


@pytest.fixture
def url() -> Iterator[str]:
    with cogwork.testing.container(STREAMS) as url:
        yield url


@pytest.mark.timeout(300 + 60 * KILLS)
@pytest.mark.soak
def test_a_driver_that_is_killed_leaves_no_gap_and_nothing_twice(url: str, tmp_path: Path) -> None:
    seed = int(os.environ.get("COGWORK_SEED", "7"))
    rng = random.Random(seed)
    with cogwork.sync.connect(url) as mesh:
        mesh.stream("in").append([b"%d" % number for number in range(ROWS)])
    points = sorted(rng.randrange(1, ROWS) for _ in range(KILLS))
    with ArrowClient(url) as client:
        for point in points:
            driver = started(url, tmp_path)
            try:
                wait_for(client, point, driver)
            finally:
                os.killpg(driver.pid, signal.SIGKILL)
                driver.wait()
    driver = started(url, tmp_path)
    assert driver.wait(WAIT_S) == 0
    with ArrowClient(url) as client:
        batches = list(client.read("out", *client.bounds("out"), ["body"]))
    found = [int(body) for batch in batches for body in batch.column("body").to_pylist()]
    assert sorted(found) == list(range(ROWS)), f"seed {seed}: {points}"


def started(url: str, place: Path) -> subprocess.Popen[bytes]:
    sources = HERE.parents[1] / "src"
    return subprocess.Popen(
        [sys.executable, str(HERE / "sink_driver.py"), url, str(place / "checkpoint")],
        env={**os.environ, "PYTHONPATH": str(sources)},
        start_new_session=True,
    )


def wait_for(client: ArrowClient, count: int, driver: subprocess.Popen[bytes]) -> None:
    until_s = time.monotonic() + WAIT_S
    while client.bounds("out").next < count:
        assert driver.poll() is None, "the driver ended by itself"
        assert time.monotonic() < until_s
        time.sleep(0.01)
