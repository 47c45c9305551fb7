"""`cogwork pipeline run`: a user's own PySpark job."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cogwork.cli.commands.pipelines.extra import needs_the_extra
from cogwork.cli.commands.pipelines.job_report import told_as_json
from cogwork.cli.commands.pipelines.session import leave, spark_session
from cogwork.cli.commands.pipelines.spark_options import (
    explain_option,
    explained,
    settings_of,
    spark_options,
    where_spark_runs,
)
from cogwork.cli.options.certificates import certificate_options, certificates_of
from cogwork.cli.options.passwords import with_password

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ("run",)

FILE = click.Path(exists=True, dir_okay=False)


@click.command(context_settings={"allow_interspersed_args": False})
@click.argument("file", type=FILE, metavar="FILE.py")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[ARG]...")
@click.option(
    "--url",
    default="amqp://localhost",
    show_default=True,
    help="Container that the job reads from and writes to.",
)
@certificate_options
@spark_options
@explain_option
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the result as JSON; the job's output goes to stderr.",
)
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
    as_json: bool,
    ca_file: str | None,
    cert_file: str | None,
    key_file: str | None,
) -> None:
    """Run your own PySpark job.

    FILE.py can use `spark`, `url` and the functions `source`, `live`, `sink` and `live_sink`.
    ARGUMENTS are passed to it; options of this command come before FILE.py.
    """
    where_spark_runs(master, remote)
    chosen = settings_of(settings)
    certificates = certificates_of(ca_file, cert_file, key_file)
    url = with_password(url)
    with ExitStack() as stack:
        report = stack.enter_context(told_as_json(file)) if as_json else None
        with needs_the_extra():
            from cogwork.pipeline.spark.job import check_job, run_job
            from cogwork.pipeline.spark.listener import listen, unlisten
        check_job(file)
        certificates.context()  # what is wrong with them is said before Spark starts
        spark = stack.enter_context(
            spark_session(
                Path(file).stem,
                master=master,
                remote=remote,
                settings=chosen,
                log=Path(log).resolve() if log else None,
            )
        )
        listener = listen(spark, url, certificates)
        if report is not None:
            report.runs = listener.runs
        stack.callback(leave, spark, lambda: unlisten(spark, listener))
        stack.callback(leave, spark, lambda: _end_queries(spark))
        stack.enter_context(explained(spark, is_wanted=explain))
        run_job(spark, file, arguments, url, certificates, runs=listener.runs)


def _end_queries(spark: SparkSession) -> None:
    """End what still runs: a server elsewhere might go on with it."""
    for query in spark.streams.active:
        query.stop()
