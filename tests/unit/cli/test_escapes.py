"""What stdout has no octets for is written as JSON writes it, whatever the locale."""

from __future__ import annotations

import io
import json

import pytest

from cogwork.cli.terminal.escapes import escape_what_cannot_be_written


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
@pytest.mark.parametrize("text", ["\ud800", "a\udc80\ud83d b", "\u2013", "ü"])
def test_json_stays_json(text: str, encoding: str, errors: str) -> None:
    octets = io.BytesIO()
    stream = io.TextIOWrapper(octets, encoding=encoding, errors=errors)
    escape_what_cannot_be_written(stream)
    stream.write(json.dumps({"error": text}, ensure_ascii=False))
    stream.flush()
    assert json.loads(octets.getvalue().decode(encoding)) == {"error": text}


def test_what_somebody_has_chosen_stays() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="replace")
    escape_what_cannot_be_written(stream)
    assert stream.errors == "replace"
    escape_what_cannot_be_written(io.StringIO())
