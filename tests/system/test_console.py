"""`cogwork console`: a process that serves pages, and what it refuses to start with."""

from __future__ import annotations

import json
import signal
import ssl
import urllib.request
from typing import TYPE_CHECKING

import pytest
import trustme

from cogwork.testing import container

from .served import ran, started

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

ANSWER_TIMEOUT_S = 20.0


def first_page(options: Sequence[str], tls: ssl.SSLContext | None = None) -> tuple[str, str]:
    """Start a console, load its first page and end it; return its URL and the page."""
    with container() as url, started("console", url, "--json", *options) as process:
        assert process.stdout is not None
        home = json.loads(process.stdout.readline())["url"]
        with urllib.request.urlopen(home, timeout=ANSWER_TIMEOUT_S, context=tls) as answer:
            assert answer.headers["server"] is None
            text = answer.read().decode()
        process.send_signal(signal.SIGTERM)
        process.communicate()
    assert process.returncode == 0
    return home, text


def test_it_serves_its_form_until_it_is_stopped() -> None:
    home, text = first_page(["--listen", "127.0.0.1:0"])
    assert home.startswith("http://127.0.0.1:")
    assert "Users and passwords are those of the container" in text


def test_it_speaks_https(tmp_path: Path) -> None:
    authority = trustme.CA()
    file = str(tmp_path / "console.pem")
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(file)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    home, text = first_page(["--listen", "127.0.0.1:0", "--https-cert", file], trusting)
    assert home.startswith("https://127.0.0.1:")
    assert "Log in" in text


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["amqp://alice:secret@localhost"], "found a user in URL, expected none"),
        (["amqp://localhost", "--listen", "9420"], "'9420' is no address (expected HOST:PORT)"),
        (
            ["amqp://localhost", "--listen", "0.0.0.0:0"],
            "reached from other machines: give",
        ),
        (["amqp://localhost", "--https-key", "{file}"], "--https-key needs --https-cert"),
    ],
)
def test_what_would_not_be_safe_or_makes_no_sense_is_refused(
    tmp_path: Path, arguments: list[str], problem: str
) -> None:
    file = tmp_path / "key.pem"
    file.touch()
    found = ran("console", *(each.format(file=file) for each in arguments))
    assert found.returncode == 2
    assert problem in found.stderr
    assert "secret" not in found.stderr
