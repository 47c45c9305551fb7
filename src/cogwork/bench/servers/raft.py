"""Containers of a cluster, for streams on the engine raft, and a container that joins them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from cogwork.bench.servers.clustered import ClusteredServer
from cogwork.config.reading import parse
from cogwork.container.container import Container
from cogwork.replication.engine import CAPABILITIES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from cogwork.plugin.engine.capabilities import Capabilities
    from cogwork.plugin.engine.contract import Engine

__all__ = ("JoinedHost", "RaftServer")


class RaftServer(ClusteredServer):
    """One container, which votes and keeps replicas on disk."""

    def command(self) -> list[str]:
        """Return what starts it."""
        file = self.directory / "cogwork.toml"
        file.write_text(configuration(self.name, self.port, self.members, self.directory / "data"))
        return [sys.executable, "-m", "cogwork.cli.main", "serve", "--config", str(file)]

    @property
    def options(self) -> dict[str, object]:
        """Nothing: who uses it joins its mesh."""
        return {}


def configuration(name: str, port: int, members: Sequence[RaftServer], data: Path | None) -> str:
    """Write the configuration of a container that is linked with the members of a cluster."""
    names = ", ".join(f'"{each.name}"' for each in members)
    links = "".join(
        f'[[link]]\nurl = "127.0.0.1:{each.port}"\n' for each in members if each.port != port
    )
    kept = "" if data is None else f'data_dir = "{data}"\n'
    return f'id = "{name}"\n{kept}[[listen]]\nport = {port}\n{links}[cluster]\nvoters = [{names}]\n'


class JoinedHost:
    """The engine raft as a container without replicas has it, in this process."""

    def __init__(self, members: Sequence[RaftServer]) -> None:
        """Join nobody yet.

        Args:
            members: Of the cluster; they run.
        """
        self._members = members
        self._container: Container | None = None

    @property
    def capabilities(self) -> Capabilities:
        """What the streams declare."""
        return CAPABILITIES

    async def open(self, stream: str, options: Mapping[str, object]) -> Engine:
        """Open a stream; make it where it is new."""
        if self._container is None:
            self._container = Container(parse(configuration("joined", 0, self._members, None), ""))
            await self._container.start()
        return await self._container.engines.host("raft").open(stream, options)

    async def delete(self, stream: str) -> None:
        """Give up a stream with all its records."""
        if self._container is not None:
            await self._container.engines.host("raft").delete(stream)

    async def close(self) -> None:
        """Leave."""
        if self._container is not None:
            await self._container.stop(drain_timeout_s=0.0)
            self._container = None
