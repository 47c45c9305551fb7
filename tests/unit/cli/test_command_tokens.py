"""Tokens of commands: from files and the environment, read anew, and never shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.testing import CliRunner

from cogwork.cli.options.tokens import given_token, token_option

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


@click.command()
@token_option
def shown() -> None:
    token = given_token()
    click.echo(token() if callable(token) else token)


def said(*words: str) -> str:
    return " ".join(CliRunner().invoke(shown, words).output.split())


def test_a_file_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("COGWORK_TOKEN", raising=False)
    assert said() == ""
    monkeypatch.setenv("COGWORK_TOKEN", "a.b.c")
    assert said() == "a.b.c"
    file = tmp_path / "token"
    file.write_text("d.e.f\n")
    assert said("--token-file", str(file)) == "d.e.f"


def test_a_file_is_read_for_each_connection(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first")

    @click.command()
    @token_option
    def twice() -> None:
        token = given_token()
        assert callable(token)
        found = [token()]
        file.write_text("second")
        click.echo(f"{found[0]} {token()}")

    assert CliRunner().invoke(twice, ["--token-file", str(file)]).output == "first second\n"


def test_what_is_no_token_is_said_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text("not one\n")
    assert "holds no token" in said("--token-file", str(file))
    assert "No such file" in said("--token-file", str(tmp_path / "none"))
    monkeypatch.setenv("COGWORK_TOKEN", "not one")
    assert "COGWORK_TOKEN holds no token" in said()
    assert "not one" not in said() + said("--token-file", str(file))
