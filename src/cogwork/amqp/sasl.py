"""SASL frames (AMQP 1.0 §5.3) and the message of the mechanism PLAIN (RFC 4616)."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from cogwork.amqp import codec
from cogwork.amqp.composite import Composite, composite, field
from cogwork.amqp.errors import Condition, ProtocolError
from cogwork.amqp.kinds import BINARY, STRING, SYMBOL, SYMBOLS, choice, composite_from
from cogwork.amqp.types import Described, Symbol, UByte

if TYPE_CHECKING:
    from cogwork.amqp.performatives import Decode, Encode

__all__ = (
    "ANONYMOUS",
    "EXTERNAL",
    "OAUTHBEARER",
    "PLAIN",
    "Plain",
    "SaslChallenge",
    "SaslCode",
    "SaslFrame",
    "SaslInit",
    "SaslMechanisms",
    "SaslOutcome",
    "SaslResponse",
    "build_plain",
    "decode_sasl",
    "encode_sasl",
    "parse_plain",
    "refusal_of",
)

ANONYMOUS: Final = Symbol("ANONYMOUS")
EXTERNAL: Final = Symbol("EXTERNAL")
OAUTHBEARER: Final = Symbol("OAUTHBEARER")
PLAIN: Final = Symbol("PLAIN")


class SaslCode(IntEnum):
    """How authentication ended (§5.3.3.6)."""

    OK = 0
    AUTH = 1
    SYS = 2
    SYS_PERM = 3
    SYS_TEMP = 4


@composite(0x40, "sasl-mechanisms")
class SaslMechanisms(Composite):
    """The mechanisms that the server offers."""

    sasl_server_mechanisms: tuple[Symbol, ...] = field(SYMBOLS)


@composite(0x41, "sasl-init")
class SaslInit(Composite):
    """The client's choice."""

    mechanism: Symbol = field(SYMBOL)
    initial_response: bytes | None = field(BINARY, default=None)
    hostname: str | None = field(STRING, default=None)


@composite(0x42, "sasl-challenge")
class SaslChallenge(Composite):
    """The server's question."""

    challenge: bytes = field(BINARY)


@composite(0x43, "sasl-response")
class SaslResponse(Composite):
    """The client's answer."""

    response: bytes = field(BINARY)


@composite(0x44, "sasl-outcome")
class SaslOutcome(Composite):
    """The server's verdict."""

    code: SaslCode = field(choice("sasl-code", UByte, SaslCode))
    additional_data: bytes | None = field(BINARY, default=None)


SaslFrame = SaslMechanisms | SaslInit | SaslChallenge | SaslResponse | SaslOutcome


class Plain(NamedTuple):
    """What a client says in PLAIN."""

    authorization_id: str
    user: str
    password: str


def encode_sasl(frame: SaslFrame, encode: Encode = codec.encode) -> bytes:
    """Encode the body of a SASL frame, with the codec's `encode`."""
    return encode(frame.to_described())


def decode_sasl(
    data: bytes | bytearray | memoryview, offset: int = 0, decode: Decode = codec.decode
) -> SaslFrame:
    """Decode the body of a SASL frame, with the codec's `decode`.

    Raises:
        ProtocolError: The bytes are no SASL frame's body, or a field of it is wrong.
    """
    value, following = decode(data, offset)
    found = composite_from(value) if isinstance(value, Described) else value
    if not isinstance(found, SaslFrame):
        raise ProtocolError(Condition.DECODE_ERROR, f"a SASL frame is expected, not {found!r:.80}")
    if following != len(data):
        raise ProtocolError(
            Condition.DECODE_ERROR, f"{len(data) - following} bytes follow {found.NAME}"
        )
    return found


def build_plain(user: str, password: str, authorization_id: str = "") -> bytes:
    """Return the initial response of PLAIN.

    Raises:
        ValueError: A part holds a NUL, which separates the parts.
    """
    parts = (authorization_id, user, password)
    if any("\0" in part for part in parts):
        raise ValueError("user and password cannot hold a NUL character in PLAIN")
    return "\0".join(parts).encode()


def parse_plain(response: bytes) -> Plain:
    """Split the initial response of PLAIN.

    Raises:
        ProtocolError: It is not three UTF-8 strings separated by NULs, the user's not empty.
    """
    try:
        parts = response.decode().split("\0")
    except UnicodeDecodeError:
        parts = []
    if len(parts) != len(Plain._fields) or not parts[1]:
        raise ProtocolError(
            Condition.DECODE_ERROR,
            "PLAIN takes authorization id, user and password in UTF-8, separated by NUL",
        )
    return Plain(*parts)


def refusal_of(init: SaslInit, code: SaslCode) -> str:
    """Return what a server's refusal may be due to; which it is, the server does not tell.

    Args:
        init: What the client has said; its password is not shown.
        code: What the server has answered.
    """
    return f"the server refused the authentication: {_cause(init, code)} ({code.name})"


def _cause(init: SaslInit, code: SaslCode) -> str:
    if code is SaslCode.SYS_TEMP:
        return "it cannot check now; try again later"
    if code is not SaslCode.AUTH:
        return "it cannot check"
    if init.mechanism == PLAIN or init.mechanism.startswith("SCRAM-"):
        return f"there is no user {_user_in(init)!r:.80}, or the password is wrong"
    return _CAUSES.get(init.mechanism, f"it does not let anybody in by {init.mechanism}")


_CAUSES = {
    EXTERNAL: "it has no user by the name in the certificate",
    OAUTHBEARER: "it does not take the token, which may have expired, or be for another audience",
}


def _user_in(init: SaslInit) -> str:
    """Return whom a login by password names."""
    response = init.initial_response or b""
    if init.mechanism == PLAIN:
        return response.partition(b"\0")[2].partition(b"\0")[0].decode(errors="replace")
    quoted = response.partition(b",n=")[2].partition(b",")[0].decode(errors="replace")
    return quoted.replace("=2C", ",").replace("=3D", "=")
