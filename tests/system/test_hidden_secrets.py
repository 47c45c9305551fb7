"""Secrets: on no command line, in no file of everybody, and changed without a restart."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cogwork.bench.servers.process import free_ports
from cogwork.config.password_hash import hash_password

from .served import COGWORK, done, served, within

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .served import Served

TIMEOUT_S = 60.0
SECRET = "hidden/s@cret"  # of a user that is made here


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A container that lets others link by a password, and nobody without one."""
    text = f"""
        [anonymous]
        permissions = [{{ address = "#", rights = ["manage", "receive", "send"] }}]
        mesh = false
        [[user]]
        name = "north"
        password_hash = "{hash_password(SECRET)}"
        mesh = true
    """
    with served(tmp_path_factory.mktemp("other"), text, head='id = "other"\n') as container:
        yield container


def place_of(container: Served) -> str:
    return container.url.removeprefix("amqp://")


def links_of(url: str) -> list[str]:
    rows = json.loads(done("link", "list", url, "--json").stdout)
    return [f"{row['state']} {row['error']}" for row in rows]


def command_lines() -> list[str]:
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(each.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:  # it has ended
            continue
    return found


def test_workers_have_no_password_on_their_command_lines(other: Served, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    url = f"amqp://north:hidden%2Fs%40cret@{place_of(other)}"
    words = ("--workers", "2", "--id", "many", "--listen", f"127.0.0.1:{port}", "--link", url)
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen([*COGWORK, "serve", *words], stdout=output, stderr=output)
    try:
        within(TIMEOUT_S, lambda: " listens on " in log.read_text(), "the workers listen")
        workers = [line for line in command_lines() if "--worker " in line and "many" in line]
        assert len(workers) == 2
        assert [line for line in workers if "hidden" in line] == []
        within(
            TIMEOUT_S,
            lambda: any(each.startswith("up") for each in links_of(f"amqp://127.0.0.1:{port}")),
            "worker 0 has logged in with the password",
        )
        assert "hidden" not in log.read_text()
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(TIMEOUT_S)


def test_a_link_logs_in_with_a_new_password_after_a_reload(other: Served, tmp_path: Path) -> None:
    file = tmp_path / "pw"
    file.write_text("wrong\n")
    file.chmod(0o600)
    text = f'[[link]]\nurl = "amqp://north@{place_of(other)}"\npassword_file = "pw"\n'
    with served(tmp_path, text, head='id = "this"\n') as this:
        within(
            TIMEOUT_S,
            lambda: "password is wrong" in " ".join(links_of(this.url)),
            "the link is refused",
        )
        file.write_text(f"{SECRET}\n")
        this.process.send_signal(signal.SIGHUP)
        within(TIMEOUT_S, lambda: any(each.startswith("up") for each in links_of(this.url)), "up")
        log = (tmp_path / "cogwork.log").read_text()
        assert ".password: changed\n" in log
        assert "hidden" not in log


def test_nobody_else_reads_the_data_directory(tmp_path: Path) -> None:
    before = os.umask(0)  # the container's own: what it does not ask for is everybody's
    try:
        with served(tmp_path, head='id = "this"\ndata_dir = "data"\n') as this:
            done("queue", "declare", this.url, "queue/kept", "--durability", "disk")
            done("send", this.url, "queue/kept", "a word", "--durable")
            done("stream", "create", this.url, "kept", "--engine", "raft")
            done("send", this.url, "stream/kept", "another")
            this.process.send_signal(signal.SIGUSR1)
            state = tmp_path / "data" / "state.json"
            within(TIMEOUT_S, state.exists, "the state is written")
            modes = {each: each.stat().st_mode & 0o777 for each in tmp_path.glob("data/**/*")}
    finally:
        os.umask(before)
    files = [each for each in modes if each.is_file()]
    assert len(files) >= 3
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
    assert [each for each in files if modes[each] & 0o077] == []
