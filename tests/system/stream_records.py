"""Streams of a container under test: made, read to the end, asked for their figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import cogwork
    from cogwork.client import Stream, StreamReader


CONFIGURATION = """
[[stream]]
address = "stream/flaky"
engine = "flaky:FlakyHost"

[[stream]]
address = "stream/small"
retention_records = 100

[[stream]]
address = "stream/kept"
capture = ["topic/flights.#", "topic/*.urgent"]
"""


async def created(client: cogwork.Client, name: str) -> Stream:
    """Make a stream."""
    await client.manage("CREATE", {"type": "stream", "name": f"stream/{name}"})
    return client.stream(name)


async def row_of(client: cogwork.Client, name: str) -> dict[str, Any]:
    """Ask the container for a stream's figures."""
    body = (await client.manage("READ", {"type": "stream", "name": f"stream/{name}"})).body
    assert isinstance(body, dict)
    return body


async def bodies(reader: StreamReader, count: int) -> list[object]:
    """Take so many records, and see that their offsets have no gap."""
    taken: list[cogwork.Record] = []
    while len(taken) < count:
        taken += await reader.take(count - len(taken))
    offsets = [record.offset for record in taken]
    assert offsets == list(range(offsets[0], offsets[0] + count))
    return [record.body for record in taken]
