"""The log of a container: a record is a line, whatever peers have written into it.

It goes to standard error through a thread of its own, so that its reader never stops the container.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cogwork.cli.terminal.visible import visible
from cogwork.io.log_output import standard_error

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ("Lines", "say", "start_log")

TRACE_FIELDS = ("trace_id", "span_id", "trace_flags")
"""What `cogwork.otel.TraceIds` adds to records, by OpenTelemetry's names."""

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


class _Json(logging.Formatter):
    """Writes a record as a JSON object on a line of its own."""

    def __init__(self, whose: str) -> None:
        """Know whose log it is.

        Args:
            whose: The process that logs, where several write to one place; else empty.
        """
        super().__init__()
        self._whose = whose

    def format(self, record: logging.LogRecord) -> str:
        """Return a record's line; ids of a trace are in it where the record has them."""
        entry = _entry(record.created, record.levelname, record.name, record.getMessage())
        if self._whose:
            entry["process"] = self._whose
        if record.exc_text:
            entry["exception"] = record.exc_text
        for name in TRACE_FIELDS:
            if value := getattr(record, name, ""):
                entry[name] = value
        return json.dumps(entry, ensure_ascii=False)


def _entry(moment_s: float, level: str, name: str, message: str) -> dict[str, object]:
    time = datetime.fromtimestamp(moment_s, UTC).isoformat(timespec="milliseconds")
    return {"time": time.replace("+00:00", "Z"), "level": level, "logger": name, "message": message}


def _dropped(count: int) -> str:
    """Return the line that tells how many lines nobody read in time."""
    text = f"{count:,} lines of the log were dropped: nobody read them in time"
    return json.dumps(_entry(datetime.now(UTC).timestamp(), "WARNING", "cogwork", text))


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


def start_log(whose: str = "", warnings: Iterable[str] = (), *, as_json: bool = False) -> None:
    """Have the process log to its standard error.

    Args:
        whose: What every line begins with, where several processes write to one place.
        warnings: What there is to say already.
        as_json: Whether a record is a JSON object.
    """
    prefix = f"{whose} ".replace("%", "%%") if whose else ""
    handler = _Handler()
    handler.addFilter(Lines())
    form = f"{prefix}%(asctime)s %(levelname)s %(message)s"
    if as_json:
        handler.setFormatter(_Json(whose))
        standard_error().line_of = _dropped
    logging.basicConfig(level=logging.INFO, format=form, handlers=[handler])
    logging.captureWarnings(capture=True)
    for warning in warnings:
        logging.getLogger("cogwork").warning("%s", warning)
