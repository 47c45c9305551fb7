"""The driver and the one before it understand each other: services can move one by one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from test_last_upstream_driver import packages

import cogwork
from cogwork.testing import TestContainer

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("packages",)

PROGRAM = Path(__file__).with_name("old_program.py")
OURS = Path(cogwork.__file__).parents[1]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    container = TestContainer("", 0, "both").start()
    yield f"{container.url}/"
    container.stop()


def command(role: str, url: str) -> list[str]:
    return [sys.executable, "-W", "ignore", str(PROGRAM), role, url]


@pytest.mark.parametrize("is_old_server", [True, False], ids=["old server", "old client"])
def test_calls_heartbeats_and_failures(is_old_server: bool, url: str, packages: Path) -> None:
    old = {**os.environ, "PYTHONPATH": str(packages)}
    new = {**os.environ, "PYTHONPATH": str(OURS)}
    server = subprocess.Popen(
        command("serve", url),
        env=old if is_old_server else new,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stdout.readline() == b"serving\n"
        done = subprocess.run(
            command("call", url),
            env=new if is_old_server else old,
            capture_output=True,
            timeout=60,
            check=False,
        )
        server.kill()
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    where, found = done.stdout.decode().splitlines()
    assert (str(packages) in where) is not is_old_server
    assert found == "[3, 3, 'KeyError']"
