"""Containers, clients and workers that meet at Unix-domain sockets."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from typing import TYPE_CHECKING

import pytest

import cogwork
from cogwork.cli.exit_codes import ExitCode
from cogwork.client import AuthenticationError, ConnectError
from cogwork.config.password_hash import hash_password

from .served import OPEN, READY_TIMEOUT_S, ran, served, within
from .stories import story
from .test_workers import landed, start, working

if TYPE_CHECKING:
    from pathlib import Path

PATH = '[[listen]]\npath = "it.sock"\n'

USERS = f"""{OPEN}
[[user]]
name = "jo"
password_hash = "{hash_password("pass:word")}"
permissions = [{{ address = "queue/#", rights = ["send", "receive"], vhost = "*" }}]

[[vhost]]
name = "shop"
"""


def passed_on(sender: str, receiver: str) -> object:
    """Send an item to one URL, and take it at another."""

    async def passing() -> object:
        async with cogwork.connect(sender) as one, cogwork.connect(receiver) as other:
            await one.publish("queue/a", "hello")
            return await taken(other)

    return asyncio.run(passing())


async def taken(client: cogwork.Client) -> object:
    async with client.consume("queue/a") as items:
        item = await anext(aiter(items))
        await item.accept()
        return item.body


def test_clients_at_the_path_and_at_the_port_meet(tmp_path: Path) -> None:
    with served(tmp_path, PATH) as container:
        path = tmp_path / "it.sock"
        url = f"unix://{path}"
        assert container.status()["container"]["endpoints"] == [container.url, url]
        assert path.stat().st_mode & 0o777 == 0o600
        assert passed_on(url, container.url) == "hello"
        assert passed_on(container.url, url) == "hello"
        (row,) = json.loads(container.run("status", url, "--json"))["connections"]
        assert row["listener"] == url
        assert row["peer"].startswith(f"process {os.getpid()}, user {os.getuid()}, ")


def test_one_that_was_killed_leaves_a_file_that_the_next_one_replaces(tmp_path: Path) -> None:
    path = tmp_path / "it.sock"
    url = f"unix://{path}"
    first, _ = start(tmp_path, "--listen", url)
    within(READY_TIMEOUT_S, path.is_socket, "it listens")
    first.kill()
    first.wait()
    assert path.is_socket()
    second, said = start(tmp_path, "--listen", url)
    try:
        within(READY_TIMEOUT_S, lambda: "\n" in said.read_text(), "the next one listens")
        assert json.loads(said.read_text())["endpoints"] == [url]
        assert passed_on(url, url) == "hello"
        found = ran("serve", "--listen", url)
        assert found.returncode != ExitCode.OK
        assert f"cannot listen on {path}: Address already in use" in found.stderr
        assert passed_on(url, url) == "hello"
        second.send_signal(signal.SIGTERM)
        assert second.wait(READY_TIMEOUT_S) == ExitCode.OK
    finally:
        second.kill()
        second.wait()
    assert not path.exists()


@story
async def test_where_nobody_listens_the_error_names_the_path(tmp_path: Path) -> None:
    with pytest.raises(ConnectError, match=f"unix://{tmp_path}/a: No such file or directory"):
        async with cogwork.connect(f"unix://{tmp_path}/a"):
            pass
    with pytest.raises(ConnectError, match="a socket's path has at most 107 bytes, and not 121"):
        async with cogwork.connect(f"unix:///{'a' * 120}"):
            pass


def test_who_logs_in_at_a_path_has_the_rights_of_a_user(tmp_path: Path) -> None:
    jo = f"unix://jo:pass%3Aword@{tmp_path}/it.sock"

    async def refused() -> None:
        async with cogwork.connect(jo) as client:
            with pytest.raises(cogwork.LinkRefused, match="no permission to send"):
                await client.publish("topic/all", "not allowed")
        with pytest.raises(AuthenticationError):
            async with cogwork.connect(jo.replace("pass", "word")):
                pass

    with served(tmp_path, f"{PATH}{USERS}"):
        assert passed_on(f"{jo}?vhost=shop", f"{jo}?vhost=shop") == "hello"
        asyncio.run(refused())


def test_containers_are_linked_by_a_path(tmp_path: Path) -> None:
    path = tmp_path / "it.sock"
    url = f"unix://{path}"
    with served(tmp_path, f'[[link]]\nurl = "{url}"\n') as dialling:

        def is_up() -> bool:
            (row,) = json.loads(dialling.run("link", "list", dialling.url, "--json"))
            return bool(row["state"] == "up")

        told = f"link to {url}: No such file or directory"
        log = tmp_path / "cogwork.log"
        within(READY_TIMEOUT_S, lambda: told in log.read_text(), "what is missing is told")
        dialled, _ = start(tmp_path, "--listen", url)
        try:
            within(READY_TIMEOUT_S, is_up, "they are linked")
            assert passed_on(url, dialling.url) == "hello"
            (row,) = json.loads(dialling.run("link", "list", url, "--json"))
            assert row["url"].startswith(f"{url}#")
        finally:
            dialled.kill()
            dialled.wait()


def test_load_is_made_by_a_path(tmp_path: Path) -> None:
    with served(tmp_path, PATH) as container:
        url = f"unix://{tmp_path}/it.sock"
        for scenario in ("unsettled", "connections"):
            found = container.run(
                "bench", url, "--scenario", scenario, "--seconds", "0.2", "--json"
            )
            assert json.loads(found)["delivered"] > 0
    missing = ran("bench", url, "--scenario", "connections", "--seconds", "0.2")
    assert missing.returncode == ExitCode.CONNECTION
    assert f"cannot connect to {tmp_path}/it.sock: No such file or directory" in missing.stderr


def test_workers_accept_from_one_path(tmp_path: Path) -> None:
    path = tmp_path / "it.sock"
    url = f"unix://{path}"

    async def meet() -> object:
        async with landed(url, "north.0") as one, landed(url, "north.1") as other:
            await one.publish("queue/a", "hello")
            return await taken(other)

    with working(tmp_path / "w", "--listen", url) as running:
        assert running.facts["endpoints"][1:] == [url]
        assert asyncio.run(meet()) == "hello"
        os.kill(running.process_id("north.1"), signal.SIGKILL)
        linked = "linked with container north.1"
        within(READY_TIMEOUT_S, lambda: running.log.count(linked) == 2, "it is back")
        assert asyncio.run(meet()) == "hello"
        assert "link to unix://" not in running.log
        assert running.stop() == ExitCode.OK
    assert not path.exists()
