"""Secrets that others could read are told as warnings."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from cogwork.config.errors import ConfigurationError
from cogwork.config.exposure import clear_passwords
from cogwork.config.password_hash import hash_password
from cogwork.config.reading import load, parse

if TYPE_CHECKING:
    from pathlib import Path

USER = f'[[user]]\nname = "ann"\npassword_hash = "{hash_password("word")}"\n'


@pytest.mark.parametrize(
    "text",
    [
        USER,
        '[[link]]\nurl = "amqp://b:secret@south.example"\n',
        '[[engine]]\nname = "redis"\noptions = { url = "redis://:secret@localhost" }\n',
    ],
)
def test_a_file_with_secrets_that_others_can_read_is_told(
    text: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "cogwork.toml"
    file.write_text(text)
    file.chmod(0o600)
    load(file)
    assert not caplog.records
    file.chmod(0o604)
    load(file)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert (
        record.getMessage() == f"{file} holds secrets and every user can read it: chmod o= {file}"
    )


def test_a_file_without_secrets_is_for_everybody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "word")
    file = tmp_path / "cogwork.toml"
    file.write_text(
        '[[user]]\nname = "ann"\n[[link]]\nurl = "amqp://b:${SECRET}@south.example:5672"\n'
    )
    file.chmod(0o644)
    load(file)
    assert not caplog.records


@pytest.mark.parametrize(
    ("listen", "is_clear"),
    [
        ('host = "0.0.0.0"', True),
        ('host = "0.0.0.0"\nsasl = ["EXTERNAL", "PLAIN"]', True),
        ('host = "::"\ntransport = "ws"', True),
        ('host = "127.0.0.1"', False),
        ('host = "0.0.0.0"\ntransport = "amqps"\ntls = { certificate = "a.pem" }', False),
    ],
)
def test_passwords_in_clear_are_told(listen: str, is_clear: bool) -> None:
    listen = listen.replace('["EXTERNAL", "PLAIN"]', '["PLAIN"]')
    configuration = parse(f"{USER}[[listen]]\nport = 5672\n{listen}\n")
    assert [("in clear" in text) for text in clear_passwords(configuration)] == [True] * is_clear


@pytest.mark.parametrize("host", ["127.evil.example", "127.0.0.1.example", "localhost.example"])
def test_a_name_that_looks_like_loopback_lets_nobody_in_without_a_name(host: str) -> None:
    with pytest.raises(ConfigurationError, match="nobody can log in"):
        parse(f'[[listen]]\nhost = "{host}"\nport = 5672\n')
    with pytest.raises(ConfigurationError, match="a loopback host"):
        parse(f'{USER}[[listen]]\nhost = "{host}"\nport = 5672\nsasl = ["ANONYMOUS"]\n')
