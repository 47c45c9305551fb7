"""The messages of SCRAM: text to plain data and back (RFC 5802 §5, §7).

The grammar fixes the order of attributes, so that reading is one walk from left to right. Unknown
extensions at the end of a message are allowed and ignored; a mandatory one (`m=`) is refused.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import NamedTuple

from cogwork.amqp.errors import CogworkError
from cogwork.sasl.verifier import ITERATIONS_MAX, ITERATIONS_MIN, SALT_BYTES_MAX

__all__ = (
    "ClientFinal",
    "ClientFirst",
    "ScramSyntaxError",
    "ServerFirst",
    "encode_base64",
    "parse_client_final",
    "parse_client_first",
    "parse_server_final",
    "parse_server_first",
    "quote_name",
)

MESSAGE_BYTES_MAX = 4096
"""Ten times what names and nonces take; what is longer is not worth a look."""

_NONCE = re.compile(r"[\x21-\x2b\x2d-\x7e]+")
_COUNT = re.compile(r"[1-9][0-9]{0,9}", re.ASCII)
_BINDING = re.compile(r"p=([A-Za-z0-9.-]+)", re.ASCII)
_BARE_EQUALS = re.compile(r"=(?!2C|3D)")


class ScramSyntaxError(CogworkError):
    """A message that is none of SCRAM."""


class ClientFirst(NamedTuple):
    """What the client begins with.

    Attributes:
        header: The GS2 header, with both commas.
        binding: The channel binding it uses; None where it uses none.
        is_binding_known: Whether it could bind, and believes that the server cannot.
        authorization_id: Whom it wants to act as; empty for itself.
        user: Who it is.
        nonce: Its part of the nonce.
        bare: The message without the header.
    """

    header: str
    binding: str | None
    is_binding_known: bool
    authorization_id: str
    user: str
    nonce: str
    bare: str


class ServerFirst(NamedTuple):
    """What the server answers."""

    nonce: str
    salt: bytes
    iterations: int


class ClientFinal(NamedTuple):
    """The client's proof.

    Attributes:
        binding: The GS2 header, and what the channel is known by.
        nonce: Both parts.
        proof: That the client knows the password.
        unproven: The message without the proof.
    """

    binding: bytes
    nonce: str
    proof: bytes
    unproven: str


def parse_client_first(message: bytes) -> ClientFirst:
    """Read the client's first message.

    Raises:
        ScramSyntaxError: It is malformed.
    """
    parts = _text(message).split(",")
    if len(parts) < 4:
        raise ScramSyntaxError("the first message is not header, name and nonce between commas")
    flag, actor, *bare = parts
    bound = _BINDING.fullmatch(flag)
    if bound is None and flag not in ("n", "y"):
        raise ScramSyntaxError(f"its channel binding flag is {flag!r:.80}, not n, y or p=NAME")
    if actor and not actor.startswith("a="):
        raise ScramSyntaxError(f"its header has {actor!r:.80} where a=NAME, or nothing, is due")
    user = _name(_value(bare, 0, "n"))
    if not user:
        raise ScramSyntaxError("it names no user")
    return ClientFirst(
        header=f"{flag},{actor},",
        binding=None if bound is None else bound[1],
        is_binding_known=flag == "y",
        authorization_id=_name(actor[2:]),
        user=user,
        nonce=_nonce(_value(bare, 1, "r")),
        bare=",".join(bare),
    )


def parse_server_first(message: bytes) -> ServerFirst:
    """Read the server's first message.

    Raises:
        ScramSyntaxError: It is malformed, an error, or asks for a mad number of iterations.
    """
    parts = _text(message).split(",")
    if parts[0].startswith("e="):
        raise ScramSyntaxError(f"it refuses: {parts[0][2:]!r:.80}")
    nonce = _nonce(_value(parts, 0, "r"))
    salt = _bytes(_value(parts, 1, "s"), "salt")
    count = _value(parts, 2, "i")
    iterations = int(count) if _COUNT.fullmatch(count) else 0
    if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
        raise ScramSyntaxError(
            f"it asks for {count!r:.80} iterations "
            f"(expected from {ITERATIONS_MIN} to {ITERATIONS_MAX})"
        )
    if not 0 < len(salt) <= SALT_BYTES_MAX:
        raise ScramSyntaxError(f"its salt has {len(salt)} bytes")
    return ServerFirst(nonce, salt, iterations)


def parse_client_final(message: bytes) -> ClientFinal:
    """Read the client's proof.

    Raises:
        ScramSyntaxError: It is malformed.
    """
    parts = _text(message).split(",")
    if len(parts) < 3:
        raise ScramSyntaxError("the final message is not binding, nonce and proof between commas")
    return ClientFinal(
        binding=_bytes(_value(parts, 0, "c"), "channel binding"),
        nonce=_nonce(_value(parts, 1, "r")),
        proof=_bytes(_value(parts, len(parts) - 1, "p"), "proof"),
        unproven=",".join(parts[:-1]),
    )


def parse_server_final(message: bytes) -> bytes:
    """Return the server's signature.

    Raises:
        ScramSyntaxError: It is malformed, or an error.
    """
    parts = _text(message).split(",")
    if parts[0].startswith("e="):
        raise ScramSyntaxError(f"it refuses: {parts[0][2:]!r:.80}")
    return _bytes(_value(parts, 0, "v"), "signature")


def quote_name(name: str) -> str:
    """Write a name as an attribute's value."""
    return name.replace("=", "=3D").replace(",", "=2C")


def encode_base64(data: bytes) -> str:
    """Write bytes as an attribute's value."""
    return base64.b64encode(data).decode()


def _text(message: bytes) -> str:
    if len(message) > MESSAGE_BYTES_MAX:
        raise ScramSyntaxError(f"a message has {len(message)} bytes, over {MESSAGE_BYTES_MAX}")
    try:
        text = message.decode()
    except UnicodeDecodeError:
        raise ScramSyntaxError("a message is not UTF-8") from None
    if "\0" in text:
        raise ScramSyntaxError("a message holds a NUL character")
    return text


def _value(parts: list[str], at: int, name: str) -> str:
    """Return the value of the attribute that the grammar has there."""
    found = parts[at] if at < len(parts) else ""
    if found.startswith("m="):
        raise ScramSyntaxError("it demands an extension that is not known here")
    if not found.startswith(f"{name}="):
        raise ScramSyntaxError(f"attribute {name}= is missing at place {at + 1}")
    return found[2:]


def _name(quoted: str) -> str:
    if _BARE_EQUALS.search(quoted):
        raise ScramSyntaxError("a name holds an equals sign that is not written =3D")
    return quoted.replace("=2C", ",").replace("=3D", "=")


def _nonce(text: str) -> str:
    if not _NONCE.fullmatch(text):
        raise ScramSyntaxError("a nonce is not of printable characters")
    return text


def _bytes(text: str, what: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raise ScramSyntaxError(f"the {what} is not base64") from None
