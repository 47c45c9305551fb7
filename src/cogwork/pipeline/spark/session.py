"""Spark sessions that start quietly, or say in one line why they cannot.

Theory of operation. What Spark reads before its JVM starts (the Java, the address, the log's
configuration) is set here for the time of the start; what it reads later is in the session's own
settings. On a cluster (`spark://...`) or through Spark Connect (`sc://...`) the same jobs run
unchanged; there the Python environment of the workers is the cluster's business.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import socket
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from cogwork.pipeline.spark.errors import OptionError, SessionError
from cogwork.pipeline.spark.java import find_java, quiet_home
from cogwork.pipeline.spark.scratch import scratch
from cogwork.pipeline.spark.starting import given_up_together

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

__all__ = ("check_packages", "is_remote", "local_session", "open_session", "remote_session")

MASTER = "local[*]"
MASTERS = re.compile(r"local(\[.+\])?|local-cluster\[.+\]|(spark|k8s)://.+|yarn")

CONNECT_PACKAGE = "pyspark.sql.connect."
CONNECT_SCHEME = "sc"
CONNECT_PORT = 15002
CONNECT_TIMEOUT_S = 10.0
"""Spark's own client tries for ten minutes, and says nothing meanwhile."""

LOCAL_DIRECTORY = "spark.local.dir"

JAVA_OPTIONS = "spark.driver.extraJavaOptions"

JAVA_COMPILER = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 "
    "-XX:Tier4CompileThreshold=150000"
)
"""The JVM's second compiler takes up what was called ten times as often as by default. It takes as
much of the processor as the queries of a short job, most of it for Spark's planning; what is done
for each row gets there in the first second all the same."""

OF_PY4J = "An error occurred while calling"
"""So begins what the JVM raised; the next line says what it was."""

CHECKPOINT_FILES = "spark.sql.streaming.checkpointFileManagerClass"
PLAIN_FILES = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
"""Writes a checkpoint's files as durably as Spark's own choice does, and as atomically on disks and
HDFS; but that one starts three programs (`readlink`, `chmod`) for each file on a disk: a trigger
writes two, and waits for each."""

LOG_CONFIGURATION = """\
status = error
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {path}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %c: %m%n%ex
"""

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.python.filterPushdown.enabled": "true",
    CHECKPOINT_FILES: PLAIN_FILES,
    "spark.sql.session.timeZone": "UTC",
}
"""What a session of ours has, unless it is told otherwise."""


def open_session(
    name: str,
    *,
    master: str | None = None,
    remote: str | None = None,
    settings: Mapping[str, str] | None = None,
    log: Path | None = None,
) -> SparkSession:
    """Make a session where the user says: here, on a cluster, or through Spark Connect.

    Args:
        name: The application's name.
        master: Spark's master; None is all cores of this machine.
        remote: A Spark Connect server instead, `sc://HOST:PORT`.
        settings: Spark's settings.
        log: The file for what Spark's JVM logs; None is one that goes with this process.

    Raises:
        SessionError: None can be made.
    """
    if remote is not None:
        if master is not None:
            raise SessionError("a session has a master or is remote, not both")
        return remote_session(name, remote, settings)
    return local_session(name, master or MASTER, settings, log=log)


def local_session(
    name: str,
    master: str = MASTER,
    settings: Mapping[str, str] | None = None,
    *,
    log: Path | None = None,
) -> SparkSession:
    """Start a driver in this process, with its JVM.

    Args:
        name: The application's name.
        master: Spark's master: `local[*]`, `local[2]`, `spark://HOST:PORT`.
        settings: Spark's settings, before ours.
        log: The file for what the JVM logs; None is one that goes with this process.

    Raises:
        OptionError: Nothing is a master by that name.
        SessionError: PySpark or Java is missing, or too old, or pandas too new, or the JVM does not
            start.
    """
    check_packages()
    if MASTERS.fullmatch(master) is None:
        raise OptionError(
            f"no master of Spark is named {master!r:.80}: local[*], local[N], spark://HOST:PORT, "
            "k8s://… or yarn is expected"
        )
    place = Path(tempfile.mkdtemp(prefix="session-", dir=scratch()))
    chosen = {LOCAL_DIRECTORY: str(place), **SETTINGS, **(settings or {})}
    ours = f"{_logging_option(place, log)} -Djava.io.tmpdir={place} {JAVA_COMPILER}"
    chosen[JAVA_OPTIONS] = f"{ours} {chosen.get(JAVA_OPTIONS, '')}".rstrip()
    from pyspark.sql import SparkSession  # noqa: PLC0415 # takes a second

    builder = SparkSession.builder.appName(name).master(master)
    for key, value in chosen.items():
        builder = builder.config(key, value)
    with _environment(_driver_environment(master)), given_up_together():
        try:
            return builder.getOrCreate()
        except SessionError:
            raise
        except Exception as error:
            raise SessionError(f"Spark does not start on {master}: {_first_line(error)}") from error


def remote_session(name: str, url: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Connect to a Spark Connect server: neither Java nor a JVM is needed here.

    Args:
        name: The application's name.
        url: Where it is, `sc://HOST:PORT`.
        settings: Spark's settings.

    Raises:
        SessionError: PySpark or what it needs for this is missing, or nobody answers.
    """
    check_packages()
    server = _answering(url)
    from pyspark.sql import SparkSession  # noqa: PLC0415 # takes a second

    try:
        builder = SparkSession.builder.appName(name).remote(url)
        for key, value in (settings or {}).items():
            builder = builder.config(key, value)
        return builder.getOrCreate()
    except ImportError as error:
        raise SessionError(
            f"{_first_line(error)}: Spark Connect needs pip install 'pyspark[connect]'"
        ) from error
    except Exception as error:
        raise SessionError(f"no Spark Connect at {server}: {_first_line(error)}") from error


def is_remote(session: SparkSession) -> bool:
    """Tell whether a session is one of Spark Connect: its classes are of a package of their own."""
    return type(session).__module__.startswith(CONNECT_PACKAGE)


def _answering(url: str) -> str:
    """See whether somebody listens there; return the server's name, without any secrets."""
    try:
        parts = urlsplit(url)
        port = parts.port or CONNECT_PORT
    except ValueError:
        parts, port = urlsplit(""), 0
    if parts.scheme != CONNECT_SCHEME or not parts.hostname:
        raise SessionError("a Spark Connect server is named as sc://HOST:PORT")
    server = f"sc://{parts.hostname}:{port}"
    try:
        socket.create_connection((parts.hostname, port), timeout=CONNECT_TIMEOUT_S).close()
    except OSError as error:
        raise SessionError(f"no Spark Connect at {server}: {error.strerror or error}") from error
    return server


def check_packages() -> None:
    """See whether the packages are there that Spark needs.

    Raises:
        SessionError: One is missing, or of a version that does not do.
    """
    for package in ("pyspark", "pyarrow", "pandas"):
        try:
            version = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            raise SessionError(
                f"{package} is not installed: pip install 'cogwork[spark]'"
            ) from None
        if package == "pandas" and int(version.split(".")[0]) >= 3:
            raise SessionError(
                f"pandas {version} is installed, and PySpark works with pandas 2: "
                "pip install 'pandas<3'"
            )


def _driver_environment(master: str) -> dict[str, str]:
    chosen = {"JAVA_HOME": str(quiet_home(find_java()))}
    if "PYSPARK_PYTHON" not in os.environ:
        chosen["PYSPARK_PYTHON"] = sys.executable
    if master.startswith("local") and "SPARK_LOCAL_IP" not in os.environ:
        chosen["SPARK_LOCAL_IP"] = "127.0.0.1"
    return chosen


@contextmanager
def _environment(chosen: Mapping[str, str]) -> Iterator[None]:
    before = {key: os.environ.get(key) for key in chosen}
    os.environ.update(chosen)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value


def _logging_option(place: Path, log: Path | None) -> str:
    """Have the JVM log to a file, and return its option for that."""
    file = place / "log4j2.properties"
    file.write_text(LOG_CONFIGURATION.format(path=log or place / "spark.log"))
    return f"-Dlog4j2.configurationFile=file:{file}"


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith(OF_PY4J):
        return lines[1].removeprefix(": ")
    return lines[0] if lines else type(error).__name__
