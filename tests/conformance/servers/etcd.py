"""An etcd of one member."""

from __future__ import annotations

from .process import Server, program


class EtcdServer(Server):
    """One member, synchronised."""

    ports = 2

    def command(self) -> list[str]:
        peer = f"http://127.0.0.1:{self.more_ports[0]}"
        return [
            program("etcd", "etcd-server"),
            *("--name", "one", "--data-dir", str(self.directory / "data")),
            *("--listen-client-urls", self.url, "--advertise-client-urls", self.url),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
            *("--initial-cluster", f"one={peer}", "--logger", "zap", "--log-level", "error"),
        ]

    def is_ready(self) -> bool:
        return self.answers(b"GET /health HTTP/1.0\r\n\r\n", b'"health":"true"')

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"
