"""A real standalone cluster of Spark on this machine: a master and two workers."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
from quick_java import OPTIONS

from cogwork.pipeline.spark.java import find_java, quiet_home

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent

CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"

WAIT_S = 90.0

JOB_S = 300.0
"""It takes 20 s on a quiet machine."""


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def environment(place: Path) -> dict[str, str]:
    """Of Spark's processes; what they leave when they are killed is in a directory of ours."""
    sources = HERE.parents[1] / "src"
    return {
        **os.environ,
        "JAVA_HOME": str(quiet_home(find_java())),
        "PYTHONPATH": os.pathsep.join((str(sources), str(HERE), str(HERE.parent))),
        "SPARK_DAEMON_JAVA_OPTS": " ".join(
            (OPTIONS, "-Dspark.master.rest.enabled=false", f"-Djava.io.tmpdir={place}")
        ),
        "SPARK_DAEMON_MEMORY": "768m",
        "SPARK_MASTER_OPTS": "-Dspark.deploy.maxExecutorRetries=-1",
        "SPARK_LOCAL_DIRS": str(place),
        "TMPDIR": str(place),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }


@contextmanager
def daemon(place: Path, name: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a class of Spark's, as its own scripts do."""
    program = Path(pyspark.__file__).parent / "bin" / "spark-class"
    with (place / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [str(program), *arguments], env=environment(place), stdout=log, stderr=log, cwd=place
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait()


@contextmanager
def cluster(place: Path) -> Iterator[str]:
    port, page = free_port(), free_port()
    package = "org.apache.spark.deploy"
    where = ("--host", "127.0.0.1", "--port")
    with ExitStack() as stack:
        master = (f"{package}.master.Master", *where, str(port), "--webui-port", str(page))
        stack.enter_context(daemon(place, "master", *master))
        wait_for_workers(page, 0)
        url = f"spark://127.0.0.1:{port}"
        for number in range(2):
            limits = (
                "--cores",
                "1",
                "--memory",
                "600m",
                "--webui-port",
                "0",
                "--work-dir",
                str(place),
            )
            worker = (f"{package}.worker.Worker", "--host", "127.0.0.1", *limits, url)
            stack.enter_context(daemon(place, f"worker-{number}", *worker))
        wait_for_workers(page, 2)
        yield url


def wait_for_workers(page: int, count: int) -> None:
    until_s = time.monotonic() + WAIT_S
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{page}/json/") as reply:
                if json.load(reply)["aliveworkers"] >= count:
                    return
        except (OSError, ValueError):  # it listens before it knows its name
            pass
        assert time.monotonic() < until_s
        time.sleep(0.1)


@contextmanager
def connect_server(place: Path) -> Iterator[str]:
    """Run a Spark Connect server on this machine; give its URL."""
    port = free_port()
    settings = (
        "spark.connect.grpc.binding.address=127.0.0.1",
        f"spark.connect.grpc.binding.port={port}",
        f"spark.driver.extraJavaOptions={OPTIONS} -Djava.io.tmpdir={place}",
        "spark.sql.shuffle.partitions=2",
        "spark.ui.enabled=false",
        f"spark.local.dir={place}",
    )
    server = (
        *("org.apache.spark.deploy.SparkSubmit", "--class", CONNECT, "--master", "local[2]"),
        *(word for each in settings for word in ("--conf", each)),
    )
    with daemon(place, "connect", *server) as process:
        until_s = time.monotonic() + WAIT_S
        while not listens(port):
            assert process.poll() is None, (place / "connect.log").read_text()[-2000:]
            assert time.monotonic() < until_s
            time.sleep(0.1)
        yield f"sc://127.0.0.1:{port}"


def listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def run_job(
    master: str, url: str, place: Path, file: str, *arguments: str, timeout_s: float = JOB_S
) -> str:
    """Run a job of this directory by the command line; return what it prints."""
    settings = (
        "spark.executor.memory=512m",
        f"spark.executor.extraJavaOptions={OPTIONS} -Djava.io.tmpdir={place}",
        f"spark.driver.extraJavaOptions={OPTIONS}",
        "spark.sql.shuffle.partitions=2",
        "spark.task.maxFailures=100",
        "spark.sql.execution.arrow.maxRecordsPerBatch=100",
        "spark.scheduler.minRegisteredResourcesRatio=1.0",
    )
    return command(
        *("pipeline", "run", "--url", url),
        *("--master", master, "--log", str(place / "driver.log")),
        *(word for each in settings for word in ("--set", each)),
        *(str(HERE / file), *arguments),
        place=place,
        timeout_s=timeout_s,
    )


def command(*words: str, place: Path, timeout_s: float = JOB_S) -> str:
    """Run a command in a process of its own; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "cogwork.cli.main", *words],
        env=environment(place),
        check=False,
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
