"""What the kinds of schemas have in common, and how one is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

from cogwork.schema.errors import InvalidSchema

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("BODY_BYTES_MAX", "KINDS", "SCHEMA_BYTES_MAX", "Kind", "Schema", "make_schema")

SCHEMA_BYTES_MAX = 256 << 10
"""A schema is no larger."""

BODY_BYTES_MAX = 256 << 10
"""A larger message is none by any schema: checking costs time in proportion to its size."""

Kind = Literal["json", "protobuf"]

KINDS: tuple[Kind, ...] = ("json", "protobuf")


class Schema(Protocol):
    """Says what a message looks like."""

    @property
    def content_type(self) -> str:
        """What the messages' content-type is."""

    def takes(self, content_type: str) -> bool:
        """Return whether messages of a content-type can be messages by this schema."""

    def encode(self, value: object) -> bytes:
        """Make a body.

        Raises:
            InvalidBody: The schema does not allow it.
        """

    def decode(self, body: bytes, steps_max: int | None = None) -> object:
        """Read a body.

        Args:
            body: The octets.
            steps_max: What it may cost at most now; None is all that a message of its size has.

        Raises:
            InvalidBody: It is none by this schema.
            TooCostly: It needs more than `steps_max`.
        """

    def why_not_after(self, older: Schema) -> str | None:
        """Tell why it may not take each message that an older schema takes; None where it does."""


def make_schema(kind: str, definition: bytes, message: str = "") -> Schema:
    """Make a schema.

    Args:
        kind: `json` for JSON Schema, `protobuf` for Protocol Buffers.
        definition: A JSON document, or a serialised `FileDescriptorSet` with its imports, as
            `protoc --include_imports --descriptor_set_out` writes it.
        message: The full name of the message, for Protocol Buffers.

    Raises:
        InvalidSchema: It is none, or its use could not be bounded; or what it needs is missing.
    """
    if len(definition) > SCHEMA_BYTES_MAX:
        raise InvalidSchema(
            f"the schema has {len(definition)} octets, more than {SCHEMA_BYTES_MAX}"
        )
    if kind == "json":
        return _json()(definition)
    if kind == "protobuf":
        return _protobuf()(definition, message)
    raise InvalidSchema(f"schemas are of the kinds json and protobuf, not {kind!r:.40}")


def _json() -> Callable[[bytes], Schema]:
    try:
        from cogwork.schema.json_schema import JsonSchema  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise InvalidSchema(_missing(error)) from error
    return JsonSchema


def _protobuf() -> Callable[[bytes, str], Schema]:
    try:
        from cogwork.schema.protobuf_schema import ProtobufSchema  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise InvalidSchema(_missing(error)) from error
    return ProtobufSchema


def _missing(error: ImportError) -> str:
    return f"schemas need the extra: pip install 'cogwork[schema]' ({error})"
