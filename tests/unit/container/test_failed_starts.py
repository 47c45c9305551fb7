"""What failed to start, or has stopped, has nothing open or locked: the next one finds all free."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cogwork.amqp.errors import CogworkError
from cogwork.amqp.frames import AMQP_HEADER
from cogwork.config.errors import DataDirectoryError
from cogwork.config.reading import parse
from cogwork.container.container import Container
from cogwork.log.directory import Directory
from cogwork.log.errors import LogError, LogLocked

if TYPE_CHECKING:
    from collections.abc import Callable

TEXT = """
id = "box"
data_dir = "{path}"
[[listen]]
port = {port}
"""


def opened() -> set[str]:
    """Return what this process has open and locked, but for pipes and the like of its own."""
    gc.collect()
    found = set()
    for each in Path("/proc/self/fd").iterdir():
        try:
            found.add(str(each.readlink()))
        except OSError:  # the one by which the folder is read
            continue
    return {name for name in found if name.startswith(("/", "socket:"))}


def damaged_log(path: Path) -> None:
    for file in (path / "wal").glob("*.wal"):
        data = bytearray(file.read_bytes())
        data[:64] = bytes(64)
        file.write_bytes(data)


def damaged_identity(path: Path) -> None:
    (path / "cluster.json").write_bytes(b"\x00" * 40)


def lost_log(path: Path) -> None:
    for file in (path / "wal").glob("*.wal"):
        file.unlink()


async def lived(text: str) -> None:
    container = Container(parse(text, "test"))
    await container.start()
    await container.stop(drain_timeout_s=0)


async def tried(text: str, kinds: type[Exception] | tuple[type[Exception], ...]) -> str:
    """Start a container that cannot; return why."""
    with pytest.raises(kinds) as caught:
        await lived(text)
    return str(caught.value)


@pytest.mark.parametrize("damage", [damaged_log, damaged_identity, lost_log])
def test_one_that_cannot_use_its_directory_leaves_it_to_the_next(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    path = tmp_path / "data"
    text = TEXT.format(path=path, port=0)
    asyncio.run(lived(text))
    kept = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    before, threads = opened(), threading.active_count()
    damage(path)
    told = asyncio.run(tried(text, (LogError, DataDirectoryError)))
    assert str(path) in told
    assert opened() == before
    assert threading.active_count() == threads
    with Directory(path / "wal") as free:
        free.lock()
    for file in path.rglob("*"):
        if file.is_file() and file not in kept:
            file.unlink()
    for file, data in kept.items():
        file.write_bytes(data)
    asyncio.run(lived(text))


def test_one_whose_port_is_taken_leaves_its_directory_to_the_next(tmp_path: Path) -> None:
    path = tmp_path / "data"
    before = opened()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        asyncio.run(tried(TEXT.format(path=path, port=port), CogworkError))
    assert opened() == before
    asyncio.run(lived(TEXT.format(path=path, port=port)))


def test_one_whose_gateway_cannot_be_had_leaves_its_directory_to_the_next(tmp_path: Path) -> None:
    path = tmp_path / "data"
    before = opened()
    text = TEXT.format(path=path, port=0)
    told = asyncio.run(tried(text + "[gateway.nothing]\n", CogworkError))
    assert "nothing" in told
    assert opened() == before
    asyncio.run(lived(text))


def test_one_that_is_in_use_stays_with_who_uses_it(tmp_path: Path) -> None:
    text = TEXT.format(path=tmp_path / "data", port=0)

    async def story() -> None:
        first = Container(parse(text, "test"))
        await first.start()
        for _ in range(2):
            await tried(text, LogLocked)
        await first.stop(drain_timeout_s=0)
        await lived(text)

    asyncio.run(story())


def test_one_that_has_stopped_has_nothing_open_whatever_its_peers_do() -> None:
    async def live() -> set[str]:
        before = opened()
        container = Container(parse("[[listen]]\nport = 0", "test"))
        await container.start()
        port = container.endpoints[0].rpartition(":")[2]
        reader, writer = await asyncio.open_connection("127.0.0.1", int(port))
        writer.write(AMQP_HEADER)
        assert await reader.readexactly(len(AMQP_HEADER)) == AMQP_HEADER
        theirs = opened() - before
        await container.stop(drain_timeout_s=0)
        left = (opened() - before) & theirs
        writer.close()
        await writer.wait_closed()
        return left

    assert len(asyncio.run(live())) == 1, "the peer's own socket alone"
