"""The engine `nats`, against a NATS server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("nats", reason="the extra [nats] is not installed")

import nats

from cogwork.cli.servers.nats import NatsServer
from cogwork.cli.servers.process import Missing
from cogwork.consensus.conformance import EngineConformance
from cogwork.consensus.engine import EngineContext
from cogwork.consensus.nats import NatsHost

from .faults import ServerFaults

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.cli.servers.process import Server
    from cogwork.consensus.engine import EngineHost


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    server = NatsServer(tmp_path_factory.mktemp("nats"))
    try:
        server.start()
    except Missing as missing:
        pytest.skip(str(missing))
    yield server
    server.kill()


class _OnNats:
    server: Server

    @pytest.fixture(autouse=True)
    def _use(self, server: NatsServer) -> None:
        type(self).server = server

    def make_host(self, timeout_s: float = 10.0) -> NatsHost:
        return NatsHost(EngineContext({**self.server.options, "timeout_s": timeout_s}))


class TestNats(_OnNats, EngineConformance):
    """The kit."""


class TestNatsFaults(_OnNats, ServerFaults):
    """A server that dies, stops, or lies."""

    bears_strangers = True

    async def intrude(self, host: EngineHost, stream: str, data: bytes) -> None:
        client = await nats.connect(str(self.server.options["url"]))
        await client.jetstream().publish(f"cogwork-{stream}", data)
        await client.close()
