"""The engine `etcd`, against an etcd."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("aiohttp", reason="the extra [etcd] is not installed")

from cogwork.bench.servers.etcd import EtcdServer
from cogwork.engines.etcd import EtcdHost
from cogwork.plugin.conformance.engines import EngineConformance
from cogwork.plugin.engine.durability import Durability

from .faults import ServerFaults
from .servers import OnServer, check_cluster, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServer]:
    yield from running(lambda: EtcdServer(tmp_path_factory.mktemp("etcd")))


class TestEtcd(OnServer, EngineConformance):
    """The kit."""

    factory = EtcdHost


class TestEtcdFaults(OnServer, ServerFaults):
    """A server that dies, stops, or lies."""

    factory = EtcdHost


@pytest.mark.usefixtures("server")
def test_a_cluster_survives_its_leader(tmp_path: Path) -> None:
    servers = EtcdServer.cluster(tmp_path, 3)
    check_cluster(servers, EtcdHost, Durability.QUORUM_DISK, {})
