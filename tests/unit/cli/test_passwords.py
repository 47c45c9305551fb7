"""Passwords of commands: from files, stdin and the environment, and never shown."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from cogwork.cli.commands.serve import _kept_out
from cogwork.cli.options.passwords import (
    hide,
    password_option,
    read_password,
    with_password,
    with_passwords,
)
from cogwork.client import InvalidUrlError
from cogwork.client.connection.url import endpoints_of, with_login

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "p@ss word"


@click.command()
@click.argument("url")
@password_option
def shown(url: str) -> None:
    found = [each.password for each in with_passwords(url)]
    assert [each.password for each in endpoints_of(with_password(url))] == found
    click.echo("\n".join(found))


def said(*words: str, stdin: str | None = None) -> str:
    result = CliRunner().invoke(shown, words, input=stdin, catch_exceptions=True)
    return result.output


def test_the_environment_gives_the_password_of_who_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COGWORK_PASSWORD", SECRET)
    assert said("amqp://alice@a,amqp://bob:own@b,amqp://c") == f"{SECRET}\nown\n\n"


def test_a_file_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COGWORK_PASSWORD", "other")
    file = tmp_path / "pw"
    file.write_text(f"{SECRET}\nnot this\n")
    assert said("unix://alice@/run/x", "--password-file", str(file)) == f"{SECRET}\n"


def test_a_dash_reads_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COGWORK_PASSWORD", raising=False)
    assert said("amqp://alice@a", "--password-file", "-", stdin=f"{SECRET}\n") == f"{SECRET}\n"


@pytest.mark.parametrize(
    ("url", "file", "message"),
    [
        ("amqp://a", "pw", "needs a user without a password in URL"),
        ("amqp://alice:own@a", "pw", "needs a user without a password in URL"),
        ("amqp://alice@a", "away", "No such file or directory"),
        ("amqp://alice@a", "empty", "found nothing in"),
    ],
)
def test_a_password_file_that_is_of_no_use_is_an_error(
    tmp_path: Path, url: str, file: str, message: str
) -> None:
    (tmp_path / "pw").write_text("hidden")
    (tmp_path / "empty").touch()
    output = " ".join(said(url, "--password-file", str(tmp_path / file)).split())
    assert message in output
    assert "hidden" not in output


def test_messages_hide_logins() -> None:
    assert hide("amqp://alice:own@a:1,amqps://b") == "amqp://a:1, amqps://b:5671"


def test_workers_get_passwords_of_links_by_their_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("COGWORK_LINK_PASSWORD_1", raising=False)
    given = ("a:1", "amqps://north:p%40ss@b:2", "amqps://north:${OWN}@c", "amqp://d")
    kept = _kept_out(given)
    monkeypatch.setenv("COGWORK_LINK_PASSWORD_1", os.environ.pop("COGWORK_LINK_PASSWORD_1"))
    assert kept == (given[0], "amqps://north:${COGWORK_LINK_PASSWORD_1}@b:2", *given[2:])
    assert os.environ["COGWORK_LINK_PASSWORD_1"] == "p@ss"


def test_programs_give_a_login_beside_the_url() -> None:
    found = with_login(["amqp://a", "amqp://bob@b", "amqp://c:own@c"], "alice", SECRET)
    assert [(each.user, each.password) for each in found] == [
        ("alice", SECRET),
        ("bob", SECRET),
        ("c", "own"),
    ]
    assert SECRET not in repr(found)
    with pytest.raises(InvalidUrlError, match="needs a user"):
        with_login("amqp://a", None, SECRET)


def test_stdin_is_read_no_further_than_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.TextIOWrapper(io.BufferedReader(io.BytesIO(b"secret\nthe message\n")))
    monkeypatch.setattr("sys.stdin", raw)
    assert read_password("-") == "secret"
    assert raw.read() == "the message\n"
