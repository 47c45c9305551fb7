"""MessagePack: as JSON, but smaller, with bytes and datetimes."""

from __future__ import annotations

from typing import cast

import msgspec

__all__ = ("MsgpackCodec",)


class MsgpackCodec:
    """Bodies are data sections of MessagePack.

    Datetimes are its timestamps (extension -1); UUIDs and decimals are text.
    """

    content_type: str | None = "application/msgpack"

    def encode(self, value: object) -> bytes:
        """Return a value in MessagePack."""
        return msgspec.msgpack.encode(value)

    def decode(self, body: object) -> object:
        """Return what the bytes say."""
        return msgspec.msgpack.decode(cast("bytes", body))  # raises for what is no bytes
