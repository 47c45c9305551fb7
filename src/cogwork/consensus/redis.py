"""The engine `redis`: streams on a Redis server, as its type stream.

Theory of operation. An entry of ours is an entry of a Redis stream with the id `position-0`. A Lua
script compares the last position, held in a key beside it, and appends: scripts run alone. Redis
answers when its append-only file is as the server's `appendfsync` says, and replicates behind the
answer's back: a replica that takes over has lost what was answered last. So this engine promises
one disk at best, and never uniform agreement.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    ClusterDownError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from cogwork.consensus.capabilities import Capabilities
from cogwork.consensus.durability import Durability
from cogwork.consensus.engine import Members
from cogwork.consensus.shared.host import SharedHost, text_of
from cogwork.consensus.shared.server import Gone, Moved, ServerDown, ServerRefused

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

    from redis.asyncio.connection import AbstractConnection

    from cogwork.consensus.engine import EngineContext

__all__ = ("RedisHost",)

CAPABILITIES = Capabilities(durability=Durability.MEMORY, is_uniform=False)
"""What any Redis server gives; one with `appendfsync always` gives a disk."""

ENTRY_BYTES_MAX = 17 << 20
READ_BYTES = 2 << 20
READ_ENTRIES_MAX = 4096
REQUEST_TIMEOUT_S = 3.0
CONNECTIONS_MAX = 1024

TRIM_ENTRIES = 1000
"""So many are given up at once: the server does nothing else meanwhile."""

FIELD = b"e"

DOWN_ERRORS = (
    BusyLoadingError,
    ClusterDownError,
    OutOfMemoryError,
    ReadOnlyError,
    TryAgainError,
)
DOWN_CODES = ("NOREPLICAS", "MISCONF", "BUSY ")
"""A server that says so has done nothing, and may do it later: once it has its replicas, its disk,
its memory or its time again. The library has no types for these and leaves the code in the text."""

APPEND = """
local found = redis.call('HMGET', KEYS[2], 'id', 'last')
if found[1] ~= ARGV[1] then return -1 end
local last = tonumber(found[2])
if last ~= tonumber(ARGV[2]) then return {last} end
last = last + 1
redis.call('XADD', KEYS[1], last .. '-0', 'e', ARGV[3])
redis.call('HSET', KEYS[2], 'last', last)
return last
"""

OPEN = """
if redis.call('HSETNX', KEYS[2], 'id', ARGV[1]) == 1 then
  redis.call('HSET', KEYS[2], 'last', 0, 'first', 1)
end
return redis.call('HGET', KEYS[2], 'id')
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


class _Unreached(RedisConnectionError):
    """There is no connection to the server, so nothing was sent to it."""


class _Pool(ConnectionPool):
    """Connections, of which it is known whether there was one to send a command by."""

    async def get_connection(self, *arguments: object, **options: object) -> AbstractConnection:
        """Returns a connection that is open."""
        connect: Callable[..., Awaitable[AbstractConnection]] = super().get_connection
        try:
            return await connect(*arguments, **options)
        except (AuthenticationError, *DOWN_ERRORS):
            raise
        except (RedisConnectionError, RedisTimeoutError, OSError) as error:
            raise _Unreached(str(error)) from error


class RedisHost(SharedHost):
    """Streams on one Redis server.

    Options: `url`, such as `redis://localhost:6379/0`, and `prefix` of the keys.

    Args:
        context: What it is made with.
    """

    engine: ClassVar[str] = "redis"
    host_options: ClassVar[tuple[str, ...]] = ("url", "prefix")
    declared: ClassVar[Capabilities] = CAPABILITIES

    def __init__(self, context: EngineContext | None = None) -> None:
        super().__init__(context)
        url = text_of(self.context.options, "url", "redis://localhost:6379/0")
        self._prefix = text_of(self.context.options, "prefix", "cogwork")
        if urlsplit(url).scheme not in ("redis", "rediss", "unix"):
            raise ValueError(f"url is like redis://localhost:6379/0, not {url!r}")
        self._place = urlsplit(url).netloc.rpartition("@")[2] or urlsplit(url).path
        pool = _Pool.from_url(
            url,
            socket_timeout=REQUEST_TIMEOUT_S,
            socket_connect_timeout=REQUEST_TIMEOUT_S,
            retry=Retry(NoBackoff(), 0),
            max_connections=CONNECTIONS_MAX,
        )
        self._redis: Redis = Redis(connection_pool=pool)

    def _keys(self, stream: str) -> tuple[bytes, bytes]:
        # In braces, so that a Redis cluster keeps both in one slot.
        base = f"{self._prefix}:{{{stream}}}"
        return f"{base}:log".encode(), f"{base}:head".encode()

    async def make_log(self, stream: str, options: Mapping[str, object]) -> RedisLog:
        """Returns the log of a stream; makes it where it is new."""
        del options
        keys = self._keys(stream)
        with _translated():
            log_id = await self._redis.eval(OPEN, 2, *keys, os.urandom(8).hex())
        return RedisLog(self._redis, keys, log_id, self._place, await self._durability())

    async def drop_log(self, stream: str) -> None:
        """Deletes the log of a stream, if there is one."""
        with _translated():
            await self._redis.delete(*self._keys(stream))

    async def reach(self) -> None:
        """Sees that the server answers."""
        with _translated():
            await self._redis.ping()

    async def disconnect(self) -> None:
        """Leaves the server."""
        await self._redis.aclose(close_connection_pool=True)

    async def _durability(self) -> Durability:
        """Asks the server how it is set up; one that does not tell gives nothing."""
        try:
            with _translated():
                found = await self._redis.config_get("append*")
        except ServerRefused:
            return Durability.MEMORY
        on_disk = (found.get("appendonly"), found.get("appendfsync")) == ("yes", "always")
        return Durability.DISK if on_disk else Durability.MEMORY


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
        """Appends an entry behind the one at position `expected`."""
        with _translated():
            answer = await self._append(keys=self._keys, args=(self._id, expected, entry))
        if isinstance(answer, list):
            raise Moved(int(answer[0]))
        if not isinstance(answer, int) or answer < 0:
            raise Gone
        return answer

    async def fetch(self, position: int) -> tuple[int, bytes] | None:
        """Returns the first entry at a position or above."""
        with _translated():
            found = await self._redis.xrange(self._keys[0], min=f"{position}-0", count=1)
        entries = _entries(found)
        return entries[0] if entries else None

    async def ends(self) -> tuple[int, int]:
        """Returns the positions of the first and the last entry."""
        with _translated():
            log_id, first, last = await self._redis.hmget(self._keys[1], "id", "first", "last")
        if log_id != self._id:
            raise Gone
        return int(first or 1), int(last or 0)

    async def reader(self, position: int) -> RedisReader:
        """Returns a reader that begins at a position."""
        return RedisReader(self._redis, self._keys[0], position)

    async def trim(self, before: int) -> None:
        """Gives up the entries below a position."""
        first = 0
        while first < before:
            with _translated():
                first = await self._trim(keys=self._keys, args=(self._id, before, TRIM_ENTRIES))
            if first < 0:
                raise Gone

    async def members(self) -> Members:
        """Tells which server holds the log; replicas do not count."""
        with _translated():
            await self._redis.ping()
        return Members((self._place,), (), self._place)

    async def close(self) -> None:
        """Lets go of it."""


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
        with _translated():
            found: Any = await self._redis.xread(
                {self._key: after}, count=self._count, block=block_ms
            )
        if not found:
            return ()
        streams = found if isinstance(found, list) else list(found.items())
        listed = streams[0][1]
        entries = _entries(listed[0] if listed and isinstance(listed[0], list) else listed)
        if entries:
            self._position = entries[-1][0] + 1
            size_bytes = sum(len(data) for _, data in entries) // len(entries)
            self._count = max(1, min(READ_ENTRIES_MAX, READ_BYTES // max(1, size_bytes)))
        return entries

    async def close(self) -> None:
        """Ends it."""


def _entries(found: Any) -> list[tuple[int, bytes]]:  # noqa: ANN401 # what the library gives
    """Reads what XRANGE and XREAD answer; what others have put there counts as empty."""
    return [(int(entry_id.split(b"-")[0]), fields.get(FIELD, b"")) for entry_id, fields in found]


@contextmanager
def _translated() -> Iterator[None]:
    """Turns the library's errors into those of logs."""
    try:
        yield
    except (AuthenticationError, NoPermissionError) as error:
        raise ServerRefused(_told(error)) from error
    except DOWN_ERRORS as error:
        raise ServerDown(_told(error), may_have_happened=False) from error
    except _Unreached as error:
        raise ServerDown(f"Redis: {error}", may_have_happened=False) from error
    except (RedisConnectionError, RedisTimeoutError, OSError) as error:
        raise ServerDown(f"Redis: {error}") from error
    except ResponseError as error:
        if str(error).startswith(DOWN_CODES):
            raise ServerDown(_told(error), may_have_happened=False) from error
        raise ServerRefused(_told(error)) from error
    except (RedisError, ValueError, TypeError) as error:
        raise ServerDown(f"Redis answers nonsense: {error}") from error


def _told(error: RedisError) -> str:
    """Says what the server says, without where in which script."""
    return "Redis: " + str(error).partition(" script: ")[0]
