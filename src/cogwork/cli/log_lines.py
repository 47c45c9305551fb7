"""The log of a container: a record is a line, whatever peers have written into it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from cogwork.cli.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ("Lines", "start_log")

LENGTH_MAX = 4000
"""Characters of a line: what a peer says takes no more of a disk."""


class Lines(logging.Filter):
    """Escapes what would make another line of a peer's words, or do something to a terminal."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Has a record say what can be seen of it; the lines of a traceback are its own."""
        record.msg, record.args = visible(shortened(record.getMessage())), None
        if record.exc_info and not record.exc_text:
            traceback = logging.Formatter().formatException(record.exc_info)
            record.exc_text = "\n".join(map(visible, traceback.split("\n")))
        return True


def shortened(text: str) -> str:
    """Cuts what is longer than anybody reads, as a peer's description can be."""
    return text if len(text) <= LENGTH_MAX else f"{text[: LENGTH_MAX - 1]}…"


def start_log(whose: str = "", warnings: Iterable[str] = ()) -> None:
    """Has the process log to its standard error.

    Args:
        whose: What every line begins with, where several processes write to one place.
        warnings: What there is to say already.
    """
    prefix = f"{whose} ".replace("%", "%%") if whose else ""
    handler = logging.StreamHandler()
    handler.addFilter(Lines())
    form = f"{prefix}%(asctime)s %(levelname)s %(message)s"
    logging.basicConfig(level=logging.INFO, format=form, handlers=[handler])
    for warning in warnings:
        logging.getLogger("cogwork").warning("%s", warning)
