"""Messages to bytes and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from cogwork.amqp.codec import decode as decode_value
from cogwork.amqp.codec import encode as encode_value
from cogwork.amqp.exceptions import Condition, EncodeError, ProtocolError
from cogwork.amqp.types import Described, Symbol
from cogwork.router.mesh.bounds import MESSAGE_BYTES_MAX
from cogwork.router.mesh.messages import MESSAGES

if TYPE_CHECKING:
    from cogwork.router.mesh.messages import Message

__all__ = ("check", "decode", "encode")


def encode(message: Message) -> bytes:
    """Encode one message.

    Raises:
        EncodeError: A field is out of range.
    """
    return encode_value(message.to_described())


def decode(data: bytes) -> Message | None:
    """Decode one message; one of a kind that this version does not know is None.

    Raises:
        ProtocolError: The bytes are no message, or one beyond the bounds; it says which field.
    """
    if len(data) > MESSAGE_BYTES_MAX:
        raise ProtocolError(
            Condition.RESOURCE_LIMIT_EXCEEDED,
            f"a message of {len(data)} bytes; at most {MESSAGE_BYTES_MAX} are taken",
        )
    value, end = decode_value(data)
    if end != len(data):
        raise ProtocolError(Condition.INVALID_FIELD, f"{len(data) - end} bytes follow a message")
    if type(value) is not Described or type(value.descriptor) is not Symbol:
        raise ProtocolError(Condition.INVALID_FIELD, f"{value!r:.80} is no message of the mesh")
    found = MESSAGES.get(value.descriptor)
    if found is None:
        return None
    return cast("Message", found.from_fields(value.value))


def check(message: Message) -> None:
    """See to it that neighbours will take a message.

    Raises:
        ValueError: They would not; it says which field.
    """
    try:
        decode(encode(message))
    except (EncodeError, ProtocolError) as error:
        raise ValueError(str(error)) from error
