"""Containers that send their clients elsewhere, and where those have gone."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from cogwork.amqp.redirect import FORCE, REDIRECTS, Host, Redirect, host_of
from cogwork.bench.servers.process import free_ports
from cogwork.config.reading import defaults, parse, with_options
from cogwork.container.container import Container
from cogwork.dataplane.connection import Connection

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    import cogwork
    from cogwork.container.connections.redirect import Newcomer


@asynccontextmanager
async def containers(*names: str, configuration: str = "") -> AsyncIterator[list[Container]]:
    """Run containers in this event loop, each on a free port."""
    async with AsyncExitStack() as stack:
        running = []
        for name in names:
            told = parse(configuration, "test") if configuration else defaults()
            listens = () if "[[listen]]" in configuration else ("127.0.0.1:0",)
            container = Container(with_options(told, name, listens))
            await container.start()
            stack.push_async_callback(container.stop, drain_timeout_s=0)
            running.append(container)
        yield running


def url_of(container: Container) -> str:
    return container.endpoints[0]


def host(container: Container) -> Host:
    return host_of(url_of(container).partition("://")[2])


def dead_host() -> Host:
    """Return a host where nobody listens."""
    return Host("127.0.0.1", free_ports(1)[0])


def sends_to(first: Host, *known: Host) -> Callable[[Newcomer], Redirect]:
    """Make a container's rule that sends every newcomer away."""
    return lambda _newcomer: Redirect(first, known)


def where(client: cogwork.Client) -> str:
    """Name the container that a client is connected to."""
    return client.container.container_id


def asked(container: Container) -> list[dict[str, object]]:
    """List what the clients of a container asked for in their opens."""
    connections = container.peers.connections
    opens = [each.remote for each in connections if isinstance(each, Connection)]
    wanted = (FORCE, REDIRECTS)
    return [
        {key: opened.properties[key] for key in wanted if key in (opened.properties or {})}
        for opened in opens
        if opened is not None and opened.properties is not None
    ]
