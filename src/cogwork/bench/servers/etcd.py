"""etcd: one member, or a cluster of several."""

from __future__ import annotations

from cogwork.bench.servers.clustered import ClusteredServer
from cogwork.bench.servers.process import program

__all__ = ("EtcdServer",)


class EtcdServer(ClusteredServer):
    """One member."""

    port_count = 2

    @property
    def peer_url(self) -> str:
        """Where the others find it."""
        return f"http://127.0.0.1:{self.more_ports[0]}"

    def command(self) -> list[str]:
        """Return what starts it."""
        members = ",".join(f"{each.name}={each.peer_url}" for each in self.members)
        return [
            program("etcd", "etcd-server"),
            *("--name", self.name, "--data-dir", str(self.directory / "data")),
            *("--listen-client-urls", self.url, "--advertise-client-urls", self.url),
            *("--listen-peer-urls", self.peer_url),
            *("--initial-advertise-peer-urls", self.peer_url),
            *("--initial-cluster", members, "--logger", "zap", "--log-level", "error"),
        ]

    def is_ready(self) -> bool:
        """Return whether it answers."""
        return self.answers(b"GET /health HTTP/1.0\r\n\r\n", b'"health":"true"')

    @property
    def options(self) -> dict[str, object]:
        """The engine's options that lead to it."""
        return {"url": ",".join(each.url for each in self.members)}

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"
