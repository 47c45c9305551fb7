"""The log of a stream on Redis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.engines.redis.errors import translated
from cogwork.engines.redis.reader import RedisReader, entries_of
from cogwork.engines.shared.entry import link_of
from cogwork.engines.shared.server import Gone, Moved
from cogwork.plugin.engine.capabilities import Capabilities
from cogwork.plugin.engine.contract import Members

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from cogwork.plugin.engine.durability import Durability

__all__ = ("RedisLog",)

ENTRY_BYTES_MAX = 17 << 20

TRIM_ENTRIES = 1000
"""So many are given up at once: the server does nothing else meanwhile."""

APPEND = """
local found = redis.call('HMGET', KEYS[2], 'id', 'last', 'tip')
if found[1] ~= ARGV[1] then return -1 end
local last = tonumber(found[2])
if last ~= tonumber(ARGV[2]) then return {last} end
local at = last .. ':'
local tip = found[3] or ''
if ARGV[5] ~= '' and string.sub(tip, 1, #at) == at and tip ~= at .. ARGV[5] then return {last} end
last = last + 1
redis.call('XADD', KEYS[1], last .. '-0', 'e', ARGV[3])
redis.call('HSET', KEYS[2], 'last', last, 'tip', last .. ':' .. ARGV[4])
return last
"""
"""The tip is the last entry's position and id: a server that lost entries may have others there.

A hash from before there were tips has none, and one to which an older container has appended since
has one of another position: neither tells anything.
"""

TRIM = """
local found = redis.call('HMGET', KEYS[2], 'id', 'first')
if found[1] ~= ARGV[1] then return -1 end
local first, before = tonumber(found[2]), tonumber(ARGV[2])
if first >= before then return first end
first = math.min(before, first + tonumber(ARGV[3]))
redis.call('XTRIM', KEYS[1], 'MINID', first .. '-0')
redis.call('HSET', KEYS[2], 'first', first)
return first
"""


class RedisLog:
    """The log of one stream.

    Args:
        redis: The server.
        keys: Of the Redis stream, and of the hash beside it.
        log_id: Of this log, which another one of the same name has not.
        place: Where the server is, for people.
        durability: As the server is set up.
    """

    entry_bytes_max = ENTRY_BYTES_MAX

    def __init__(
        self,
        redis: Redis,
        keys: tuple[bytes, bytes],
        log_id: bytes,
        place: str,
        durability: Durability,
    ) -> None:
        self.capabilities = Capabilities(durability=durability, is_uniform=False)
        self._redis = redis
        self._keys = keys
        self._id = log_id
        self._place = place
        self._append = redis.register_script(APPEND)
        self._trim = redis.register_script(TRIM)

    async def append(self, expected: int, entry: bytes) -> int:
        """Append an entry behind the one at position `expected`."""
        entry_id, previous, previous_id = link_of(entry)
        # What is known not to count may be the last one: then the entry follows an older one.
        tip = previous_id if previous == expected else b""
        with translated():
            answer = await self._append(
                keys=self._keys, args=(self._id, expected, entry, entry_id, tip)
            )
        if isinstance(answer, list):
            raise Moved(int(answer[0]))
        if not isinstance(answer, int) or answer < 0:
            raise Gone
        return answer

    async def fetch(self, position: int) -> tuple[int, bytes] | None:
        """Return the first entry at a position or above."""
        with translated():
            found = await self._redis.xrange(self._keys[0], min=f"{position}-0", count=1)
        entries = entries_of(found)
        return entries[0] if entries else None

    async def ends(self) -> tuple[int, int]:
        """Return the positions of the first and the last entry."""
        with translated():
            log_id, first, last = await self._redis.hmget(self._keys[1], "id", "first", "last")
        if log_id != self._id:
            raise Gone
        return int(first or 1), int(last or 0)

    async def reader(self, position: int) -> RedisReader:
        """Return a reader that begins at a position."""
        return RedisReader(self._redis, self._keys[0], position)

    async def trim(self, before: int) -> None:
        """Give up the entries below a position."""
        first = 0
        while first < before:
            with translated():
                first = await self._trim(keys=self._keys, args=(self._id, before, TRIM_ENTRIES))
            if first < 0:
                raise Gone

    async def members(self) -> Members:
        """Return which server holds the log; replicas do not count."""
        with translated():
            await self._redis.ping()
        return Members((self._place,), (), self._place)

    async def close(self) -> None:
        """Let go of it."""
