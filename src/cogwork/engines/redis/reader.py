"""Who reads the log of a stream on Redis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cogwork.engines.redis.errors import translated
from cogwork.engines.shared.pace import Pace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from redis.asyncio import Redis

__all__ = ("REQUEST_TIMEOUT_S", "RedisReader", "entries_of")

READ_ENTRIES_MAX = 4096

SAFE_ENTRIES = 2
"""One may have 17 MiB."""

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
        self._pace = Pace(SAFE_ENTRIES, READ_ENTRIES_MAX, self._fetch)

    async def next(self, wait_s: float) -> Sequence[tuple[int, bytes]]:
        """Return what follows; nothing where nothing came in time."""
        block_ms = max(1, int(min(wait_s, REQUEST_TIMEOUT_S / 2) * 1000))
        after = f"{self._position - 1}-18446744073709551615"
        with translated():
            count = await self._pace.count(self._position)
            found: Any = await self._redis.xread({self._key: after}, count=count, block=block_ms)
        entries = _listed(found)
        self._pace.plan(entries, count)
        if entries:
            self._position = entries[-1][0] + 1
        return entries

    async def _fetch(self, position: int) -> tuple[int, bytes] | None:
        found = entries_of(await self._redis.xrange(self._key, min=f"{position}-0", count=1))
        return found[0] if found else None

    async def close(self) -> None:
        """End it."""


def entries_of(found: Any) -> list[tuple[int, bytes]]:  # noqa: ANN401 # what the library gives
    """Read what XRANGE and XREAD answer; what others have put there counts as empty."""
    return [(int(entry_id.split(b"-")[0]), fields.get(FIELD, b"")) for entry_id, fields in found]


def _listed(found: Any) -> list[tuple[int, bytes]]:  # noqa: ANN401 # what the library gives
    if not found:
        return []
    streams = found if isinstance(found, list) else list(found.items())
    listed = streams[0][1]
    return entries_of(listed[0] if listed and isinstance(listed[0], list) else listed)
