"""Messages as text and as JSON, whatever AMQP types they hold."""

from __future__ import annotations

import io
import json
import uuid
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from rich.console import Console

from cogwork.amqp.message import Data, Header, Properties, Sections, Sequence, Value
from cogwork.amqp.types import Array, Char, Described, Symbol, Timestamp, UInt, ULong
from cogwork.cli.commands.stream import show_row as show_stream
from cogwork.cli.main import run
from cogwork.cli.terminal.rendering import jsonable, message_as_json, message_as_text
from cogwork.cli.terminal.tables import console, table
from cogwork.testing import container

ID = uuid.UUID("12345678-1234-5678-1234-567812345678")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (UInt(7), 7),
        (1.5, 1.5),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        ("text", "text"),
        (Symbol("symbol"), "symbol"),
        (Char("☂"), "☂"),
        (b"text", "text"),
        (b"\xff\x00", {"base64": "/wA="}),
        (Decimal("1.10"), "1.10"),
        (ID, str(ID)),
        (datetime(2013, 1, 1, tzinfo=UTC), "2013-01-01T00:00:00+00:00"),
        (Timestamp(0), "1970-01-01T00:00:00+00:00"),
        (Timestamp(2**62), 2**62),
        ([1, b"\xff"], [1, {"base64": "/w=="}]),
        ({Symbol("k"): [ID], ULong(3): None}, {"k": [str(ID)], "3": None}),
        (Array([1, 2], int), [1, 2]),
        (Described(Symbol("d"), 5), {"descriptor": "d", "value": 5}),
    ],
)
def test_every_type_has_a_form_in_json(value: object, expected: object) -> None:
    assert jsonable(value) == expected
    assert json.loads(json.dumps(jsonable(value))) == expected


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (Value("JFK → LAX"), "JFK → LAX"),
        (Data([b"two ", b"parts"]), "two parts"),
        (Value({"delay": 5}), '{"delay": 5}'),
        (Sequence([[1], [2, 3]]), "[1, 2, 3]"),
        (Value(None), "null"),
        (None, "null"),
    ],
)
def test_a_body_as_text(body: Value | Data | Sequence | None, text: str) -> None:
    assert message_as_text(Sections(body=body)) == text


def test_a_whole_message_is_one_line() -> None:
    message = Sections(
        header=Header(durable=True),
        message_annotations={Symbol("x-opt-offset"): 5},
        properties=Properties(subject="a\nb", message_id=ID),
        application_properties={"k": "v"},
        body=Value("hello"),
    )
    line = message_as_json(message)
    assert "\n" not in line
    decoded = json.loads(line)
    assert decoded["header"]["durable"] is True
    assert decoded["message_annotations"] == {"x-opt-offset": 5}
    assert decoded["properties"] == {"subject": "a\nb", "message_id": str(ID)}
    assert decoded["application_properties"] == {"k": "v"}
    assert decoded["body"] == "hello"
    assert "delivery_annotations" not in decoded


def test_tables_escape_what_would_move_the_cursor() -> None:
    screen = Console(width=80, record=True, file=io.StringIO())
    for part in table("streams", {"address": "stream"}, [{"address": "a\n\x1b[2Jb ü"}], 1):
        screen.print(part)
    assert "a\\n\\x1b[2Jb ü" in screen.export_text()


def test_what_a_stream_is_called_does_nothing_to_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = "a\x1b[2J[bold]b"
    counts = ("records", "first", "next", "epoch", "size_bytes", "records_per_s", "bytes_per_s")
    here = ("appended", "rejected", "returned", "missed", "pending_bytes", "consumers")
    show_stream(
        dict.fromkeys((*counts, *here), 0)
        | {"address": name, "state": "open", "engine": name, "durability": "memory"}
        | {"problem": name, "voters": [name], "learners": [], "leader": name, "wanted": []}
        | {"wanted_learners": [], "moving": False, "options": {"home": name, "capture": [name]}}
    )
    shown = capsys.readouterr().out
    assert shown.count("a\\x1b[2J[bold]b") == 7
    assert "\x1b" not in shown


@pytest.mark.parametrize("text", ["amqp://[fd00::2]:5672", "cogwork[etcd]", "a[/b]", "v:cat:x"])
def test_what_stands_in_brackets_or_between_colons_is_printed_as_it_is(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    screen = console()
    screen.print(text)
    for part in table(text, {"text": text}, [{"text": text}], 1):
        screen.print(part)
    assert capsys.readouterr().out.count(text) == 4


@pytest.mark.parametrize("command", ["status", "mesh"])
def test_a_container_may_have_brackets_in_its_name(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with container(id="a[/b]") as url:
        assert run([command, url]) == 0
    assert "a[/b]" in capsys.readouterr().out
