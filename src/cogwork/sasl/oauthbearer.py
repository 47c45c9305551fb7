"""OAUTHBEARER: a token that somebody else has issued (RFC 7628).

Theory of operation. The client says it all at once: a header as of SCRAM (RFC 5801 §4), then pairs
of names and values with the octet 1 behind each, of which `auth` holds the token. A server that
refuses says so in JSON first, by a challenge; the client answers with the octet 1 alone, and only
then comes the outcome (§3.2.2 and §3.2.3). The JSON tells no reason: that is for the log.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from cogwork.amqp.errors import Condition, ProtocolError
from cogwork.amqp.sasl import OAUTHBEARER
from cogwork.sasl.sides import (
    Challenge,
    Failure,
    LoginBusyError,
    Mechanism,
    SaslError,
    Success,
    TokenError,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cogwork.sasl.sides import ClientContext, ServerContext, Step

__all__ = ("DUMMY", "MECHANISMS", "build_bearer")

SEPARATOR = "\x01"
"""Behind each pair, and once more at the end (§3.1)."""

DUMMY = SEPARATOR.encode()
"""What a client answers to an error (§3.2.3)."""

SCHEME = "Bearer "

ERROR = json.dumps({"status": "invalid_token"}).encode()
"""What a refused client is told (RFC 6750 §3.1)."""


class _Bearer(NamedTuple):
    """What a client says."""

    authorization_id: str
    token: str


class _Server:
    """Has the token checked."""

    def __init__(self, context: ServerContext) -> None:
        self._users = context.users
        self._was_asked = False
        self._refusal: Failure | None = None

    def respond(self, response: bytes | None) -> Step | Callable[[], Awaitable[Step]]:
        """Take the token, or what a client says to an error."""
        if self._refusal is not None:
            return self._refusal
        if response is None and not self._was_asked:
            self._was_asked = True
            return Challenge(b"")  # RFC 4422 §5.1: the client begins, and has not yet
        return partial(self._check, _parse(response or b""))

    async def _check(self, bearer: _Bearer) -> Step:
        wanted = bearer.authorization_id
        try:
            grant = await self._users.check_token(bearer.token)
        except LoginBusyError as error:
            return Failure(str(error), wanted, is_temporary=True)
        except TokenError as error:
            return self._refuse(f"token refused: {error}", wanted)
        if wanted not in ("", grant.user):
            return self._refuse(f"it wants to act as {wanted!r:.80}", grant.user)
        return Success(grant.user, grant=grant)

    def _refuse(self, reason: str, user: str) -> Challenge:
        self._refusal = Failure(reason, user)
        return Challenge(ERROR)


class _Client:
    """Has a token."""

    def __init__(self, user: str | None, token: str) -> None:
        self._response = build_bearer(token, user)
        self._was_refused = False

    def first(self) -> bytes:
        """Return name and token."""
        return self._response

    def respond(self, challenge: bytes) -> bytes:
        """Take an error: what it means, the outcome says.

        Raises:
            SaslError: The server asks once more.
        """
        if self._was_refused:
            raise SaslError(f"the server asks again, by a challenge of {len(challenge)} bytes")
        self._was_refused = True
        return DUMMY

    def finish(self, data: bytes | None) -> None:
        """Take the server's success, which is none after an error.

        Raises:
            SaslError: There was one.
        """
        if self._was_refused:
            told = "" if data is None else f", with {len(data)} bytes more"
            raise SaslError(f"the server lets in whom it has just refused{told}")


def build_bearer(token: str, user: str | None = None) -> bytes:
    """Return what a client says first (§3.1).

    Args:
        token: What it has.
        user: Whom it wants to act as; None leaves that to the token.
    """
    who = "" if user is None else "a=" + user.replace("=", "=3D").replace(",", "=2C")
    auth = f"auth={SCHEME}{token}"
    return f"n,{who},{SEPARATOR}{auth}{SEPARATOR}{SEPARATOR}".encode()


def _client(context: ClientContext) -> _Client | None:
    """Make the client's side; by default a token goes only where nobody reads along (§4)."""
    if context.token is None or not (context.is_private or context.chosen is not None):
        return None
    return _Client(context.user, context.token)


def _parse(response: bytes) -> _Bearer:
    """Read the initial response.

    Raises:
        ProtocolError: It is none.
    """
    try:
        header, *pairs = response.decode().split(SEPARATOR)
    except UnicodeDecodeError:
        raise _malformed("UTF-8") from None
    binding, _, rest = header.partition(",")
    name, comma, more = rest.partition(",")
    if binding not in ("n", "y") or not comma or more or (name and not name.startswith("a=")):
        raise _malformed("a header such as n,a=user,")
    if pairs[-2:] != ["", ""]:
        raise _malformed("the octet 1 behind each pair, and once more at the end")
    auth = [pair.removeprefix("auth=") for pair in pairs if pair.startswith("auth=")]
    if len(auth) != 1 or auth[0][: len(SCHEME)].lower() != SCHEME.lower():
        raise _malformed("one pair auth=Bearer TOKEN")
    token = auth[0][len(SCHEME) :].strip(" ")
    return _Bearer(name[2:].replace("=2C", ",").replace("=3D", "="), token)


def _malformed(expected: str) -> ProtocolError:
    return ProtocolError(Condition.DECODE_ERROR, f"OAUTHBEARER takes {expected} (RFC 7628 §3.1)")


def _user_of(response: bytes) -> str | None:
    try:
        return _parse(response).authorization_id or None
    except ProtocolError:
        return None


MECHANISMS = (Mechanism(OAUTHBEARER, _Server, _client, _user_of, has_password=False),)
