"""Names of streams by which another one, or something of the cluster's own, could be reached."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from hosted import LISTEN, Hosted

from cogwork.cluster.declarations import Declare
from cogwork.config.settings import Address, Configuration
from cogwork.container.cluster.cluster import Cluster
from cogwork.container.cluster.raft import FIRST_GROUP, ClusteredRaft, open_declared, stream_name
from cogwork.container.vhost.engines import EngineHosts, VhostEngines
from cogwork.plugin.management import ManagementError

if TYPE_CHECKING:
    from collections.abc import Mapping


class Service:
    """Knows streams by their names, and notes what is opened."""

    def __init__(self, **numbers: int) -> None:
        self.streams = {name: SimpleNamespace(number=number) for name, number in numbers.items()}
        self.opened: list[str] = []

    async def open(self, name: str, _options: Mapping[str, object]) -> None:
        self.opened.append(name)


def cluster_with(name: str) -> Cluster:
    cluster = Cluster(["a"], cast("Any", None), cast("Any", None))
    cluster.declarations.apply(Declare("stream", "", name, {}))
    return cluster


def opened(name: str, service: Service) -> list[str]:
    raft = ClusteredRaft(cluster_with(name), cast("Any", service))
    asyncio.run(raft.open(name, {}))
    return service.opened


@pytest.mark.parametrize("name", ["$cluster", "queue work/a", "queue blue:work/a", "orb 1 a"])
def test_no_stream_is_what_the_cluster_keeps_for_itself(name: str) -> None:
    service = Service()
    with pytest.raises(ValueError, match="is the cluster's own"):
        opened(name, service)
    assert service.opened == []


@pytest.mark.parametrize("name", ["clusters", "queue", "queue/work", "$telemetry"])
def test_other_names_are_free(name: str) -> None:
    assert opened(name, Service()) == [name]


def test_replicas_of_something_else_are_never_opened() -> None:
    service = Service(a=FIRST_GROUP + 5)
    with pytest.raises(ValueError, match="something else of the cluster's"):
        asyncio.run(open_declared(cluster_with("a"), cast("Any", service), "stream", ("", "a"), {}))
    assert service.opened == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("blue", "work"), ("", "blue:work")),
        (("", "blue:work"), ("blue", "work")),
        (("blue:green", "work"), ("blue", "green:work")),
    ],
)
def test_no_queue_is_that_of_another_virtual_host(
    first: tuple[str, str], second: tuple[str, str]
) -> None:
    cluster, service = cluster_with("a"), Service()
    cluster.declarations.apply(Declare("queue", *first, {}))
    with pytest.raises(ValueError, match=f"which is '{first[1]}' of virtual host '{first[0]}'"):
        asyncio.run(open_declared(cluster, cast("Any", service), "queue", second, {}))
    assert cluster.declarations.find("queue", *second) is None
    asyncio.run(open_declared(cluster, cast("Any", service), "queue", first, {}))
    assert service.opened == [stream_name("queue", *first)]


def test_no_stream_is_that_of_another_virtual_host() -> None:
    async def story() -> None:
        hosts = EngineHosts("a")
        await VhostEngines(hosts, "blue").open("orb", "orders", {})
        with pytest.raises(ValueError, match="has no colon: 'blue:orders'"):
            await VhostEngines(hosts, "").open("orb", "blue:orders", {})
        await hosts.close()

    asyncio.run(story())


@pytest.mark.parametrize("addresses", [("stream/a", "events/a"), ("events/a", "stream/a")])
def test_nobody_makes_a_second_address_of_a_stream(addresses: tuple[str, str]) -> None:
    events = Address(prefix="events/", kind="stream")
    hosted = Hosted(Configuration(id="a", listeners=[LISTEN], addresses=[events]))
    view = hosted.container.vhosts[""].view
    assert view is not None
    first, second = addresses
    assert view.declare_stream(first, {})
    with pytest.raises(ManagementError, match=f"would be the stream {first!r}"):
        view.declare_stream(f"/{second}", {})
    assert view.stream(second) is None
    assert not view.declare_stream(first, {})
