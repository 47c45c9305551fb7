"""One Spark session for all tests in this directory: it takes seconds to start."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from kept_container import Kept
from quick_java import OPTIONS
from system.served import done

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytest.register_assert_rewrite("archives", "spark_clusters")

TIMEOUT_S = 300
"""For a test that says no other: the first one starts the session, beside others that do so too."""

SOURCES = Path(__file__).parents[2] / "src"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have tests of this directory wait for Spark for longer than others wait."""
    for item in items:
        if item.path.parent == Path(__file__).parent and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


@pytest.fixture
def seed() -> int:
    """Chosen anew each time, and printed; `COGWORK_SEED` repeats one."""
    seed = int(os.environ.get("COGWORK_SEED", random.randrange(1 << 30)))
    sys.stdout.write(f"COGWORK_SEED={seed}\n")
    return seed


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    container = Kept(tmp_path)
    container.start()
    try:
        for name in ("s", "t"):
            done("stream", "create", container.url, name, "--engine", "raft")
        yield container
    finally:
        container.kill()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A quiet local session, with the source and the sink."""
    pytest.importorskip("pyspark", reason="the extra [spark] is not installed")
    from cogwork.pipeline.spark.session import local_session  # noqa: PLC0415 # needs the extra

    # Spark's workers are processes of their own, and import what this one does.
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(SOURCES), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    ).rstrip(os.pathsep)
    place = tmp_path_factory.mktemp("spark")
    session = local_session(
        "tests",
        "local[2]",
        {
            "spark.driver.extraJavaOptions": OPTIONS,
            "spark.sql.shuffle.partitions": "2",
            "spark.default.parallelism": "2",
            "spark.local.dir": str(place / "local"),
            "spark.sql.warehouse.dir": str(place / "warehouse"),
        },
    )
    yield session
    session.stop()
