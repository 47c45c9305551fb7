"""SCRAM: both sides prove that they know the password, and neither tells it (RFC 5802, RFC 7677).

Theory of operation. The client sends its name and a nonce; the server answers with the salt and the
iterations of its verifier and adds to the nonce; the client sends a proof that it knows the
password whose verifier that is, and the server one that it has the verifier. All messages go into
both proofs, and in the -PLUS variants what the TLS connection is known by, so that nobody in
between can pass them on over connections of their own.

Only the client's derivation of keys is slow; it runs where it holds up nobody, and its result is
kept for the next connection with the same salt.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from functools import partial
from typing import TYPE_CHECKING

from cogwork.amqp.types import Symbol
from cogwork.sasl.saslprep import saslprep
from cogwork.sasl.scram_messages import (
    ClientFirst,
    ScramSyntaxError,
    encode_base64,
    parse_client_final,
    parse_client_first,
    parse_server_final,
    parse_server_first,
    quote_name,
)
from cogwork.sasl.sides import Challenge, Failure, Mechanism, SaslError, Success
from cogwork.sasl.verifier import derive

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cogwork.sasl.scram_messages import ServerFirst
    from cogwork.sasl.sides import ClientContext, ServerContext, Step
    from cogwork.sasl.verifier import Keys, Verifier

__all__ = ("MECHANISMS", "PLUS", "make_nonce")

PLUS = "-PLUS"
"""The end of the names of mechanisms that are bound to the channel."""

BINDING = "tls-server-end-point"
"""The hash of the server's certificate (RFC 5929 §4): the only binding that Python's ssl lets both
sides compute with TLS 1.3. `tls-exporter` (RFC 9266) needs keying material that it does not give
out, and `tls-unique` is not defined there."""

NONCE_BYTES = 24
KEYS_MAX = 16
"""Keys that a client keeps: of more users and containers than it has as a rule."""


def make_nonce() -> str:
    """Return one side's part of a nonce."""
    return secrets.token_urlsafe(NONCE_BYTES)


class _Server:
    """Knows a verifier, and not the password."""

    def __init__(self, hash_name: str, binds: bool, context: ServerContext) -> None:
        self._hash_name = hash_name
        self._binds = binds
        self._context = context
        self._begun: ClientFirst | None = None
        self._verifier: Verifier | None = None
        self._identity: str | None = None
        self._nonce = ""
        self._server_first = ""
        self._was_asked = False

    def respond(self, response: bytes | None) -> Step:
        """Take name and nonce, then the proof."""
        if response is None and not self._was_asked:
            self._was_asked = True
            return Challenge(b"")  # RFC 4422 §5.1: the client begins, and has not yet
        user = "" if self._begun is None else self._begun.user
        try:
            if self._begun is None:
                return self._begin(parse_client_first(response or b""))
            return self._end(self._begun, response or b"")
        except ScramSyntaxError as error:
            return Failure(str(error), user)

    def _begin(self, begun: ClientFirst) -> Step:
        self._begun = begun
        problem = self._problem_of(begun)
        if problem is not None:
            return Failure(problem, begun.user)
        self._verifier, self._identity = self._context.users.verifier(self._hash_name, begun.user)
        self._nonce = begun.nonce + make_nonce()
        salt = encode_base64(self._verifier.salt)
        self._server_first = f"r={self._nonce},s={salt},i={self._verifier.iterations}"
        return Challenge(self._server_first.encode())

    def _problem_of(self, begun: ClientFirst) -> str | None:
        """Say what rules out a login before any password is looked at (RFC 5802 §6)."""
        if begun.authorization_id not in ("", begun.user):
            return f"it wants to act as {begun.authorization_id!r:.80}"
        if self._binds and begun.binding != BINDING:
            return f"it binds to {begun.binding!r:.80}, not to {BINDING}"
        if not self._binds and begun.binding is not None:
            return "it binds to a channel by a mechanism that does not"
        if begun.is_binding_known and any(each.endswith(PLUS) for each in self._context.offered):
            return "it was not told that the channel can be bound to: somebody is in between"
        return None

    def _end(self, begun: ClientFirst, response: bytes) -> Step:
        verifier = self._verifier
        assert verifier is not None
        final = parse_client_final(response)
        bound = (self._context.end_point or b"") if self._binds else b""
        if not hmac.compare_digest(final.binding, begun.header.encode() + bound):
            return Failure("it is bound to another channel: somebody is in between", begun.user)
        if not hmac.compare_digest(final.nonce, self._nonce):
            return Failure("its nonce is not the one of this exchange", begun.user)
        told = f"{begun.bare},{self._server_first},{final.unproven}".encode()
        signature = hmac.digest(verifier.stored_key, told, self._hash_name)
        if len(final.proof) != len(signature):
            return Failure(f"its proof has {len(final.proof)} bytes", begun.user)
        stored_key = hashlib.new(self._hash_name, _xor(final.proof, signature)).digest()
        is_right = hmac.compare_digest(stored_key, verifier.stored_key)
        if self._identity is None:
            # Also a true name whose password was hashed before there was SCRAM: PLAIN takes it.
            return Failure("there is no verifier for the name", begun.user)
        if not is_right:
            return Failure("wrong password", begun.user)
        proof = hmac.digest(verifier.server_key, told, self._hash_name)
        return Success(self._identity, f"v={encode_base64(proof)}".encode())


class _Client:
    """Knows the password, and lets the server prove that it has the verifier."""

    def __init__(self, hash_name: str, binds: bool, context: ClientContext) -> None:
        self._hash_name = hash_name
        self._context = context
        self._bound = (context.end_point or b"") if binds else b""
        # RFC 5802 §6: `y` tells a server that offers -PLUS that its offer was tampered with.
        could_bind = context.end_point is not None and context.chosen is None
        flag = f"p={BINDING}" if binds else "y" if could_bind else "n"
        self._header = f"{flag},,"
        self._nonce = make_nonce()
        self._bare = f"n={quote_name(saslprep(context.user or ''))},r={self._nonce}"
        self._signature: bytes | None = None
        self._is_proved = False

    def first(self) -> bytes:
        """Return name and nonce."""
        return f"{self._header}{self._bare}".encode("utf-8", "surrogatepass")

    def respond(self, challenge: bytes) -> bytes | Callable[[], Awaitable[bytes]]:
        """Answer with the proof; the server's own may come as a challenge, too."""
        if self._signature is not None:
            self._look_at(challenge)
            return b""
        try:
            first = parse_server_first(challenge)
        except ScramSyntaxError as error:
            raise SaslError(f"the server's SCRAM message is not usable: {error}") from None
        if not first.nonce.startswith(self._nonce) or first.nonce == self._nonce:
            raise SaslError("the server's SCRAM message does not continue this client's nonce")
        return partial(self._prove, challenge.decode(), first)

    async def _prove(self, server_first: str, first: ServerFirst) -> bytes:
        keys = await self._keys(first.salt, first.iterations)
        binding = encode_base64(self._header.encode() + self._bound)
        unproven = f"c={binding},r={first.nonce}"
        told = f"{self._bare},{server_first},{unproven}".encode("utf-8", "surrogatepass")
        stored_key = hashlib.new(self._hash_name, keys.client_key).digest()
        signature = hmac.digest(stored_key, told, self._hash_name)
        self._signature = hmac.digest(keys.server_key, told, self._hash_name)
        return f"{unproven},p={encode_base64(_xor(keys.client_key, signature))}".encode()

    async def _keys(self, salt: bytes, iterations: int) -> Keys:
        kept, password = self._context.keys, self._context.password
        name = (self._hash_name, password, salt, iterations)
        if name not in kept:
            work = partial(derive, self._hash_name, password, salt, iterations)
            keys = await self._context.work(work)
            while len(kept) >= KEYS_MAX:
                del kept[next(iter(kept))]
            kept[name] = keys
        return kept[name]

    def _look_at(self, final: bytes) -> None:
        try:
            signature = parse_server_final(final)
        except ScramSyntaxError as error:
            raise SaslError(f"the server's SCRAM proof is not usable: {error}") from None
        if self._signature is None or not hmac.compare_digest(signature, self._signature):
            raise SaslError("the server does not know the password: its SCRAM proof is wrong")
        self._is_proved = True

    def finish(self, data: bytes | None) -> None:
        """Demand the server's proof."""
        if not self._is_proved:
            self._look_at(data or b"")


def _client(hash_name: str, binds: bool, context: ClientContext) -> _Client | None:
    if context.user is None or (binds and context.end_point is None):
        return None
    return _Client(hash_name, binds, context)


def _user_of(response: bytes) -> str | None:
    try:
        return parse_client_first(response).user
    except ScramSyntaxError:
        return None


def _xor(left: bytes, right: bytes) -> bytes:
    return (int.from_bytes(left) ^ int.from_bytes(right)).to_bytes(len(left))


MECHANISMS = tuple(
    Mechanism(
        name=Symbol(f"SCRAM-SHA-{bits}{PLUS if binds else ''}"),
        server=partial(_Server, f"sha{bits}", binds),
        client=partial(_client, f"sha{bits}", binds),
        user_of=_user_of,
        hash_name=f"sha{bits}",
        binds=binds,
    )
    for binds in (True, False)
    for bits in (512, 256)
)
