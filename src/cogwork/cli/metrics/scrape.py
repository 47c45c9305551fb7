"""What one scrape reads from a container, or from each of its workers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cogwork.cli.management.manager import Manager
from cogwork.cli.metrics.families import EXCHANGES, QUEUES, STREAMS
from cogwork.client import LinkRefused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cogwork.cli.metrics.families import Metric
    from cogwork.client import Client

__all__ = ("Scraped", "scrape")

Row = dict[str, Any]

IDENTITY = ("name", "vhost")


@dataclass(frozen=True)
class Scraped:
    """The figures of one container, or worker.

    Attributes:
        container: Its attributes.
        queues: The attributes of its queues, as far as metrics need them.
        streams: Those of its streams.
        exchanges: Those of its exchanges.
    """

    container: Mapping[str, Any]
    queues: Sequence[Row] = field(default_factory=list)
    streams: Sequence[Row] = field(default_factory=list)
    exchanges: Sequence[Row] = field(default_factory=list)

    @property
    def problem(self) -> str:
        """Why the container is not ready for clients; empty if it is."""
        name = self.container["name"]
        if self.container["is_draining"]:
            return f"{name} is stopping"
        cluster = self.container["cluster"]
        if cluster is not None and not cluster["is_current"]:
            return f"{name} does not know all declarations of the cluster yet"
        return ""


async def scrape(client: Client) -> Scraped:
    """Read the figures of a container.

    Raises:
        LinkRefused: The user may not manage the container.
        CogworkError: The container does not answer.
    """
    manager = Manager(client)
    container = await manager.get("READ", "container")
    queues = await _rows(manager, "queue", (*IDENTITY, *_attributes(QUEUES)))
    streams = await _rows(manager, "stream", (*IDENTITY, "state", *_attributes(STREAMS)))
    exchanges = await _rows(manager, "exchange", ("exchange", *IDENTITY, *_attributes(EXCHANGES)))
    return Scraped(container, queues, streams, exchanges)


async def _rows(manager: Manager, kind: str, attributes: Sequence[str]) -> list[Row]:
    """List entities; none where an older container does not know the type."""
    try:
        return (await manager.rows(kind, attributes))[0]
    except LinkRefused:
        return []


def _attributes(metrics: Sequence[Metric]) -> list[str]:
    return [each.attribute for each in metrics]
