"""The options that every command with a Spark session has."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from pyspark.sql import SparkSession

__all__ = (
    "explain_option",
    "explained",
    "master_option",
    "settings_of",
    "spark_options",
    "where_spark_runs",
)

C = TypeVar("C", bound="Callable[..., Any]")

master_option = click.option(
    "--master",
    show_default="all cores of this machine",
    help="Spark master: local[2], spark://HOST:PORT.",
)

OPTIONS = (
    master_option,
    click.option("--remote", help="Spark Connect server to use instead, sc://HOST:PORT."),
    click.option(
        "--set", "settings", multiple=True, metavar="K=V", help="Spark setting; repeatable."
    ),
    click.option("--log", type=click.Path(dir_okay=False), help="Spark's log file."),
)


explain_option = click.option(
    "--explain", is_flag=True, help="Print Spark's plan of each action to stderr."
)


def explained(session: SparkSession, *, is_wanted: bool) -> AbstractContextManager[None]:
    """Show on stderr what Spark makes of each action, for the length of a `with`."""
    from cogwork.pipeline.spark.job import explaining

    if not is_wanted:
        return nullcontext()
    return explaining(session, lambda plan: click.echo(plan, err=True))


def spark_options(command: C) -> C:
    """Add them to a command; they arrive as `master`, `remote`, `settings` and `log`."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def where_spark_runs(master: str | None, remote: str | None) -> None:
    """See whether a command line says one place for Spark, or none.

    Raises:
        click.UsageError: It says two.
    """
    if master is not None and remote is not None:
        raise click.UsageError("--master and --remote exclude each other")


def settings_of(pairs: tuple[str, ...]) -> dict[str, str]:
    """Read `K=V`.

    Raises:
        click.UsageError: A pair is none.
    """
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise click.UsageError(f"{pair!r} is not of the form K=V")
        found[key] = value
    return found
