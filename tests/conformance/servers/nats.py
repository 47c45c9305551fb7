"""A NATS server with JetStream."""

from __future__ import annotations

from .process import Server, program


class NatsServer(Server):
    """Keeps its streams in files."""

    def command(self) -> list[str]:
        return [
            program("nats-server", "nats-server"),
            *("--addr", "127.0.0.1", "--port", str(self.port)),
            *("--jetstream", "--store_dir", str(self.directory / "data")),
        ]

    def is_ready(self) -> bool:
        return self.answers(b"", b"INFO")

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"
