"""`serve --metrics` and `serve --console`: processes beside the container, that live as it does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cogwork.bench.servers.process import free_ports
from cogwork.sasl.verifier import make_verifier

from .served import COGWORK, ended, started, within

if TYPE_CHECKING:
    from collections.abc import Callable

ITERATIONS = 4096

USERS = f"""
[[user]]
name = "monitor"
scram_verifiers = ["{make_verifier("sha256", "secret", ITERATIONS)}"]
permissions = [{{ address = "$management", rights = ["send", "manage"] }}]
"""


def answers(url: str) -> str:
    """What is served there; empty while nothing is."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            text: str = answer.read().decode()
            return text
    except (urllib.error.URLError, ConnectionError):
        return ""


def children(pid: int) -> dict[str, int]:
    """The companions of a container, by their commands."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            words = Path(f"/proc/{child}/cmdline").read_bytes().decode().split("\0")
            if "--companion" in words:
                found[words[3]] = int(child)
    return found


def is_gone(pid: int) -> Callable[[], bool]:
    """Whether a process has ended, and is nobody's zombie."""

    def look() -> bool:
        try:
            return " Z " in Path(f"/proc/{pid}/stat").read_text()
        except FileNotFoundError:
            return True

    return look


@pytest.mark.parametrize("workers", [1, 2])
def test_they_live_as_their_container_does(workers: int) -> None:
    metrics, console = free_ports(2)
    options = ["--metrics", f"127.0.0.1:{metrics}", "--console", f"127.0.0.1:{console}"]
    options += ["--workers", str(workers), "--listen", "127.0.0.1:0", "--json"]
    with started("serve", "--id", "north", *options) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["id"] == "north"
        figures = f"http://127.0.0.1:{metrics}/metrics"
        within(30, lambda: "cogwork_connections" in answers(figures), "figures are served")
        within(
            30,
            lambda: "<html" in answers(f"http://127.0.0.1:{console}/login"),
            "the console is served",
        )
        first = children(process.pid)
        assert set(first) == {"metrics", "console"}

        os.kill(first["metrics"], signal.SIGKILL)
        within(
            30,
            lambda: children(process.pid).get("metrics") not in (None, first["metrics"]),
            "another one has been started",
        )
        within(30, lambda: "cogwork_connections" in answers(figures), "figures are served")
        second = children(process.pid)
        assert second["console"] == first["console"]

        process.terminate()
        assert process.wait(30) == 0
        for pid in second.values():
            assert is_gone(pid)()


def test_a_killed_container_leaves_none_behind() -> None:
    (port,) = free_ports(1)
    options = ["--listen", "127.0.0.1:0", "--metrics", f"127.0.0.1:{port}", "--json"]
    with started("serve", *options) as process:
        assert process.stdout is not None
        process.stdout.readline()
        within(30, lambda: bool(answers(f"http://127.0.0.1:{port}/healthz")), "figures are served")
        (pid,) = children(process.pid).values()
        process.kill()
        within(30, is_gone(pid), "the companion ends")


def test_metrics_log_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COGWORK_PASSWORD", "secret")
    (port,) = free_ports(1)
    config = tmp_path / "cogwork.toml"
    path = tmp_path / "socket"
    config.write_text(f'{USERS}\n[[listen]]\npath = "{path}"\n')
    options = ["--config", str(config), "--metrics", f"127.0.0.1:{port}"]
    with started("serve", *options, "--metrics-user", "monitor", "--json") as process:
        assert process.stdout is not None
        process.stdout.readline()
        within(
            30,
            lambda: "cogwork_connections" in answers(f"http://127.0.0.1:{port}/metrics"),
            "figures are served",
        )


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--metrics", "9419"], "'9419' is no address (expected HOST:PORT)"),
        (["--console", "0.0.0.0:9420"], "is reached from other machines"),
        (["--metrics-user", "monitor"], "--metrics-user needs --metrics"),
    ],
)
def test_what_cannot_be_is_one_line(options: list[str], problem: str) -> None:
    ran = subprocess.run(
        [*COGWORK, "serve", *options], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 2
    assert problem in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_container_that_they_cannot_reach_is_refused(tmp_path: Path) -> None:
    config = tmp_path / "cogwork.toml"
    config.write_text('[[listen]]\nport = 0\ntransport = "ws"\n')
    ran = ended("serve", "--config", str(config), "--console", "127.0.0.1:0")
    assert ran.returncode == 2
    assert "--console needs a listener on this machine without TLS" in ran.stderr


def test_a_missing_extra_is_named(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as util\n"
        "find = util.find_spec\n"
        "util.find_spec = lambda name, *more: (\n"
        "    None if name in ('prometheus_client', 'starlette') else find(name, *more)\n"
        ")\n"
    )
    for name in ("metrics", "console"):
        ran = subprocess.run(
            [*COGWORK, "serve", f"--{name}", "127.0.0.1:0"],
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ran.returncode == 2
        assert f"pip install 'cogwork[{name}]'" in ran.stderr


def test_the_log_is_json(tmp_path: Path) -> None:
    options = ["--listen", "127.0.0.1:0", "--log-format", "json", "--json"]
    log = tmp_path / "log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [*COGWORK, "serve", *options], stdout=subprocess.PIPE, stderr=errors
        )
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGUSR2)
        within(30, lambda: b"\n" in log.read_bytes(), "something is logged")
        process.terminate()
        assert process.wait(30) == 0
        process.stdout.close()
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    assert entries
    for entry in entries:
        assert {"time", "level", "logger", "message"} <= entry.keys()
