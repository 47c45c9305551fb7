"""`cogwork passwd`: the block it prints is one that the configuration takes."""

from __future__ import annotations

import io
import json
import tomllib

import pytest

from cogwork.cli.main import run
from cogwork.config.password_hash import verify
from cogwork.config.reading import parse
from cogwork.sasl.verifier import HASHES, derive, parse_verifier


@pytest.mark.parametrize("text", ["wonderland\nnot this\n", "\ufeffwonderland\r\n", "wonderland"])
def test_the_block_holds_the_hash_of_the_first_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert run(["passwd", 'Ål"ice\\']) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "wonderland" not in out
    (user,) = parse(out).users
    assert user.name == 'Ål"ice\\'
    assert user.password_hash is not None
    assert verify(user.password_hash, "wonderland")
    found = [parse_verifier(line) for line in user.scram_verifiers]
    assert {each.hash_name: each.iterations for each in found} == HASHES
    for each in found:
        keys = derive(each.hash_name, "wonderland", each.salt, each.iterations)
        assert keys.server_key == each.server_key
    assert "permissions" not in tomllib.loads(out)["user"][0]


def test_at_a_terminal_the_password_is_asked_for_on_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    answers = iter(["wonderland", "wonderland"])
    monkeypatch.setattr("click.termui.hidden_prompt_func", lambda _: next(answers))
    assert run(["passwd", "alice"]) == 0
    (user,) = parse(capsys.readouterr().out).users
    assert user.password_hash is not None
    assert verify(user.password_hash, "wonderland")


def test_programs_get_the_block_as_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("wonderland\n"))
    assert run(["passwd", 'Ål"ice\\', "--json"]) == 0
    user = json.loads(capsys.readouterr().out)
    assert user["name"] == 'Ål"ice\\'
    assert verify(user["password_hash"], "wonderland")
    assert "permissions" not in user


@pytest.mark.parametrize("line", ["", "\n", "a\0b\n"])
def test_an_unusable_password_is_refused(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(line))
    assert run(["passwd", "alice"]) == 2
    assert "the password is empty, or holds a NUL" in capsys.readouterr().err
