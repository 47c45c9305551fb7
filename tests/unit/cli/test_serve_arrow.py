"""Readers that cannot be had."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.cli.commands import serve
from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.main import run

if TYPE_CHECKING:
    import pytest


def test_readers_without_pyarrow_are_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(serve, "find_spec", lambda name: None)
    assert run(("serve", "--arrow", "1", "--listen", "127.0.0.1:0")) != ExitCode.OK
    line = capsys.readouterr().err.strip()
    assert "\n" not in line
    assert "pip install 'cogwork[arrow]'" in line
