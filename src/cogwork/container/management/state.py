"""The whole state of a container, for people and programs: as JSON, or as one line.

Theory of operation. Rows are made a page at a time, with a turn for traffic after each; so the
parts of a dump are a few milliseconds apart, and no client notices it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from cogwork.container.management.inventory import collections_of
from cogwork.container.management.rows import container_row
from cogwork.io.log_output import standard_error
from cogwork.log.directory import opened_privately

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator

    from cogwork.container.container import Container
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.plugin.management import Collection

__all__ = ("one_line", "write_state")

FILE_NAME = "state.json"

PAGE = 100
"""Rows made in one turn of the loop: less than a millisecond."""

OF_CONTAINER = {"connection": "connections", "session": "sessions", "link": "links"}
OF_VHOST = {"address": "addresses", "queue": "queues", "node": "nodes"}


async def write_state(container: Container) -> Path | None:
    """Write the state to a file in the data directory, or to stderr where there is none.

    Args:
        container: Goes on meanwhile.

    Returns:
        The file; None for stderr.

    Raises:
        OSError: The file cannot be written.
    """
    parts = [part async for part in _parts(container)]
    directory = container.configuration.data_dir
    if directory is None:
        standard_error().write(b"".join(parts))
        return None
    path = Path(directory) / FILE_NAME
    await asyncio.to_thread(_write, path, parts)
    return path


def _write(path: Path, parts: Iterable[bytes]) -> None:
    """Replace the file at once, so that a reader never sees half of it."""
    new = path.with_suffix(".new")
    with open(new, "wb", opener=opened_privately) as file:
        file.writelines(parts)
    new.replace(path)


async def _parts(container: Container) -> AsyncIterator[bytes]:
    """Yield the document in pieces; a piece is a page of rows."""
    row = container_row(container)
    totals = row.pop("totals")
    yield b'{"container":' + msgspec.json.encode(row)
    yield b',"totals":' + msgspec.json.encode(totals)
    for key, collections in _lists(container):
        yield b',"%s":[' % key.encode()
        is_first = True
        for collection in collections:
            async for rows in _pages(collection):
                yield b"" if is_first else b","
                yield rows
                is_first = False
        yield b"]"
    yield b"}\n"


def _lists(container: Container) -> Iterator[tuple[str, list[Collection]]]:
    def of(kind: str, vhosts: Iterable[VirtualHost]) -> list[Collection]:
        return [collections_of(container, vhost)[kind] for vhost in vhosts]

    for kind, key in OF_CONTAINER.items():
        yield key, of(kind, (container.vhosts[""],))
    for kind, key in OF_VHOST.items():
        yield key, of(kind, container.vhosts.values())


async def _pages(collection: Collection) -> AsyncIterator[bytes]:
    index = 0
    while True:
        rows = list(collection.rows(index, PAGE))
        if rows:
            yield msgspec.json.encode(rows, enc_hook=str)[1:-1]
        if len(rows) < PAGE:
            return
        index += PAGE
        await asyncio.sleep(0)


def one_line(container: Container) -> str:
    """Return how a container is, in one line."""
    row = container_row(container)
    totals = container.core.totals()
    return (
        f"{container.id}: {len(container.peers.connections)} connections, {totals['links']} links, "
        f"{totals['unsettled']} unsettled, {totals['unsent_bytes']} bytes unsent, "
        f"{totals['held_bytes']} bytes held, {row['frames_in']} frames in, "
        f"{row['resident_bytes']} bytes resident, {row['cpu_s']} s CPU, up {row['uptime_s']} s"
    )
