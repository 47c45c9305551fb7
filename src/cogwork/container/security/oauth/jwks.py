"""A set of public keys (RFC 7517), read from a file or fetched from a URL, in a thread."""

from __future__ import annotations

import http.client
import json
import ssl
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import jwt

from cogwork.amqp.errors import CogworkError
from cogwork.config.oauth_checks import is_url

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogwork.config.oauth_settings import OAuth

__all__ = ("JwksError", "Key", "parse_keys", "read_keys")

JWKS_BYTES_MAX = 1 << 20
"""A set of a thousand keys."""

KEYS_MAX = 1000

TIMEOUT_S = 5.0
"""For the whole answer; a client has twice as long to log in."""

CHUNK_BYTES = 16_384

KINDS = {
    ("RSA", None): ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    ("OKP", "Ed25519"): ("EdDSA",),
    ("OKP", "Ed448"): ("EdDSA",),
}
"""What can be signed by a kind of key and its curve (RFC 7518 §3.1, RFC 8037 §3.1)."""


class JwksError(CogworkError):
    """The keys cannot be had; the message says why."""


class Key(NamedTuple):
    """One public key.

    Attributes:
        name: Its `kid`; empty where it has none.
        algorithms: What it may verify.
        public: What the library takes.
    """

    name: str
    algorithms: tuple[str, ...]
    public: Any


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Keys come from where the configuration says, and from nowhere else."""

    def redirect_request(self, *_arguments: object) -> NoReturn:
        raise JwksError("it redirects to another place, which is not followed")


def read_keys(options: OAuth) -> tuple[Key, ...]:
    """Read or fetch the keys, which takes a while.

    Args:
        options: Where from.

    Raises:
        JwksError: They cannot be had, or there is none among them that can be used.
    """
    return parse_keys(_fetched(options) if is_url(options.jwks) else _read(Path(options.jwks)))


def parse_keys(document: bytes) -> tuple[Key, ...]:
    """Read a set of keys; those for other purposes, and those that are secret, are left out.

    Args:
        document: In JSON.

    Raises:
        JwksError: It is no set, or has no key that can be used.
    """
    try:
        found = json.loads(document)
    except (ValueError, RecursionError) as error:
        raise JwksError("it is not JSON") from error
    entries = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(entries, list):
        raise JwksError("it is JSON, and no set of keys (RFC 7517): it has no array `keys`")
    keys = tuple(_keys(entries[:KEYS_MAX]))
    if not keys:
        raise JwksError(f"none of its {len(entries)} keys is an RSA, EC or Ed25519 key to sign by")
    return keys


def _keys(entries: Iterable[object]) -> Iterable[Key]:
    for entry in entries:
        if not isinstance(entry, dict) or entry.get("use", "sig") != "sig":
            continue
        curve = entry.get("crv") if entry.get("kty") != "RSA" else None
        # An `oct` key is a secret that both sides have: it is not among the kinds.
        able = KINDS.get((str(entry.get("kty")), curve if isinstance(curve, str) else None), ())
        wanted = entry.get("alg")
        algorithms = tuple(each for each in able if wanted in (None, each))
        if not algorithms:
            continue
        public = {name: value for name, value in entry.items() if name != "d"}
        try:
            key: Any = jwt.PyJWK(public, algorithms[0]).key
        except (jwt.PyJWTError, ValueError, TypeError, KeyError):
            continue
        yield Key(str(entry.get("kid", "")), algorithms, key)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(JWKS_BYTES_MAX + 1)
    except OSError as error:
        raise JwksError(f"cannot read '{path}': {error.strerror}") from error
    return _bounded(data)


def _fetched(options: OAuth) -> bytes:
    try:
        context = ssl.create_default_context(cafile=options.ca)
        opener = urllib.request.build_opener(
            _NoRedirects,
            urllib.request.ProxyHandler({}),
            urllib.request.HTTPSHandler(context=context),
        )
        asked = urllib.request.Request(options.jwks, headers={"Accept": "application/json"})
        until_s = time.monotonic() + TIMEOUT_S
        with opener.open(asked, timeout=TIMEOUT_S) as answer:
            return _received(answer, until_s)
    except urllib.error.HTTPError as error:
        raise JwksError(f"it answers with the status {error.code}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise JwksError(f"it cannot be fetched: {reason or type(error).__name__}") from error


def _received(answer: http.client.HTTPResponse, until_s: float) -> bytes:
    """Read an answer to its end, however slowly it comes, up to the deadline."""
    data = b""
    while chunk := answer.read1(CHUNK_BYTES):
        data = _bounded(data + chunk)
        if time.monotonic() > until_s:
            raise JwksError(f"it takes longer than {TIMEOUT_S:g} s to answer")
    return data


def _bounded(data: bytes) -> bytes:
    if len(data) > JWKS_BYTES_MAX:
        raise JwksError(f"it has more than {JWKS_BYTES_MAX} bytes")
    return data
