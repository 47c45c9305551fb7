"""Containers without files, linked with each other, for as long as a measurement takes."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from cogwork.bench.servers.process import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("ContainerServer", "linked_containers")


class ContainerServer(Server):
    """One container; it dials those that were made before."""

    def __init__(self, directory: Path, links: list[str]) -> None:
        """Initialize it; it does not run yet.

        Args:
            directory: For its log.
            links: Where the others listen, as HOST:PORT.
        """
        super().__init__(directory)
        self._links = links

    def command(self) -> list[str]:
        """Return what starts it."""
        options = [word for each in self._links for word in ("--link", each)]
        serve = ["serve", "--id", self.directory.name, "--listen", self.name]
        return [sys.executable, "-m", "cogwork.cli.main", *serve, *options]

    @property
    def options(self) -> dict[str, object]:
        """Nothing: it is no engine's."""
        return {}


@contextlib.contextmanager
def linked_containers(count: int) -> Iterator[list[str]]:
    """Run containers for the length of a `with` block, each linked with the first one.

    Raises:
        RuntimeError: One does not start.
    """
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cogwork-bench-")))
        servers: list[ContainerServer] = []
        for at in range(count):
            server = ContainerServer(folder / f"c{at + 1}", [each.name for each in servers[:1]])
            stack.callback(server.kill)
            server.start()
            servers.append(server)
        yield [f"amqp://{each.name}" for each in servers]
