"""Bodies of requests and responses: what they say of queues, exchanges and bindings."""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from datetime import datetime
from decimal import Decimal
from hashlib import blake2b
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from cogwork.amqp.types import Timestamp
from cogwork.amqp091 import types as basic_types
from cogwork.amqp091.errors import EncodeError
from cogwork.amqp091.tables import encode_table
from cogwork.container.rabbitmq.requests import RequestError
from cogwork.dataplane.message.basic_conversion import escaped, unescaped
from cogwork.router.exchanges.binding import EXCHANGE, QUEUE, Binding, Destination

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.amqp091.types import Table

__all__ = (
    "amqp_arguments",
    "binding_in",
    "binding_in_path",
    "binding_row",
    "hash_of",
    "read_fields",
    "table_of",
)

_HASH_BYTES = 8

_LETTERS = {QUEUE: "q", EXCHANGE: "e"}

_BINDING = re.compile(
    r"src=([0-9A-Za-z\-._~%]+);dst([eq])=([0-9A-Za-z\-._~%]+);"
    r"key=([0-9A-Za-z\-._~%]*);args=([0-9A-Za-z\-_]*)\Z"
)
"""A binding as a part of a path: `src=e1;dstq=q1;key=k;args=`."""


def read_fields(body: object, what: str, defaults: Mapping[str, object]) -> dict[str, Any]:
    """Read the map that describes something.

    Args:
        body: The request's.
        what: How an error names a field of it, such as `queue property`.
        defaults: What each field is if it is left out; its type is the one expected.

    Raises:
        RequestError: It is no map, or has a field that is unknown or of another type (400).
    """
    fields = dict(defaults)
    if not isinstance(body, dict):
        raise RequestError(400, f"bad {what}: expected a map, not {body!r:.80}")
    for name, value in body.items():
        known = defaults.get(name) if isinstance(name, str) else None
        if known is None or not isinstance(value, type(known)):
            raise RequestError(400, f"bad {what} {name!r:.80}: {value!r:.80}")
        fields[str(name)] = table_of(value) if isinstance(value, dict) else value
    return fields


# -- arguments


def table_of(arguments: Mapping[object, object]) -> Table:
    """Return arguments as a field table of AMQP 0-9-1.

    Raises:
        RequestError: One has no place in such a table (400).
    """
    table = {str(name): _field(name, value) for name, value in arguments.items()}
    try:
        encode_table(table)
    except EncodeError as error:
        raise RequestError(400, f"unsupported argument: {error}") from None
    return table


def _field(name: object, value: object) -> object:
    """Return an AMQP 1.0 value as one of a field table.

    Raises:
        RequestError: It has no place there (400).
    """
    if not isinstance(name, str):
        raise RequestError(400, f"unsupported argument {name!r:.80}: a name is a string")
    field: object = value
    if isinstance(value, datetime):
        field = basic_types.Timestamp(int(value.timestamp()))
    elif isinstance(value, Timestamp):
        field = basic_types.Timestamp(int(value) // 1000)
    elif isinstance(value, dict):
        field = {str(key): _field(key, each) for key, each in value.items()}
    elif isinstance(value, list | tuple):
        field = [_field(name, each) for each in value]
    elif isinstance(value, str):
        field = unescaped(str(value))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        field = int(value) if isinstance(value, int) else float(value)
    return field


def amqp_arguments(table: Mapping[str, object]) -> dict[str, object]:
    """Return a field table as a map of AMQP 1.0."""
    return {escaped(name): _value(value) for name, value in table.items()}


def _value(value: object) -> object:
    """Return a value of a field table as one of AMQP 1.0."""
    found: object = value
    if isinstance(value, basic_types.Timestamp):
        found = Timestamp(int(value) * 1000)
    elif isinstance(value, dict):
        found = amqp_arguments(value)
    elif isinstance(value, list):
        found = [_value(each) for each in value]
    elif isinstance(value, str):
        found = escaped(value)
    elif isinstance(value, Decimal):
        found = str(value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        found = int(value) if isinstance(value, int) else float(value)
    return found


# -- bindings


def binding_in(body: object) -> tuple[str, Binding]:
    """Read a binding, and the exchange that it leads from.

    Raises:
        RequestError: It is none (400).
    """
    names = ("source", "destination_queue", "destination_exchange", "binding_key")
    fields = read_fields(body, "binding field", {**dict.fromkeys(names, ""), "arguments": {}})
    assert isinstance(body, dict)
    kinds = [kind for kind in (QUEUE, EXCHANGE) if f"destination_{kind}" in body]
    if "source" not in body or len(kinds) != 1:
        text = "bad binding: expected source, and one of destination_queue and destination_exchange"
        raise RequestError(400, text)
    destination = Destination(kinds[0], fields[f"destination_{kinds[0]}"])
    key = unescaped(fields["binding_key"]).encode(errors="surrogateescape")
    return fields["source"], Binding(destination, key, fields["arguments"])


def binding_in_path(part: str) -> tuple[str, Destination, str, str]:
    """Read a part of a path: source, destination, key, and the sum of the arguments.

    Raises:
        RequestError: It is no binding (400).
    """
    found = _BINDING.match(part)
    if found is None:
        raise RequestError(400, f"bad binding path segment '{part:.400}'")
    try:
        source, name, key = (unquote(found[at], errors="strict") for at in (1, 3, 4))
    except UnicodeDecodeError:
        raise RequestError(400, f"bad binding path segment '{part:.400}'") from None
    kind = QUEUE if found[2] == _LETTERS[QUEUE] else EXCHANGE
    return source, Destination(kind, name), key, found[5]


def binding_row(source: str, binding: Binding) -> dict[str, object]:
    """Return the map that shows a binding."""
    kind, name = binding.destination
    key = escaped(binding.key.decode(errors="surrogateescape"))
    where = (
        f"/bindings/src={_quoted(source)};dst{_LETTERS[kind]}={_quoted(name)};key={_quoted(key)};"
        f"args={hash_of(binding.arguments)}"
    )
    return {
        "source": source,
        f"destination_{kind}": name,
        "binding_key": key,
        "arguments": amqp_arguments(binding.arguments),
        "location": where,
    }


def hash_of(arguments: Mapping[str, object]) -> str:
    """Return what tells bindings apart whose arguments alone differ; empty without any."""
    if not arguments:
        return ""
    octets = encode_table(dict(sorted(arguments.items())))
    digest = blake2b(octets, digest_size=_HASH_BYTES).digest()
    return urlsafe_b64encode(digest).rstrip(b"=").decode()


def _quoted(text: str) -> str:
    return quote(text, safe="")
