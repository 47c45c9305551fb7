"""NATS with JetStream: one server, or a cluster of several."""

from __future__ import annotations

from cogwork.bench.servers.clustered import ClusteredServer
from cogwork.bench.servers.process import program

__all__ = ("NatsServer",)


class NatsServer(ClusteredServer):
    """One server, which keeps its streams in files."""

    port_count = 3

    def command(self) -> list[str]:
        """Return what starts it."""
        routes = ",".join(f"nats://127.0.0.1:{each.more_ports[0]}" for each in self.members)
        clustered = (
            *("--name", self.name, "--cluster_name", "c", "--routes", routes),
            *("--cluster", f"nats://127.0.0.1:{self.more_ports[0]}"),
        )
        return [
            program("nats-server", "nats-server"),
            *("--addr", "127.0.0.1", "--port", str(self.port)),
            *("--http_port", str(self.more_ports[1])),
            *("--jetstream", "--store_dir", str(self.directory / "data")),
            *(clustered if len(self.members) > 1 else ()),
        ]

    def is_ready(self) -> bool:
        """Return whether it answers, and its streams are there."""
        request = b"GET /healthz HTTP/1.0\r\n\r\n"
        return self.answers(request, b'"ok"', self.more_ports[1])

    @property
    def options(self) -> dict[str, object]:
        """The engine's options that lead to it."""
        return {"url": ",".join(each.url for each in self.members)}

    @property
    def url(self) -> str:
        """Where it is."""
        return f"nats://127.0.0.1:{self.port}"
