"""`--log-format`: how the records of a log are written."""

from __future__ import annotations

import click

__all__ = ("FORMATS", "log_format")

FORMATS = ("text", "json")


def _is_json(_context: click.Context, _parameter: click.Parameter, value: str) -> bool:
    return value == "json"


log_format = click.option(
    "--log-format",
    "logs_json",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    callback=_is_json,
    help="Form of the log on stderr: lines of text, or a JSON object a line.",
)
