"""The security log: its table, its floods, and its places."""

from __future__ import annotations

import ast
import json
import os
import re
import socket
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cogwork.config.errors import ConfigurationError
from cogwork.config.reading import parse
from cogwork.config.security_log_settings import SecurityLogOptions
from cogwork.container.security.flood import WINDOW_S, Flood
from cogwork.container.security.kinds import KIND_MAX, KINDS, PEER_MAX, WHO
from cogwork.container.security.log import TEXT_MAX, TEXTS_MAX, SecurityLog
from cogwork.container.security.outputs import SecurityLogError

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[4]
PAGE = ROOT / "docs" / "security-log.md"
BY_LOG = {"left_out", "dropped"}
"""Events of the log's own."""


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def opened(path: Path) -> SecurityLog:
    found = SecurityLog("box", SecurityLogOptions(to="file", path=str(path)))
    found.open()
    return found


def calls() -> Iterator[tuple[str, set[str]]]:
    """Yield each event that the code tells, with its fields."""
    for path in (ROOT / "src" / "cogwork").rglob("*.py"):
        if ".event(" not in path.read_text():
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if node.func.attr == "event" and "security" in ast.unparse(node.func.value):
                assert isinstance(node.args[0], ast.Constant)
                assert isinstance(node.args[0].value, str)
                named = {each.arg for each in node.keywords if each.arg is not None}
                others = any(each.arg is None for each in node.keywords)
                yield node.args[0].value, named | (set(WHO) if others else set())


def test_every_event_is_told_with_the_fields_of_the_table() -> None:
    told = dict(calls())
    assert set(told) | BY_LOG == set(KINDS)
    of_requests = {"operation", "type", "name", "vhost"}
    for kind, fields in told.items():
        more = of_requests if kind.startswith("management") else set()
        assert fields | more == set(KINDS[kind].fields), kind


def test_the_page_has_every_event_with_its_fields() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+) \|$", PAGE.read_text(), re.MULTILINE)
    shown = {name: (meaning, re.findall(r"`(\w+)`", fields)) for name, meaning, fields in rows}
    there = {name: (kind.meaning, list(kind.fields)) for name, kind in KINDS.items()}
    assert {name: each for name, each in shown.items() if name in there} == there


def test_the_page_has_the_bounds() -> None:
    text = PAGE.read_text()
    assert f"In each {WINDOW_S:g} seconds at most {KIND_MAX} events of a kind" in text
    assert f"and {PEER_MAX} of one peer's address" in text
    assert f"at most {TEXT_MAX} characters" in text


def test_one_peer_hides_nobody_else() -> None:
    flood = Flood()
    list(flood.turn(0.0))
    loud = sum(flood.admits("login_refused", "10.0.0.1") for _ in range(10_000))
    assert loud == PEER_MAX
    assert flood.admits("login_refused", "10.0.0.2")
    assert list(flood.turn(WINDOW_S - 1)) == []
    assert list(flood.turn(WINDOW_S)) == [("login_refused", 10_000 - PEER_MAX)]
    assert flood.admits("login_refused", "10.0.0.1")


def test_many_peers_do_not_fill_the_disk() -> None:
    flood = Flood()
    peers = [f"2001:db8::{number:x}" for number in range(10_000)]
    assert sum(flood.admits("login_refused", peer) for peer in peers) == KIND_MAX
    assert flood.admits("reloaded", "None"), "other kinds go on"
    assert list(flood.turn(0.0)) == [("login_refused", 10_000 - KIND_MAX)]


def test_a_flood_from_many_ports_is_one_peers(tmp_path: Path) -> None:
    path = tmp_path / "security.log"
    log = opened(path)
    log.tick(0.0)
    for port in range(100):
        log.event(
            "attach_refused",
            **dict.fromkeys(KINDS["attach_refused"].fields) | {"peer": f"10.0.0.1:{port}"},
        )
    log.tick(WINDOW_S)
    log.close()
    *told, last = lines_of(path)
    assert len(told) == PEER_MAX
    assert (last["event"], last["of"], last["count"]) == ("left_out", "attach_refused", 90)


def test_words_of_a_peer_are_cut_and_make_no_line(tmp_path: Path) -> None:
    path = tmp_path / "security.log"
    log = opened(path)
    hostile = '\n{"event": "login"}\x1b[31m\u202e\u2028\udcff' + "x" * 10_000
    log.event("reload_refused", reason=hostile)
    log.event("reloaded", changes=[hostile] * 1000)
    log.close()
    data = path.read_bytes()
    assert data.isascii()
    assert b"\x1b" not in data
    one, many = lines_of(path)
    assert len(one["reason"]) == TEXT_MAX
    assert len(many["changes"]) == TEXTS_MAX + 1
    assert many["changes"][-1] == "and 900 more"


def test_a_file_is_the_owners_and_is_opened_anew(tmp_path: Path) -> None:
    path = tmp_path / "security.log"
    log = opened(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    log.event("started", version="1")
    moved = path.rename(tmp_path / "security.log.1")
    log.event("started", version="2")
    log.reopen()
    log.event("started", version="3")
    log.close()
    versions = [each["version"] for file in (moved, path) for each in lines_of(file)]
    assert versions == ["1", "2", "3"]
    assert lines_of(path)[-1]["version"] == "3"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert log.facts() == {"to": "file", "written": 3, "left_out": 0, "dropped": 0}


def test_a_file_that_cannot_be_opened_anew_goes_on_in_the_old_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    log = opened(folder / "security.log")
    moved = folder.rename(tmp_path / "old")
    log.reopen()
    log.event("started", version="1")
    log.close()
    assert [each["event"] for each in lines_of(moved / "security.log")] == ["started"]
    assert f"cannot write the security log to '{folder}/security.log'" in caplog.text


@pytest.mark.parametrize("to", ["file", "journald"])
def test_a_place_that_is_none_is_refused(tmp_path: Path, to: Any) -> None:
    log = SecurityLog("box", SecurityLogOptions(to=to, path=str(tmp_path / "away" / "x")))
    with pytest.raises(SecurityLogError, match="No such file or directory"):
        log.open()


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(SecurityLogError, match="expected a regular file"):
        opened(tmp_path / "pipe")
    os.close(reader)


def test_journald_gets_fields_and_what_it_does_not_take_is_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal:
        journal.bind(path)
        log = SecurityLog("box", SecurityLogOptions(to="journald", path=path))
        log.open()
        log.event("started", version="1")
        fields = dict(line.split("=", 1) for line in journal.recv(65_536).decode().splitlines())
        assert json.loads(fields.pop("MESSAGE"))["version"] == "1"
        assert fields == {
            "PRIORITY": "5",
            "SYSLOG_IDENTIFIER": "cogwork",
            "COGWORK_EVENT": "started",
        }
    Path(path).unlink()
    log.event("stopped")
    log.tick(0.0)
    assert log.facts() == {"to": "journald", "written": 2, "left_out": 0, "dropped": 1}
    assert "the security log loses events" in caplog.text
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal:
        journal.bind(path)
        log.event("stopped")
        assert b"stopped" in journal.recv(65_536), "journald was started anew"
    log.close()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('to = "file"', "security_log.path: found nothing, expected the name of the file"),
        ('to = "stream"\npath = "x"', 'security_log.path: found "x", expected no path'),
        ('to = "syslog"', 'security_log.to: found "syslog", expected one of "file", "journald"'),
    ],
)
def test_a_mistake_in_the_configuration_is_told(text: str, expected: str) -> None:
    with pytest.raises(ConfigurationError) as failure:
        parse(f"[security_log]\n{text}\n")
    assert expected in str(failure.value)
