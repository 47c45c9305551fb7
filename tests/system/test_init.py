"""What `cogwork init` has written is started, and used."""

from __future__ import annotations

import contextlib
import json
from functools import partial
from typing import TYPE_CHECKING

import pytest

from cogwork.bench.servers.process import free_ports
from cogwork.cli.exit_codes import ExitCode

from .served import READY_TIMEOUT_S, done, ran, serving, within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextlib.contextmanager
def three(folder: Path, *options: str) -> Iterator[list[str]]:
    """Run three machines for the length of a `with` block; yield their URLs."""
    ports = free_ports(3)
    machines = ",".join(f"{name}=127.0.0.1:{port}" for name, port in zip("abc", ports, strict=True))
    told = json.loads(done("init", str(folder), "--machines", machines, *options, "--json").stdout)
    with contextlib.ExitStack() as stack:
        for each in told["machines"]:
            file = str(folder / each["config"])
            log = folder / f"{each['id']}.log"
            stack.enter_context(serving(log, each["url"], "--config", file))
        yield [each["url"] for each in told["machines"]]


def test_one_machine(tmp_path: Path) -> None:
    done("init", str(tmp_path))
    file = tmp_path / "cogwork.toml"
    (port,) = free_ports(1)
    file.write_text(file.read_text().replace("port = 5672", f"port = {port}"))
    url = f"amqp://127.0.0.1:{port}"
    with serving(tmp_path / "log", url, "--config", str(file)) as container:
        container.run("send", url, "queue/orders", "kept", "--durable")
    with serving(tmp_path / "log", url, "--config", str(file)) as container:
        assert container.run("receive", url, "queue/orders", "--count", "1") == "kept\n"
    assert (tmp_path / "data").is_dir()


def test_one_machine_with_tls(tmp_path: Path) -> None:
    done("init", str(tmp_path), "--tls")
    file = tmp_path / "cogwork.toml"
    (port,) = free_ports(1)
    file.write_text(file.read_text().replace("port = 5671", f"port = {port}"))
    url = f"amqps://admin@localhost:{port}"
    options = login(tmp_path, "--tls")
    with serving(tmp_path / "log", url, "--config", str(file)):
        done("send", url, "queue/orders", "sealed", *options)
        assert done("receive", url, "queue/orders", "--count", "1", *options).stdout == "sealed\n"
        found = ran("queue", "list", f"amqps://localhost:{port}", *options[:2])
        assert found.returncode == ExitCode.AUTHENTICATION, "nobody is anonymous there"


def login(folder: Path, *options: str) -> tuple[str, ...]:
    password = ("--password-file", str(folder / "admin.password"))
    return ("--ca-file", str(folder / "ca" / "ca.pem"), *password) if options else password


@pytest.mark.parametrize("options", [(), ("--tls",)], ids=["clear", "tls"])
def test_three_machines_are_one_cluster(tmp_path: Path, options: tuple[str, ...]) -> None:
    with three(tmp_path, *options) as urls:
        own = login(tmp_path, *options)

        def is_well(url: str) -> bool:
            found = ran("cluster", "status", url, *own, "--json").stdout
            return found != "" and json.loads(found)["warnings"] == []

        for url in urls:
            within(READY_TIMEOUT_S, partial(is_well, url), f"{url} is well")
        status = json.loads(done("cluster", "status", urls[0], *own, "--json").stdout)
        assert [(each["id"], each["role"]) for each in status["members"]] == [
            (name, "primary") for name in "abc"
        ]
        declare = ("queue", "declare", urls[0], "queue/orders", "--durability", "replicated")
        done(*declare, *own)
        done("send", urls[1], "queue/orders", "x", "--count", "3", *own)
        got = done("receive", urls[2], "queue/orders", "--count", "3", *own).stdout
        assert got == "x\nx\nx\n"


def test_a_stranger_is_no_container(tmp_path: Path) -> None:
    """A fourth one with a certificate of another authority is not linked."""
    (port,) = free_ports(1)
    with three(tmp_path / "three", "--tls") as urls:
        (place,) = (urls[0].partition("@")[2],)
        machines = f"x=127.0.0.1:{port},a={place}"
        done("init", str(tmp_path / "other"), "--machines", machines, "--tls")
        url, log = f"amqps://admin@127.0.0.1:{port}", tmp_path / "log"
        with serving(log, url, "--config", str(tmp_path / "other" / "x" / "cogwork.toml")):
            within(READY_TIMEOUT_S, lambda: "certificate" in log.read_text(), "it says why")
            own = login(tmp_path / "three", "--tls")
            found = json.loads(done("mesh", urls[0], *own, "--json").stdout)
            assert {each["id"] for each in found["containers"]} <= set("abc")
