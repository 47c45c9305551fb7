"""A data directory of which one file is damaged: that is said, and nothing else is lost by it.

A container that has stopped in order leaves a queue on disk, a stream with segments, and what is
declared. Then one file is damaged, anywhere. The next start is refused with an error that names the
file; or what the file is of is reported, and all else goes on; or all is there. And once the file
is as it was, everything is there again: no start has thrown anything away.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import pytest

from cogwork.config.errors import DataDirectoryError
from cogwork.config.reading import parse
from cogwork.container.cluster import storage
from cogwork.container.container import Container
from cogwork.dataplane.message.messages import Message
from cogwork.log.errors import LogError
from cogwork.log.file_header import HEADER_BYTES
from cogwork.log.mark import KIND_END, LOG_GROUP
from cogwork.log.record import scan_records
from cogwork.log.wal import Wal
from cogwork.nodes.queue import QueueNode
from cogwork.plugin.engine.batch import Batch
from cogwork.plugin.engine.errors import Malformed
from cogwork.replication import member, replicas

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

SEEDS = (3,)
QUEUE, STREAM = "queue/kept", "orders"
RECORDS = [b"%04d" % number * 100 for number in range(40)]
FILE_BYTES = 16 << 10
PATIENCE_S = 10.0

CONFIGURATION = """
id = "box"
data_dir = "{path}"
[[listen]]
port = 0
[[queue]]
address = "queue/kept"
durability = "disk"
"""


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "Wal", partial(Wal, file_bytes=FILE_BYTES))
    monkeypatch.setattr(member, "SEAL_ENTRIES", 10)
    monkeypatch.setattr(replicas, "RETRY_S", 0.05)


@asynccontextmanager
async def running(path: Path) -> AsyncIterator[Container]:
    container = Container(parse(CONFIGURATION.format(path=path), "test"))
    try:
        await container.start()
        yield container
    finally:
        await container.stop(drain_timeout_s=0)


def queue_of(container: Container) -> QueueNode:
    node = container.vhosts[""].nodes[QUEUE]
    assert isinstance(node, QueueNode)
    return node


def items(container: Container) -> list[object]:
    return [Message.decode(data).body for data, _ in queue_of(container).store.peek(1000)]


async def records(container: Container) -> list[bytes]:
    engine = await container.replication.raft.open(STREAM, {})
    found: list[bytes] = []
    while len(found) < len(RECORDS):
        for chunk in await engine.read(len(found)):
            found += chunk.batch.records()
    return found


async def fill(path: Path) -> None:
    async with running(path) as container:
        engine = await container.replication.raft.open(STREAM, {})
        for record in RECORDS:
            assert queue_of(container).store.put(Message(record).encode())
            await engine.append(Batch.of([record]))


async def demand_all(path: Path) -> None:
    async with running(path) as container:
        assert items(container) == RECORDS
        assert await records(container) == RECORDS


async def look(path: Path, caplog: pytest.LogCaptureFixture) -> str:
    """Start the container; return what is wrong then, nothing where all is there."""
    try:
        async with running(path) as container:
            assert items(container) == RECORDS, "else the start is refused"
            finding = asyncio.ensure_future(records(container))
            async with asyncio.timeout(PATIENCE_S):
                while not caplog.messages and not finding.done():
                    await asyncio.sleep(0.01)
            if not caplog.messages:
                assert finding.result() == RECORDS
            finding.cancel()
            await asyncio.wait([finding])
    except (DataDirectoryError, LogError, Malformed) as error:
        return str(error)
    return "\n".join(caplog.messages)


# -- what becomes of a file


def flipped(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]


def cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data))]


def blank(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(0, len(data), 512)
    return data[:at] + bytes(len(data[at : at + 512])) + data[at + 512 :]


def noise(data: bytes, chance: random.Random) -> bytes:
    return chance.randbytes(len(data))


def gone(_data: bytes, _chance: random.Random) -> None:
    return None


DAMAGES: tuple[Callable[[bytes, random.Random], bytes | None], ...]
DAMAGES = (flipped, cut, blank, noise, gone)


def kept_files(path: Path) -> list[Path]:
    """List the files that a start needs: not what was being made."""
    files = (file for file in path.rglob("*") if file.is_file())
    return sorted(file for file in files if file.suffix != ".tmp")


def is_newest(file: Path) -> bool:
    """Tell whether the newest mark is in a file: where it goes, too, a torn end looks the same."""
    return file.suffix == ".wal" and KIND_END not in {
        record.kind
        for record in scan_records(file.read_bytes(), HEADER_BYTES, int(file.stem))
        if record.group == LOG_GROUP
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_damage_is_said_and_nothing_is_thrown_away(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, seed: int
) -> None:
    chance = random.Random(seed)
    path = tmp_path / "data"
    asyncio.run(fill(path))
    assert caplog.records == [], "an orderly life"
    for file in kept_files(path):
        before = file.read_bytes()
        damage = chance.choice((flipped, cut) if is_newest(file) else DAMAGES)
        after = damage(before, chance)
        if after is None:
            file.unlink()
        else:
            file.write_bytes(after)
        caplog.clear()
        problem = asyncio.run(look(path, caplog))
        if problem:
            file.write_bytes(before)
            asyncio.run(demand_all(path))
