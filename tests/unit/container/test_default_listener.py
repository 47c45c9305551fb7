"""Who configures no listener has one on loopback, whichever address `localhost` stands for."""

from __future__ import annotations

import asyncio
import socket
from contextlib import closing
from typing import Any

import pytest
from msgspec import structs

from cogwork.config.reading import defaults, parse
from cogwork.config.settings import Configuration, Loopback
from cogwork.container.container import Container
from cogwork.io import listener as listener_module


def has_ipv6_loopback() -> bool:
    with closing(socket.socket(socket.AF_INET6)) as sock:
        try:
            sock.bind(("::1", 0))
        except OSError:
            return False
        return True


def reached(configuration: Configuration) -> tuple[int, list[str]]:
    """Run a container; return where it says that it listens, and where it can be reached."""

    async def run() -> tuple[int, list[str]]:
        container = Container(configuration)
        await container.start()
        try:
            (endpoint,) = container.endpoints
            port = int(endpoint.rpartition(":")[2])
            return len(container.endpoints), [host for host in HOSTS if answers(host, port)]
        finally:
            await container.stop(drain_timeout_s=0)

    return asyncio.run(run())


HOSTS = ("127.0.0.1", "::1")


def answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=5).close()
    except OSError:
        return False
    return True


def unconfigured() -> Configuration:
    (listen,) = defaults().listeners
    assert (listen, listen.endpoint) == (Loopback(port=5672), "127.0.0.1:5672")
    return structs.replace(defaults(), id="box", listeners=[structs.replace(listen, port=0)])


@pytest.mark.skipif(not has_ipv6_loopback(), reason="there is no ::1 on this machine")
def test_both_addresses_of_localhost_lead_to_it() -> None:
    assert reached(unconfigured()) == (1, ["127.0.0.1", "::1"])


def test_where_there_is_no_second_one_the_first_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    bound = listener_module._bound

    def bound_to_ipv4(host: str, port: int, **options: Any) -> socket.socket:
        if host == "::1":
            raise listener_module.ListenError("cannot listen on ::1")
        return bound(host, port, **options)

    monkeypatch.setattr(listener_module, "_bound", bound_to_ipv4)
    assert reached(unconfigured()) == (1, ["127.0.0.1"])


def test_a_configured_listener_is_at_its_address_alone() -> None:
    assert reached(parse('id = "box"\n[[listen]]\nport = 0\n')) == (1, ["127.0.0.1"])
