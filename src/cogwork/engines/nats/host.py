"""A NATS server, or a cluster of them, as a container's engine has it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import quote

from nats.js.api import DiscardPolicy, StorageType, StreamConfig
from nats.js.errors import NotFoundError

from cogwork.engines.nats.connection import REQUEST_TIMEOUT_S, NatsConnection
from cogwork.engines.nats.errors import translated
from cogwork.engines.nats.log import NatsLog
from cogwork.engines.shared.host import SharedHost, number_of, text_of
from cogwork.engines.shared.server import ServerDown
from cogwork.plugin.engine.capabilities import Capabilities
from cogwork.plugin.engine.durability import Durability

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.plugin.engine.contract import EngineContext

__all__ = ("NatsHost",)

CAPABILITIES = Capabilities(durability=Durability.MEMORY, is_uniform=False)
"""What one server gives; a stream with three replicas gives more."""


class NatsHost(SharedHost):
    """Streams on one NATS server, or a cluster of them.

    Options: `url`, such as `nats://localhost:4222`, or several behind commas; `prefix` of streams'
    names; `user` and `password`, or `token`, or `credentials_file`. Of a stream: `replicas` (1 if
    not given), `storage` (`file` or `memory`).

    Args:
        context: What it is made with.
    """

    engine: ClassVar[str] = "nats"
    host_options: ClassVar[tuple[str, ...]] = (
        *("url", "prefix", "user", "password", "token", "credentials_file"),
    )
    stream_options: ClassVar[tuple[str, ...]] = ("replicas", "storage")
    declared: ClassVar[Capabilities] = CAPABILITIES

    def __init__(self, context: EngineContext | None = None) -> None:
        super().__init__(context)
        options = self.context.options
        urls = text_of(options, "url", "nats://localhost:4222").split(",")
        self._prefix = text_of(options, "prefix", "cogwork")
        names = {
            "user": "user",
            "password": "password",
            "token": "token",
            "credentials_file": "user_credentials",
        }
        login = {names[name]: text_of(options, name, "") for name in names if name in options}
        self._connection = NatsConnection([each.strip() for each in urls], login)

    def _name(self, stream: str) -> str:
        # A name of JetStream has no dots, blanks, slashes or wildcards.
        quoted = quote(stream, safe="").replace(".", "%2E").replace("*", "%2A").replace("%", "=")
        return f"{self._prefix}-{quoted}"

    async def make_log(self, stream: str, options: Mapping[str, object]) -> NatsLog:
        """Return the log of a stream; make it where it is new."""
        replicas = int(number_of(options, "replicas", 1))
        storage = text_of(options, "storage", "file")
        if storage not in ("file", "memory"):
            raise ValueError(f"storage is file or memory, not {storage!r}")
        name = self._name(stream)
        client, streams = await self._connection.session()
        config = StreamConfig(
            name=name,
            subjects=[name],
            storage=StorageType(storage),
            num_replicas=replicas,
            discard=DiscardPolicy.NEW,
        )
        with translated():
            try:
                info = await streams.stream_info(name)
            except NotFoundError:
                info = await streams.add_stream(config)
        return NatsLog(self._connection, client, info)

    async def drop_log(self, stream: str) -> None:
        """Delete the log of a stream, if there is one."""
        streams = (await self._connection.session()).streams
        with translated(), contextlib.suppress(NotFoundError):
            await streams.delete_stream(self._name(stream))

    async def reach(self) -> None:
        """See that the server answers."""
        client = (await self._connection.session()).client
        if not client.is_connected:
            raise ServerDown("NATS: not connected", may_have_happened=False)
        with translated():
            await client.flush(int(REQUEST_TIMEOUT_S))

    async def disconnect(self) -> None:
        """Leave the server."""
        await self._connection.close()
