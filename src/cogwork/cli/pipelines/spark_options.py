"""The options that every command with a Spark session has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("settings_of", "spark_options")

C = TypeVar("C", bound="Callable[..., Any]")

OPTIONS = (
    click.option("--master", help="Spark's master; without, all cores of this machine."),
    click.option("--remote", help="A Spark Connect server instead, sc://HOST:PORT."),
    click.option("--set", "settings", multiple=True, metavar="K=V", help="A setting of Spark."),
    click.option("--log", type=click.Path(dir_okay=False), help="Where Spark logs to."),
)


def spark_options(command: C) -> C:
    """Adds them to a command; they arrive as `master`, `remote`, `settings` and `log`."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def settings_of(pairs: tuple[str, ...]) -> dict[str, str]:
    """Reads `K=V`.

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
