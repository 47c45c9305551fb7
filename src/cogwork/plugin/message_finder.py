"""Reads what a message says for its routing: keys and headers, of either protocol."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from cogwork.amqp.errors import ProtocolError
from cogwork.amqp091.content import decode_properties, encode_properties
from cogwork.amqp091.errors import ProtocolError as BasicProtocolError
from cogwork.dataplane.addresses.entry import AddressEntry
from cogwork.dataplane.addresses.exchange import pack_keys
from cogwork.dataplane.message.messages import Message
from cogwork.router.exchanges.binding import Routed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.amqp091.content import BasicProperties

__all__ = ("Found", "MessageFinder")

Found = tuple[list[AddressEntry], bool]
"""Where a message goes, and whether that may be kept for its key."""


class _HeadNeeded(Exception):
    """An exchange decides by more than the key."""


class MessageFinder(ABC):
    """Finds where messages go for the data plane, as `RouteFinder` in its stub says."""

    @abstractmethod
    def entries(self, routed: Routed) -> Found:
        """Return where a message goes, and whether that may be kept for its key."""

    def find(self, key: bytes, head: bytes | None, is_basic: bool, /) -> Found | None:
        """Return the addresses of the queues, and whether the key alone has decided.

        None asks for the head of the message.
        """
        routed = Routed((key,), partial(_headers, head, is_basic))
        try:
            return self.entries(routed)
        except _HeadNeeded:
            return None

    def find_copies(
        self, key: bytes, head: bytes, /
    ) -> tuple[list[AddressEntry], bytes | None, bytes] | None:
        """Do the same for a message whose headers may name further keys; BCC is taken out."""
        start = _properties_start(head)
        try:
            properties = decode_properties(head[start:])
        except BasicProtocolError:
            return None
        headers = properties.headers or {}
        keys = (key, *_keys_in(headers, "CC"), *_keys_in(headers, "BCC"))
        entries, _ = self.entries(Routed(keys, lambda: headers))
        if "BCC" not in headers:
            return entries, None, pack_keys(keys)
        return entries, _packed(head[: start - 4], _without_bcc(properties)), pack_keys(keys)


def _headers(head: bytes | None, is_basic: bool) -> Mapping[str, object]:
    """Decode a message's headers; what cannot be read has none."""
    if head is None:
        raise _HeadNeeded
    try:
        if is_basic:
            return decode_properties(head[_properties_start(head) :]).headers or {}
        return {str(key): value for key, value in (Message.decode(head).properties or {}).items()}
    except (ProtocolError, BasicProtocolError):
        return {}


def _properties_start(head: bytes) -> int:
    """Return where the properties begin: behind exchange, key and their size."""
    key_at = 1 + head[0]
    return key_at + 1 + head[key_at] + 4


def _keys_in(headers: Mapping[str, object], name: str) -> list[bytes]:
    """Return the routing keys in a header."""
    keys = headers.get(name)
    if not isinstance(keys, list):
        return []
    return [key.encode(errors="surrogateescape") for key in keys if isinstance(key, str)]


def _without_bcc(properties: BasicProperties) -> BasicProperties:
    headers = {key: value for key, value in (properties.headers or {}).items() if key != "BCC"}
    return replace(properties, headers=headers)


def _packed(names: bytes, properties: BasicProperties) -> bytes:
    """Put the head of a message together: exchange and key, and its properties."""
    octets = encode_properties(properties)
    return names + len(octets).to_bytes(4, "big") + octets
