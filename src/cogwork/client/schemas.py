"""The schemas of a client, as an application sees them: made, looked up, and used.

Theory of operation. What is registered stands in a stream. With its first use it is read from its
beginning, and followed from then on, so that to encode and decode asks nobody. To register is to
append an event, and to wait until it comes out of the stream: then it is known what came of it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Unpack
from uuid import uuid4

import msgspec

from cogwork.amqp.errors import CogworkError
from cogwork.client.fields import MessageFields, message_of
from cogwork.client.streams.stream import Stream
from cogwork.plugin.engine.contract import Origin
from cogwork.schema import SCHEMAS, InvalidBody, Registered, Registry, SchemaError
from cogwork.schema.bodies import (
    ADDRESS_ANNOTATION,
    VERSION_ANNOTATION,
    content_of,
    name_of,
    version_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cogwork.client.context import ClientContext
    from cogwork.client.streams.reader import StreamReader
    from cogwork.dataplane.client.stream_records import Record
    from cogwork.dataplane.message.messages import Message

__all__ = ("Schemas",)

SNAPSHOT_EVERY = 1_000
"""So many records are replaced by a snapshot, for those who begin to read."""

HEARD_S, HEARD_PAUSE_S = 1.0, 0.02
"""So long a message waits for its schema, where that may only not have been heard of yet."""

log = logging.getLogger("cogwork.client")


class Schemas:
    """Made by `Client.schemas`."""

    def __init__(self, client: ClientContext) -> None:
        """Read nothing yet.

        Args:
            client: The connection.
        """
        self._client = client
        self._stream = Stream(client, SCHEMAS)
        self._registry = Registry()
        self._next = 0
        self._target: int | None = None
        self._vain = -1
        self._task: asyncio.Task[None] | None = None
        self._current: asyncio.Future[Registry] | None = None
        self._waiting: dict[str, asyncio.Future[int]] = {}

    # -- what is registered

    async def registry(self) -> Registry:
        """Return all that is registered; from now on it is kept up to date.

        Raises:
            CogworkError: The stream of schemas cannot be read.
        """
        if self._task is None or self._task.done():
            self._current = asyncio.get_running_loop().create_future()
            self._task = self._client.spawn(self._follow(self._current))
        assert self._current is not None
        return await asyncio.shield(self._current)

    async def register(
        self,
        address: str,
        definition: bytes | str | Mapping[str, Any] | bool,  # a JSON Schema, too
        *,
        kind: str = "json",
        message: str = "",
        must_fit: bool = True,
    ) -> int:
        """Give an address a schema, or a new version of the one it has; return the version.

        What is registered already is left as it is.

        Args:
            address: An address, or a pattern of addresses: `topic/orders.#`.
            definition: A JSON Schema, or a serialised `FileDescriptorSet`, as `protoc
                --include_imports --descriptor_set_out` writes it.
            kind: `json` or `protobuf`.
            message: The full name of the message, for Protocol Buffers.
            must_fit: Whether each message by the version before has to be one by this version.

        Raises:
            InvalidSchema: It is none; the text says why.
            Incompatible: It may refuse messages that the version before takes.
            Conflict: Somebody else has registered another one at the same time.
        """
        octets = _octets(definition)
        registry = await self.registry()
        there = registry.versions(address)
        if there and there[-1].is_like(kind, octets, message):
            return there[-1].version
        name = uuid4().hex
        event = registry.register(address, kind, octets, message, id=name, must_fit=must_fit)
        return await self._append(name, event)

    async def unregister(self, address: str) -> None:
        """Take an address its schema, with all versions.

        Raises:
            NotRegistered: It has none; a kind of `InvalidSchema`.
            Conflict: Somebody else has changed it at the same time.
        """
        registry = await self.registry()
        name = uuid4().hex
        await self._append(name, registry.unregister(address, id=name))

    async def find(self, address: str, version: int | None = None) -> Registered | None:
        """Return what is registered for the messages at an address; None where nothing is.

        Args:
            address: Where they are sent to.
            version: Which version; None is the newest one.
        """
        return (await self.registry()).find(address, version)

    async def versions(self, address: str) -> Sequence[Registered]:
        """List what is registered under an address or a pattern, the oldest version first."""
        return (await self.registry()).versions(address)

    async def all(self) -> list[Registered]:
        """List what is registered: the newest version of each address, in their order."""
        return sorted(await self.registry(), key=lambda it: it.address)

    # -- messages

    async def encode(self, address: str, value: object, **fields: Unpack[MessageFields]) -> Message:
        """Make a message of a value, as the schema of an address says.

        Args:
            address: Where it will be sent to.
            value: What JSON can say; for Protocol Buffers a message, or a mapping with its fields.
            **fields: The message's, as in `Message`.

        Raises:
            InvalidBody: The schema does not allow it, or there is none.
        """
        registry = await self.registry()
        content_type, body = registry.encode(address, value)
        found = registry.find(address)
        assert found is not None
        annotations = fields.get("annotations") or {}
        made_by = {VERSION_ANNOTATION: found.version, ADDRESS_ANNOTATION: found.address}
        fields["content_type"], fields["annotations"] = content_type, {**annotations, **made_by}
        fields.setdefault("to", address)  # `decode` goes by it, and a publisher's link adds none
        return message_of(body, self.encode, **fields)

    async def decode(self, message: Message, address: str | None = None) -> object:
        """Read what is in a message; its body as it is where the address has no schema.

        Args:
            message: As it was received.
            address: Where it was sent to; None is what the message says itself (`to`).

        Raises:
            InvalidBody: It is none by the schema that it was made by, or that is not there any
                more, or nobody says where it was sent to.
        """
        registry = await self.registry()
        where = _address_of(message, address)
        if registry.find(where) is None:
            return message.body
        content_type, body = content_of(message)
        version, name = version_of(message), name_of(message)
        if version is not None:
            await self._heard(registry, where, version, name)
        return registry.decode(where, content_type, body, version, name)

    async def check(self, message: Message, address: str | None = None) -> str | None:
        """Return what is wrong with a message by the newest schema; None where nothing is.

        Args:
            message: Sent, received, or still to be sent.
            address: Where to; None is what the message says itself.
        """
        registry = await self.registry()
        try:
            where = _address_of(message, address)
            if registry.find(where) is None:
                return None
            registry.decode(where, *content_of(message))
        except InvalidBody as invalid:
            return str(invalid)
        return None

    # -- following

    async def _heard(
        self, registry: Registry, address: str, version: int, name: str | None
    ) -> None:
        """Wait a little for a version that is newer than what has been heard of.

        Who waited in vain, as for a number that somebody has made up, does so once until there is
        something new.
        """
        until_s = time.monotonic() + HEARD_S
        while not registry.has_heard_of(address, version, name):
            if self._vain == self._next:
                return
            if time.monotonic() >= until_s:
                self._vain = self._next
                return
            await asyncio.sleep(HEARD_PAUSE_S)

    async def _append(self, name: str, event: bytes) -> int:
        waiter: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting[name] = waiter
        try:
            await self._stream.publish(event, content_type="application/json")
            return await waiter
        finally:
            self._waiting.pop(name, None)

    async def _follow(self, current: asyncio.Future[Registry]) -> None:
        """Read the stream for as long as it can be read."""
        failure: Exception = SchemaError(f"{SCHEMAS} is not read any more")
        try:
            try:
                await self._read(Origin.SNAPSHOT, current)
            except _NoSnapshot as error:
                log.warning("ignoring the snapshot in %s: %s", SCHEMAS, error)
                await self._read(Origin.FIRST, current)
        except CogworkError as error:
            failure = error
        finally:
            waiting: list[asyncio.Future[Any]] = [current, *self._waiting.values()]
            for waiter in waiting:
                if not waiter.done():
                    waiter.set_exception(failure)
            # Whoever waited has been told; nobody else need be.
            with suppress(asyncio.InvalidStateError, asyncio.CancelledError):
                current.exception()

    async def _read(self, start: Origin, current: asyncio.Future[Registry]) -> None:
        self._registry, self._next, self._target = Registry(), 0, None
        async with self._stream.read(start, on_truncated="first") as reader:
            telling = asyncio.create_task(self._tell(reader, current))
            try:
                async for batch in reader.batches():
                    for record in batch:
                        self._take(record)
                    self._look(current)
            finally:
                telling.cancel()

    async def _tell(self, reader: StreamReader, current: asyncio.Future[Registry]) -> None:
        with suppress(CogworkError):
            await reader.caught_up()
            self._target = reader.next_offset or 0
            self._look(current)

    def _look(self, current: asyncio.Future[Registry]) -> None:
        """Let those go on who wait until all is known that there was."""
        if self._target is not None and self._next >= self._target and not current.done():
            current.set_result(self._registry)

    def _take(self, record: Record) -> None:
        if record.is_snapshot:
            self._next = record.offset
            try:
                self._registry = Registry.from_bytes(content_of(record)[1])
            except SchemaError as error:
                raise _NoSnapshot(str(error)) from error
            return
        self._next = record.offset + 1
        outcome: int | SchemaError
        name = ""
        try:
            body = content_of(record)[1]
            name = _id_of(body)
            outcome = self._registry.apply(body).version
        except SchemaError as error:
            log.info("ignoring record %s of %s: %s", record.offset, SCHEMAS, error)
            outcome = error
        waiter = self._waiting.get(name)
        if waiter is None or waiter.done():
            return
        if isinstance(outcome, int):
            waiter.set_result(outcome)
            if self._next % SNAPSHOT_EVERY == 0:
                self._client.spawn(self._keep_snapshot(self._registry.to_bytes(), self._next))
        else:
            waiter.set_exception(outcome)

    async def _keep_snapshot(self, data: bytes, offset: int) -> None:
        try:
            await self._stream.save_snapshot(data, offset)
        except CogworkError as error:
            log.info("cannot save a snapshot of the schemas: %s", error)


class _NoSnapshot(SchemaError):
    """What is kept as the registry's snapshot is none."""


def _octets(definition: bytes | str | Mapping[str, Any] | bool) -> bytes:
    if isinstance(definition, bytes):
        return definition
    if isinstance(definition, str):
        return definition.encode()
    return msgspec.json.encode(definition)


def _address_of(message: Message, address: str | None) -> str:
    found = message.to if address is None else address
    if not isinstance(found, str) or not found:
        raise InvalidBody("where it was sent to is not in the message: say the address")
    return found


class _Named(msgspec.Struct):
    id: str = ""


def _id_of(event: bytes) -> str:
    try:
        return msgspec.json.decode(event, type=_Named).id
    except (msgspec.DecodeError, RecursionError):
        return ""
