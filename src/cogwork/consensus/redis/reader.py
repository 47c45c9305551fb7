"""Who reads the log of a stream on Redis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cogwork.consensus.redis.errors import translated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from redis.asyncio import Redis

__all__ = ("REQUEST_TIMEOUT_S", "RedisReader", "entries_of")

READ_BYTES = 2 << 20
READ_ENTRIES_MAX = 4096
REQUEST_TIMEOUT_S = 3.0

FIELD = b"e"


class RedisReader:
    """Reads a log from a position on, and follows it.

    Args:
        redis: The server.
        key: Of the Redis stream.
        position: Where to begin.
    """

    def __init__(self, redis: Redis, key: bytes, position: int) -> None:
        self._redis = redis
        self._key = key
        self._position = position
        self._count = 16

    async def next(self, wait_s: float) -> Sequence[tuple[int, bytes]]:
        """Returns what follows; nothing where nothing came in time."""
        block_ms = max(1, int(min(wait_s, REQUEST_TIMEOUT_S / 2) * 1000))
        after = f"{self._position - 1}-18446744073709551615"
        with translated():
            found: Any = await self._redis.xread(
                {self._key: after}, count=self._count, block=block_ms
            )
        if not found:
            return ()
        streams = found if isinstance(found, list) else list(found.items())
        listed = streams[0][1]
        entries = entries_of(listed[0] if listed and isinstance(listed[0], list) else listed)
        if entries:
            self._position = entries[-1][0] + 1
            size_bytes = sum(len(data) for _, data in entries) // len(entries)
            self._count = max(1, min(READ_ENTRIES_MAX, READ_BYTES // max(1, size_bytes)))
        return entries

    async def close(self) -> None:
        """Ends it."""


def entries_of(found: Any) -> list[tuple[int, bytes]]:  # noqa: ANN401 # what the library gives
    """Reads what XRANGE and XREAD answer; what others have put there counts as empty."""
    return [(int(entry_id.split(b"-")[0]), fields.get(FIELD, b"")) for entry_id, fields in found]
