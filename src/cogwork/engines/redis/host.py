"""A Redis server, as a container's engine has it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from cogwork.engines.redis.errors import DOWN_ERRORS, Unreached, translated
from cogwork.engines.redis.log import RedisLog
from cogwork.engines.redis.reader import REQUEST_TIMEOUT_S
from cogwork.engines.shared.host import SharedHost, text_of
from cogwork.engines.shared.server import ServerRefused
from cogwork.engines.shared.urls import demand_url, has_login
from cogwork.plugin.engine.capabilities import Capabilities
from cogwork.plugin.engine.durability import Durability

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from redis.asyncio.connection import AbstractConnection

    from cogwork.plugin.engine.contract import EngineContext

__all__ = ("RedisHost",)

CAPABILITIES = Capabilities(durability=Durability.MEMORY, is_uniform=False)
"""What any Redis server gives; one with `appendfsync always` gives a disk."""

CONNECTIONS_MAX = 1024

OPEN = """
if redis.call('HSETNX', KEYS[2], 'id', ARGV[1]) == 1 then
  redis.call('HSET', KEYS[2], 'last', 0, 'first', 1)
end
return redis.call('HGET', KEYS[2], 'id')
"""


class _Pool(ConnectionPool):
    """Connections, of which it is known whether there was one to send a command by."""

    async def get_connection(self, *arguments: object, **options: object) -> AbstractConnection:
        """Return a connection that is open."""
        connect: Callable[..., Awaitable[AbstractConnection]] = super().get_connection
        try:
            return await connect(*arguments, **options)
        except (AuthenticationError, *DOWN_ERRORS):
            raise
        except (RedisConnectionError, RedisTimeoutError, OSError) as error:
            raise Unreached(str(error)) from error


LOGIN = {"user": "username", "password": "password"}
"""Options, and what the library calls them."""


class RedisHost(SharedHost):
    """Streams on one Redis server.

    Options: `url`, such as `redis://localhost:6379/0`; `prefix` of the keys; `user` and `password`.

    Args:
        context: What it is made with.
    """

    engine: ClassVar[str] = "redis"
    host_options: ClassVar[tuple[str, ...]] = ("url", "prefix", "user", "password")
    declared: ClassVar[Capabilities] = CAPABILITIES

    def __init__(self, context: EngineContext | None = None) -> None:
        super().__init__(context)
        options = self.context.options
        url = text_of(options, "url", "redis://localhost:6379/0")
        self._prefix = text_of(options, "prefix", "cogwork")
        demand_url(url, ("redis", "rediss", "unix"), "redis://localhost:6379/0")
        login = {key: text_of(options, name, "") for name, key in LOGIN.items() if name in options}
        if login and has_login(url):
            raise ValueError("a user or password stands in url, too: it is expected in one place")
        self._place = urlsplit(url).netloc.rpartition("@")[2] or urlsplit(url).path
        pool = _Pool.from_url(
            url,
            socket_timeout=REQUEST_TIMEOUT_S,
            socket_connect_timeout=REQUEST_TIMEOUT_S,
            **({} if url.startswith("unix:") else {"socket_keepalive": True}),
            **login,
            retry=Retry(NoBackoff(), 0),
            max_connections=CONNECTIONS_MAX,
        )
        self._redis: Redis = Redis(connection_pool=pool)

    def _keys(self, stream: str) -> tuple[bytes, bytes]:
        # In braces, so that a Redis cluster keeps both in one slot.
        base = f"{self._prefix}:{{{stream}}}"
        return f"{base}:log".encode(), f"{base}:head".encode()

    async def make_log(self, stream: str, options: Mapping[str, object]) -> RedisLog:
        """Return the log of a stream; make it where it is new."""
        del options
        keys = self._keys(stream)
        with translated():
            log_id = await self._redis.eval(OPEN, 2, *keys, os.urandom(8).hex())
        return RedisLog(self._redis, keys, log_id, self._place, await self._durability())

    async def drop_log(self, stream: str) -> None:
        """Delete the log of a stream, if there is one."""
        with translated():
            await self._redis.delete(*self._keys(stream))

    async def reach(self) -> None:
        """See that the server answers."""
        with translated():
            await self._redis.ping()

    async def disconnect(self) -> None:
        """Leave the server."""
        await self._redis.aclose(close_connection_pool=True)

    async def _durability(self) -> Durability:
        """Ask the server how it is set up; one that does not tell gives nothing."""
        try:
            with translated():
                found = await self._redis.config_get("append*")
        except ServerRefused:
            return Durability.MEMORY
        on_disk = (found.get("appendonly"), found.get("appendfsync")) == ("yes", "always")
        return Durability.DISK if on_disk else Durability.MEMORY
