"""`cogwork log`: what it shows of files, and what it finds wrong with them."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from logs import Log

from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.main import run
from cogwork.log import inspection
from cogwork.log.block import Block
from cogwork.log.directory import Directory
from cogwork.log.recovery import Recovery
from cogwork.log.segment import Segment, segment_name
from cogwork.log.segment_store import SegmentStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cogwork.log.record import Record

DAY_MS = 1_763_712_000_000


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Make a directory with a log of six files and a stream of three segments."""
    log = Log(tmp_path / "log", file_bytes=4096)
    for number in range(30):
        log.put(bytes(500), group=1 + number % 2)
    with Directory(tmp_path / "streams" / "orders") as directory:
        store = SegmentStore(directory, log.queue, b"sixteen octets!!")
        for number in range(3):
            block = Block(10 * number, 10, DAY_MS + number, b"x" * 1000)
            log.queue.run(store.sealing([block]))
    log.close()
    return tmp_path


def damage(file: Path, position: int) -> None:
    octets = bytearray(file.read_bytes())
    octets[position] ^= 0x10
    file.write_bytes(octets)


def segment_of(data: Path, first: int) -> Path:
    return data / "streams" / "orders" / segment_name(first)


def test_what_is_there_is_shown(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["log", "inspect", str(data)]) == ExitCode.OK
    shown = capsys.readouterr().out
    assert "write-ahead log" in shown
    assert "north" in shown
    assert "segments (3)" in shown
    assert "2025-11-21T08:00:00.002+00:00" in shown
    assert "problem" not in shown


def test_json_has_every_file(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["log", "inspect", "--json", str(data)]) == ExitCode.OK
    rows = json.loads(capsys.readouterr().out)
    logs = [row for row in rows if row["format"] == "write-ahead log"]
    segments = [row for row in rows if row["format"] == "segment"]
    assert sum(row["records"] for row in logs) == 30
    assert sum(row["groups"].get("2", 0) for row in logs) == 15
    assert [row["number"] for row in logs] == list(range(1, len(logs) + 1))
    assert [row["is_ended"] for row in logs[:-2]] == [True] * (len(logs) - 2)
    assert [(row["first_offset"], row["next_offset"]) for row in segments] == [
        (0, 10),
        (10, 20),
        (20, 30),
    ]
    assert segments[0]["stream"] == b"sixteen octets!!".hex()


def test_one_file_is_shown_alone(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["log", "inspect", "--json", str(segment_of(data, 10))]) == ExitCode.OK
    (row,) = json.loads(capsys.readouterr().out)
    assert row["first_offset"] == 10


def test_sound_files_are_said_to_be(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {file: file.read_bytes() for file in data.rglob("*.*")}
    assert run(["log", "verify", str(data)]) == ExitCode.OK
    assert f"{len(before)} files are sound" in capsys.readouterr().out
    for file in before:
        assert run(["log", "verify", str(file)]) == ExitCode.OK
    assert {file: file.read_bytes() for file in data.rglob("*.*")} == before


def test_damage_is_told_with_its_place(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damage(segment_of(data, 10), 300)
    damage(data / "log" / "0000000002.wal", 700)
    assert run(["log", "verify", "--json", str(data)]) == ExitCode.ERROR
    found = json.loads(capsys.readouterr().out)["problems"]
    assert [(Path(each["file"]).name, each["position"]) for each in found] == [
        ("0000000002.wal", 128 + 529 + 37),
        (segment_name(10), 64),
    ]
    assert run(["log", "verify", str(data)]) == ExitCode.ERROR
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("cogwork: ") for line in lines)


def test_damage_of_one_file_alone_is_found(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = data / "log" / "0000000002.wal"
    damage(file, 700)
    assert run(["log", "verify", str(file)]) == ExitCode.ERROR
    assert "damaged at position 694" in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["log/0000000002.wal", f"streams/orders/{segment_name(10)}"])
def test_a_missing_file_is_told(
    data: Path, capsys: pytest.CaptureFixture[str], missing: str
) -> None:
    (data / missing).unlink()
    assert run(["log", "verify", str(data)]) == ExitCode.ERROR
    assert f"{missing} is missing" in capsys.readouterr().err


def test_a_file_that_cannot_be_read_is_a_row_with_its_problem(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(segment_of(data, 10), 9)
    assert run(["log", "inspect", str(data)]) == ExitCode.ERROR
    shown = " ".join(capsys.readouterr().out.split())
    assert "format version 17" in shown


@pytest.mark.parametrize("command", ["inspect", "verify"])
def test_a_stream_that_is_deleted_while_it_is_looked_at_is_left_out(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    stream = data / "streams" / "orders"

    class Gone(Segment):
        def __init__(self, directory: Directory, name: str) -> None:
            shutil.rmtree(stream)
            super().__init__(directory, name)

    monkeypatch.setattr(inspection, "Segment", Gone)
    assert run(["log", command, "--json", str(data)]) == ExitCode.OK
    found = json.loads(capsys.readouterr().out)
    assert len(found) == 6 if command == "inspect" else found == {"files": 6, "problems": []}
    assert not stream.exists(), "who only looks makes no directory"


@pytest.mark.parametrize("changes", [2, 3])
def test_a_log_that_goes_on_is_read_again_and_not_called_damaged(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, changes: int
) -> None:
    needless = data / "log" / "0000000000.wal"
    seen = 0

    class Going(Recovery):
        """Of a log whose oldest file goes, and comes, while it is read."""

        def records(self) -> Iterator[Record]:
            nonlocal seen
            seen += 1
            if seen > changes:
                return super().records()
            if needless.exists():
                needless.unlink()
            else:
                needless.touch()
            raise FileNotFoundError(needless)

    monkeypatch.setattr(inspection, "Recovery", Going)
    code = run(["log", "verify", str(data)])
    out, err = capsys.readouterr()
    if changes < inspection.ATTEMPTS:
        assert (code, out, err) == (ExitCode.OK, "9 files are sound\n", "")
    else:
        assert (code, out) == (ExitCode.ERROR, "")
        assert "goes on more quickly than it is read" in err


def test_what_is_no_log_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["log", "verify", str(tmp_path)]) == ExitCode.USAGE
    assert "no log files" in capsys.readouterr().err
    file = tmp_path / "notes.txt"
    file.write_text("not a log, but long enough to be one" * 10)
    assert run(["log", "verify", str(file)]) == ExitCode.ERROR
    assert "no file of a write-ahead log" in capsys.readouterr().err
    assert run(["log", "inspect", str(tmp_path / "nowhere")]) == ExitCode.USAGE


def test_what_may_not_be_looked_into_is_not_called_sound(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def scandir(path: str, scan: Callable[[str], object] = os.scandir) -> object:
        if Path(path).name == "orders":
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert run(["log", "verify", str(data)]) == ExitCode.ERROR
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"cogwork: {data / 'streams' / 'orders'}: Permission denied\n")
