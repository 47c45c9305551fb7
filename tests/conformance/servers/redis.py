"""A Redis server."""

from __future__ import annotations

from .process import Server, program


class RedisServer(Server):
    """Keeps everything, synchronised, before it answers."""

    fsync = "always"

    def command(self) -> list[str]:
        return [
            program("redis-server", "redis-server"),
            *("--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.directory)),
            *("--appendonly", "yes", "--appendfsync", self.fsync, "--save", ""),
        ]

    def is_ready(self) -> bool:
        return self.answers(b"PING\r\n", b"PONG")

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"
