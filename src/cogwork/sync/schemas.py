"""Schemas without asyncio."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cogwork.client.fields import MessageFields
    from cogwork.client.schemas import Schemas as AsyncSchemas
    from cogwork.dataplane.message.messages import Message
    from cogwork.schema import Registered
    from cogwork.sync.loop_thread import LoopThread

__all__ = ("Schemas",)


class Schemas:
    """What is registered of the messages at each address; see the asyncio client's `schemas`."""

    def __init__(self, thread: LoopThread, schemas: AsyncSchemas) -> None:
        self._thread = thread
        self._schemas = schemas

    def register(
        self,
        address: str,
        definition: bytes | str | Mapping[str, Any] | bool,  # a JSON Schema, too
        *,
        kind: str = "json",
        message: str = "",
        must_fit: bool = True,
    ) -> int:
        """Give an address a schema, or a new version of the one it has; return the version.

        Args:
            address: An address, or a pattern of addresses: `topic/orders.#`.
            definition: A JSON Schema, or a serialised `FileDescriptorSet`.
            kind: `json` or `protobuf`.
            message: The full name of the message, for Protocol Buffers.
            must_fit: Whether each message by the version before has to be one by this version.

        Raises:
            InvalidSchema: It is none; the text says why.
            Incompatible: It may refuse messages that the version before takes.
            Conflict: Somebody else has registered another one at the same time.
        """
        return self._thread.wait(
            self._schemas.register(
                address, definition, kind=kind, message=message, must_fit=must_fit
            )
        )

    def unregister(self, address: str) -> None:
        """Take an address its schema, with all versions."""
        self._thread.wait(self._schemas.unregister(address))

    def find(self, address: str, version: int | None = None) -> Registered | None:
        """Return what is registered for the messages at an address; None where nothing is.

        Args:
            address: Where they are sent to.
            version: Which version; None is the newest one.
        """
        return self._thread.wait(self._schemas.find(address, version))

    def versions(self, address: str) -> Sequence[Registered]:
        """List what is registered under an address or a pattern, the oldest version first."""
        return self._thread.wait(self._schemas.versions(address))

    def all(self) -> list[Registered]:
        """List what is registered: the newest version of each address."""
        return self._thread.wait(self._schemas.all())

    def encode(self, address: str, value: object, **fields: Unpack[MessageFields]) -> Message:
        """Make a message of a value, as the schema of an address says.

        Args:
            address: Where it will be sent to.
            value: What JSON can say; for Protocol Buffers a message, or a mapping with its fields.
            **fields: The message's, as in `Message`.

        Raises:
            InvalidBody: The schema does not allow it, or there is none.
        """
        return self._thread.wait(self._schemas.encode(address, value, **fields))

    def decode(self, message: Message, address: str | None = None) -> object:
        """Read what is in a message; its body as it is where the address has no schema.

        Args:
            message: As it was received.
            address: Where it was sent to; None is what the message says itself (`to`).

        Raises:
            InvalidBody: It is none by the schema, or nobody says where it was sent to.
        """
        return self._thread.wait(self._schemas.decode(message, address))

    def check(self, message: Message, address: str | None = None) -> str | None:
        """Return what is wrong with a message by the newest schema; None where nothing is.

        Args:
            message: Sent, received, or still to be sent.
            address: Where to; None is what the message says itself.
        """
        return self._thread.wait(self._schemas.check(message, address))
