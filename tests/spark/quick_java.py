"""What has Spark's JVM start in half the time: its options, and an archive of what it loads.

    python tests/spark/quick_java.py

makes the archive, which `make test` does once: it takes half a minute, and there are dozens of
sessions. A JVM for which it does not fit, as it is of another version or has other classes, passes
over it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from cogwork.amqp.exceptions import CogworkError

__all__ = ("OPTIONS",)

ARCHIVE = Path(__file__).parents[2] / "build" / "spark-classes.jsa"

_FIRST_COMPILER = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Starts in less time, and is slower afterwards."""

_FROM_ARCHIVE = f" -XX:SharedArchiveFile={ARCHIVE} -Xlog:disable"
"""Without a word where it does not fit."""

OPTIONS = _FIRST_COMPILER + (_FROM_ARCHIVE if ARCHIVE.exists() else "")


def make_archive() -> None:
    """Start a session, has it plan and run something, and keep the classes that it has loaded.

    Raises:
        CogworkError: There is no Spark, or no Java.
    """
    from pyspark import SparkContext  # noqa: PLC0415 # an extra

    from cogwork.pipeline.spark.session import local_session  # noqa: PLC0415 # needs it

    made = ARCHIVE.with_suffix(".tmp")
    made.parent.mkdir(exist_ok=True)
    options = f"{_FIRST_COMPILER} -XX:ArchiveClassesAtExit={made} -Xlog:disable"
    session = local_session("classes", "local[2]", {"spark.driver.extraJavaOptions": options})
    session.range(1000).groupBy("id").count().toPandas()
    session.stop()
    gateway = SparkContext._gateway
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()  # so the JVM ends, and writes it
    gateway.proc.wait()
    made.replace(ARCHIVE)


if __name__ == "__main__":
    try:
        if not ARCHIVE.exists():
            make_archive()
    except (ImportError, CogworkError) as error:
        sys.stderr.write(f"no archive of Spark's classes: {error}\n")
