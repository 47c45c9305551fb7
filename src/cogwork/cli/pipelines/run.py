"""`cogwork pipeline run`: a user's own PySpark job."""

from __future__ import annotations

import signal
import threading
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cogwork.cli.certificates import certificate_options, certificates_of
from cogwork.cli.pipelines.spark_options import (
    explain_option,
    explained,
    settings_of,
    spark_options,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryListener

__all__ = ("run",)

LEAVE_S = 10.0
"""For each step of leaving a server: a client of Spark's whose call was interrupted may wait for an
answer that does not come."""

FILE = click.Path(exists=True, dir_okay=False)


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("file", type=FILE, metavar="FILE.py")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[ARG]...")
@click.option("--url", default="amqp://localhost", help="The container that the job is about.")
@certificate_options
@spark_options
@explain_option
def run(
    file: str,
    arguments: tuple[str, ...],
    *,
    url: str,
    master: str | None,
    remote: str | None,
    settings: tuple[str, ...],
    log: str | None,
    explain: bool,
    ca_file: str | None,
    cert_file: str | None,
    key_file: str | None,
) -> None:
    """Run a PySpark job of your own.

    FILE.py finds `spark`, `url`, and the functions `source`, `live`, `sink` and `live_sink`; the
    arguments are its own. Options of this command stand before FILE.py.
    """
    from cogwork.spark.job import check_job, run_job  # noqa: PLC0415 # PySpark takes a second
    from cogwork.spark.listener import listen  # noqa: PLC0415  # heavy
    from cogwork.spark.session import open_session  # noqa: PLC0415  # heavy

    check_job(file)
    chosen = settings_of(settings)
    certificates = certificates_of(ca_file, cert_file, key_file)
    certificates.context()  # what is wrong with them is said before Spark starts
    with ExitStack() as stack:
        stack.enter_context(_ending_on_sigterm())
        spark = open_session(
            Path(file).stem,
            master=master,
            remote=remote,
            settings=chosen,
            log=Path(log).resolve() if log else None,
        )
        leave = _at_once if remote is None else _in_time
        stack.callback(leave, _stop, spark)
        listener = listen(spark, url, certificates)
        stack.callback(listener.close)
        stack.callback(leave, _unlisten, spark, listener)
        stack.callback(leave, _end_queries, spark)
        stack.enter_context(explained(spark, is_wanted=explain))
        run_job(spark, file, arguments, url, certificates)


def _at_once(step: Callable[..., None], *about: object) -> None:
    step(*about)


def _in_time(step: Callable[..., None], *about: object) -> None:
    """Takes a step of leaving a server, and goes on where that takes too long."""
    thread = threading.Thread(target=step, args=about, daemon=True)
    thread.start()
    thread.join(LEAVE_S)


def _end_queries(spark: SparkSession) -> None:
    """Ends what still runs: a server elsewhere might go on with it."""
    with suppress(Exception):  # its JVM, or its server, may have gone before
        for query in spark.streams.active:
            query.stop()


def _unlisten(spark: SparkSession, listener: StreamingQueryListener) -> None:
    with suppress(Exception):  # its JVM, or its server, may have gone before
        spark.streams.removeListener(listener)


def _stop(spark: SparkSession) -> None:
    with suppress(Exception):  # its JVM may have gone before
        spark.stop()


@contextmanager
def _ending_on_sigterm() -> Iterator[None]:
    """Ends at SIGTERM as at Ctrl-C: Spark's processes end with this one."""

    def interrupt(number: int, frame: object) -> None:
        del number, frame
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
