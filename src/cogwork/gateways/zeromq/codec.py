"""JSON and MessagePack: how headers and bodies are written and read."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Protocol
from uuid import UUID

import msgspec

from cogwork.gateways.zeromq.errors import Code, Fault
from cogwork.gateways.zeromq.values import (
    Counted,
    as_utc,
    check,
    decimal_of,
    from_json,
    to_json,
    written,
)

__all__ = ("JSON", "MESSAGEPACK", "Codec", "codec_for", "codec_of")

UUID_TYPE, DECIMAL_TYPE = 1, 2
"""Extension types of MessagePack; -1 is its own for times."""

MAP_BYTES = frozenset({*range(0x80, 0x90), 0xDE, 0xDF})
"""What a map in MessagePack starts with; JSON starts with something less."""


class Codec(Protocol):
    """One way to write values.

    Attributes:
        name: As in the header of HELLO.
        content_type: As AMQP messages have it.
    """

    name: str
    content_type: str

    def decode(self, data: bytes) -> object:
        """Read a value.

        Raises:
            Fault: It is none, or out of bounds.
        """

    def decode_header(self, data: bytes) -> object:
        """Read a header; what stands for times and the like in it stays as it is.

        Raises:
            Fault: It is none.
        """

    def restore(self, value: object) -> object:
        """Make of a part of a header what it stands for.

        Raises:
            Fault: It stands for nothing, or is out of bounds.
        """

    def encode(self, value: object) -> bytes:
        """Write a value, AMQP's own types among them."""

    def encode_header(self, header: dict[str, object]) -> bytes:
        """Write a header, which has plain values only."""


class _Json:
    name = "json"
    content_type = "application/json"

    def __init__(self) -> None:
        self._decode = msgspec.json.Decoder().decode
        self.encode_header = msgspec.json.Encoder().encode

    def decode(self, data: bytes) -> object:
        return from_json(self.decode_header(data), Counted())

    def decode_header(self, data: bytes) -> object:
        try:
            return self._decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
            raise Fault(Code.BAD_MESSAGE, f"no JSON: {error}"[:200]) from error

    def restore(self, value: object) -> object:
        return from_json(value, Counted())

    def encode(self, value: object) -> bytes:
        return self.encode_header(written(value, to_json, escapes=True))


class _MessagePack:
    name = "messagepack"
    content_type = "application/msgpack"

    def __init__(self) -> None:
        self._decode = msgspec.msgpack.Decoder(ext_hook=_read_extension).decode
        self.encode_header = msgspec.msgpack.Encoder().encode

    def decode(self, data: bytes) -> object:
        return self.restore(self.decode_header(data))

    def decode_header(self, data: bytes) -> object:
        try:
            return self._decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError) as error:
            raise Fault(Code.BAD_MESSAGE, f"no MessagePack: {error}"[:200]) from error

    def restore(self, value: object) -> object:
        check(value, Counted())
        return value

    def encode(self, value: object) -> bytes:
        return self.encode_header(written(value, _extended, escapes=False))


def _read_extension(kind: int, data: memoryview) -> object:
    try:
        if kind == UUID_TYPE:
            return UUID(bytes=bytes(data))
        if kind == DECIMAL_TYPE:
            return decimal_of(bytes(data).decode())
    except (ValueError, InvalidOperation) as error:
        raise Fault(Code.BAD_MESSAGE, f"extension type {kind}: {error}") from error
    known = "1 (UUID), 2 (decimal) or -1 (time)"
    raise Fault(Code.BAD_MESSAGE, f"extension type {kind}: {known} is expected")


def _extended(value: object) -> object:
    """Make extension types of what MessagePack lacks."""
    if isinstance(value, UUID):
        return msgspec.msgpack.Ext(UUID_TYPE, value.bytes)
    if isinstance(value, Decimal):
        return msgspec.msgpack.Ext(DECIMAL_TYPE, str(value).encode())
    return as_utc(value) if isinstance(value, datetime) else value


JSON: Codec = _Json()
MESSAGEPACK: Codec = _MessagePack()


def codec_of(header: bytes) -> Codec:
    """Tell by its first byte what a header is written in; the body is written alike."""
    return MESSAGEPACK if header and header[0] in MAP_BYTES else JSON


def codec_for(content_type: str | None) -> Codec | None:
    """Find the codec of a message's body by its content-type; None where there is none."""
    if content_type is None:
        return None
    name = content_type.partition(";")[0].strip().lower()
    if name == "application/json" or name.endswith("+json"):
        return JSON
    if name in ("application/msgpack", "application/vnd.msgpack", "application/x-msgpack"):
        return MESSAGEPACK
    return None
