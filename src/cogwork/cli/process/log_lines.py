"""The log of a container: a record is a line, whatever peers have written into it.

It goes to standard error through a thread of its own, so that its reader never stops the container.
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

from cogwork.cli.terminal.visible import visible
from cogwork.io.log_output import standard_error

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ("Lines", "say", "start_log")

LENGTH_MAX = 4000
"""Characters of a line: what a peer says takes no more of a disk."""


class Lines(logging.Filter):
    """Escapes what would make another line of a peer's words, or do something to a terminal."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Have a record say what can be seen of it; the lines of a traceback are its own."""
        record.msg, record.args = visible(shortened(record.getMessage())), None
        if record.exc_info and not record.exc_text:
            traceback = logging.Formatter().formatException(record.exc_info)
            record.exc_text = "\n".join(map(visible, traceback.split("\n")))
        return True


class _Handler(logging.Handler):
    """Writes records where nobody can block it."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record's line, and those of its traceback."""
        say(self.format(record))


def say(text: str) -> None:
    """Write a line to standard error, without ever waiting for its reader.

    Args:
        text: The line, without its end.
    """
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    standard_error().write(f"{text}\n".encode(encoding, errors="backslashreplace"))


def shortened(text: str) -> str:
    """Cut what is longer than anybody reads, as a peer's description can be."""
    return text if len(text) <= LENGTH_MAX else f"{text[: LENGTH_MAX - 1]}…"


def start_log(whose: str = "", warnings: Iterable[str] = ()) -> None:
    """Have the process log to its standard error.

    Args:
        whose: What every line begins with, where several processes write to one place.
        warnings: What there is to say already.
    """
    prefix = f"{whose} ".replace("%", "%%") if whose else ""
    handler = _Handler()
    handler.addFilter(Lines())
    form = f"{prefix}%(asctime)s %(levelname)s %(message)s"
    logging.basicConfig(level=logging.INFO, format=form, handlers=[handler])
    logging.captureWarnings(capture=True)
    for warning in warnings:
        logging.getLogger("cogwork").warning("%s", warning)
