"""What peers say stands in the log as what they said, and as nothing else."""

from __future__ import annotations

import io
import logging

from cogwork.cli.process.log_lines import Lines

FORGED = "bye\n2026-01-01 00:00:00,000 ERROR all is lost\x1b[2J"
SHOWN = "bye\\n2026-01-01 00:00:00,000 ERROR all is lost\\x1b[2J"


def logged(text: str, error: Exception | None = None) -> str:
    output = io.StringIO()
    handler = logging.StreamHandler(output)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    handler.addFilter(Lines())
    record = logging.LogRecord("cogwork", logging.INFO, "", 0, "closed: %s", (text,), None)
    if error is not None:
        record.exc_info = (type(error), error, error.__traceback__)
    handler.handle(record)
    return output.getvalue()


def test_a_record_is_a_line() -> None:
    assert logged(FORGED) == f"INFO closed: {SHOWN}\n"
    assert logged("ö") == "INFO closed: ö\n"


def test_a_traceback_does_nothing_to_a_terminal() -> None:
    lines = logged("x", ValueError("a\x1b[2J\rb")).splitlines()
    assert lines == ["INFO closed: x", "ValueError: a\\x1b[2J\\rb"]


def test_a_line_ends_somewhere() -> None:
    line = logged("x" * 100_000)
    assert len(line) < 4100
    assert line.endswith("x…\n")
    assert logged("x" * 3000) == f"INFO closed: {'x' * 3000}\n"
