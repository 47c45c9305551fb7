"""A Redis server."""

from __future__ import annotations

from cogwork.bench.servers.process import Server, program

__all__ = ("RedisServer",)


class RedisServer(Server):
    """Keeps everything, synchronised, before it answers."""

    fsync = "always"

    def command(self) -> list[str]:
        """Return what starts it."""
        return [
            program("redis-server", "redis-server"),
            *("--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.directory)),
            *("--appendonly", "yes", "--appendfsync", self.fsync, "--save", ""),
        ]

    def is_ready(self) -> bool:
        """Return whether it answers."""
        return self.answers(b"PING\r\n", b"PONG")

    @property
    def options(self) -> dict[str, object]:
        """The engine's options that lead to it."""
        return {"url": self.url}

    @property
    def url(self) -> str:
        """Where it is."""
        return f"redis://127.0.0.1:{self.port}/0"
