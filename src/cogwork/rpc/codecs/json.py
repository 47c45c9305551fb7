"""JSON, for services and callers of other languages."""

from __future__ import annotations

from typing import cast

import msgspec

__all__ = ("JsonCodec",)


class JsonCodec:
    """Bodies are data sections of JSON in UTF-8.

    Bytes are text in base64, datetimes text as in RFC 3339, UUIDs and decimals text: a typed
    parameter has them back, an untyped one gets the text.
    """

    content_type: str | None = "application/json"

    def encode(self, value: object) -> bytes:
        """Return the JSON text of a value."""
        return msgspec.json.encode(value)

    def decode(self, body: object) -> object:
        """Return what a text says."""
        return msgspec.json.decode(cast("bytes", body))  # raises for what is no text
