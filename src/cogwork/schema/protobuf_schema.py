"""Protocol Buffers: a message by its descriptors, without generated code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from google.protobuf import json_format
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, EncodeError, Message
from google.protobuf.message_factory import GetMessageClass

from cogwork.schema.errors import InvalidBody, InvalidSchema, shortened
from cogwork.schema.protobuf_compatibility import is_required, why_unreadable
from cogwork.schema.schema import BODY_BYTES_MAX

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

    from cogwork.schema.schema import Schema

__all__ = ("ProtobufSchema",)

CONTENT_TYPES = (
    "application/protobuf",
    "application/x-protobuf",
    "application/vnd.google.protobuf",
)

FILES_MAX = 200


class ProtobufSchema:
    """A message type. Fields that it does not name may be there, as Protocol Buffers have it.

    Args:
        definition: A serialised `FileDescriptorSet`, each file after those that it imports.
        message: The full name of the message.

    Raises:
        InvalidSchema: It is none, or has no such message.
    """

    content_type = CONTENT_TYPES[0]

    def __init__(self, definition: bytes, message: str) -> None:
        self._class = GetMessageClass(_descriptor(definition, message))

    def takes(self, content_type: str) -> bool:
        """Return whether messages of a content-type can be messages by this schema."""
        return content_type.partition(";")[0].strip().lower() in CONTENT_TYPES

    def encode(self, value: object) -> bytes:
        """Make a body of a message of this type, or of a mapping with its fields."""
        try:
            if isinstance(value, Mapping):
                value = json_format.ParseDict(dict(value), self._class())
            if not isinstance(value, Message):
                raise InvalidBody(f"a message or a mapping is expected, not {type(value).__name__}")
            expected = self._class.DESCRIPTOR.full_name
            if value.DESCRIPTOR.full_name != expected:
                raise InvalidBody(f"a {expected} is expected, not {value.DESCRIPTOR.full_name:.80}")
            body: bytes = value.SerializeToString()
        except (json_format.ParseError, EncodeError, RecursionError) as error:
            raise InvalidBody(f"no message can be made of it: {error}") from error
        self.decode(body)
        return body

    def decode(self, body: bytes, steps_max: int | None = None) -> Message:  # noqa: ARG002  # as other schemas have it
        """Read a body; that costs less than a step for each octet."""
        if len(body) > BODY_BYTES_MAX:
            raise InvalidBody(f"{len(body)} octets are more than the {BODY_BYTES_MAX} of a message")
        message = self._class()
        try:
            message.ParseFromString(body)
        except DecodeError as error:
            raise InvalidBody(f"no {message.DESCRIPTOR.full_name}: {error}") from error
        if not message.IsInitialized():
            raise InvalidBody(f"required fields are missing: {_missing(message)}")
        return message

    def why_not_after(self, older: Schema) -> str | None:
        """Tell why it may not take each message that an older schema takes; None where it does."""
        if not isinstance(older, ProtobufSchema):
            return "the version before is none of Protocol Buffers"
        return why_unreadable(self._class.DESCRIPTOR, older._class.DESCRIPTOR)


def _missing(message: Message) -> str:
    """Name the required fields that a message lacks itself.

    A list of all those within it, as the library makes it, can be thousands of times as long as the
    message: each has the names of all that it is within.
    """
    own = [
        field.name
        for field in message.DESCRIPTOR.fields
        if is_required(field) and not message.HasField(field.name)
    ]
    return ", ".join(own) or "of a message within it"


def _descriptor(definition: bytes, message: str) -> Descriptor:
    pool = DescriptorPool()
    try:
        files = FileDescriptorSet.FromString(definition).file
        if len(files) > FILES_MAX:
            raise InvalidSchema(f"{len(files)} files are more than {FILES_MAX}")
        for each in files:
            pool.AddSerializedFile(each.SerializeToString())
    except (DecodeError, TypeError, ValueError) as error:
        if isinstance(error, InvalidSchema):
            raise
        raise InvalidSchema(
            shortened(f"no FileDescriptorSet that contains what it imports: {error}")
        ) from error
    try:
        return pool.FindMessageTypeByName(message)
    except KeyError as error:
        known = ", ".join(
            f"{f.package}.{m.name}".lstrip(".") for f in files for m in f.message_type
        )
        raise InvalidSchema(shortened(f"there is no message {message!r}, but {known}")) from error
