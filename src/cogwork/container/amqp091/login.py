"""SASL in connection.start-ok (AMQP 0-9-1 §1.4.2.2): which mechanisms, and what a response means.

AMQPLAIN is AMQP 0-9's own mechanism: name and password in a field table. It is checked as PLAIN is.
Every client logs in as `guest` with the password `guest` where it is told nothing else: that is the
anonymous user, where there is one and no user is called so. A password that is a token
(JWT) is one, whatever the name beside it says: clients of RabbitMQ have no other place for it.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from cogwork.amqp.errors import ProtocolError as SaslProtocolError
from cogwork.amqp.sasl import ANONYMOUS, OAUTHBEARER, PLAIN, SaslInit, build_plain, parse_plain
from cogwork.amqp.types import Symbol
from cogwork.amqp091.errors import ProtocolError, ReplyCode
from cogwork.amqp091.strings import octets_of
from cogwork.amqp091.tables import decode_table
from cogwork.sasl.guest import login_meant
from cogwork.sasl.oauthbearer import build_bearer

if TYPE_CHECKING:
    from cogwork.amqp091.methods import ConnectionStartOk

__all__ = ("Credentials", "init_of", "mechanisms_offered")

AMQPLAIN: Final = "AMQPLAIN"


TOKEN: Final = re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]+", re.ASCII)
"""A signed JWT in its compact form (RFC 7515 §3.1), which begins with a JSON object."""


class Credentials(NamedTuple):
    """A name and a password."""

    user: str
    password: str


def mechanisms_offered(offered: tuple[Symbol, ...]) -> bytes:
    """Return the mechanisms of a listener as connection.start names them.

    Whoever may be anonymous logs in as `guest`, by a mechanism that takes a password; whoever has
    a token gives it as one.
    """
    names = [str(each) for each in offered]
    if not {PLAIN, ANONYMOUS, OAUTHBEARER}.isdisjoint(offered):
        names = [*(each for each in names if each != PLAIN), str(PLAIN), AMQPLAIN]
    return " ".join(names).encode()


def init_of(
    start_ok: ConnectionStartOk, offered: tuple[Symbol, ...], *, has_guest: bool
) -> SaslInit:
    """Return a client's choice of mechanism as AMQP 1.0 has it.

    Args:
        start_ok: What the client said.
        offered: The mechanisms of the listener.
        has_guest: Whether there is a user called `guest`.

    Raises:
        ProtocolError: Its response is malformed.
    """
    if start_ok.mechanism not in (AMQPLAIN, str(PLAIN)):
        return SaslInit(mechanism=Symbol(start_ok.mechanism), initial_response=start_ok.response)
    said = _credentials_in(start_ok)
    if OAUTHBEARER in offered and TOKEN.fullmatch(said.password):
        return SaslInit(mechanism=OAUTHBEARER, initial_response=build_bearer(said.password))
    init = SaslInit(mechanism=PLAIN, initial_response=build_plain(*said))
    return login_meant(init, offered, has_guest=has_guest)


def _credentials_in(start_ok: ConnectionStartOk) -> Credentials:
    if start_ok.mechanism == AMQPLAIN:
        return _of_table(start_ok.response)
    try:
        _, user, password = parse_plain(start_ok.response)
    except SaslProtocolError as error:
        raise _malformed(error.description) from None
    return Credentials(user, password)


def _of_table(response: bytes) -> Credentials:
    """Read a table that comes without its size, as RabbitMQ's clients send it."""
    said = decode_table(struct.pack(">I", len(response)) + response)
    user, password = said.get("LOGIN"), said.get("PASSWORD")
    if not isinstance(user, str) or not isinstance(password, str):
        raise _malformed("AMQPLAIN auth info is missing LOGIN or PASSWORD field")
    try:
        return Credentials(octets_of(user).decode(), octets_of(password).decode())
    except UnicodeDecodeError:
        raise _malformed("LOGIN and PASSWORD have to be UTF-8") from None


def _malformed(what: str) -> ProtocolError:
    return ProtocolError(ReplyCode.SYNTAX_ERROR, what)
