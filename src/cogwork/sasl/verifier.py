"""What a server keeps of a password for SCRAM, and what both sides derive from it (RFC 5802 §3).

Theory of operation. A verifier is one line, in the form that PostgreSQL keeps and RFC 5803
describes: `SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey`. Who steals it cannot log in with it;
what is left is to guess passwords, each at the price of all the iterations.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from typing import NamedTuple

from cogwork.amqp.errors import CogworkError
from cogwork.sasl.saslprep import saslprep

__all__ = (
    "HASHES",
    "ITERATIONS_MAX",
    "ITERATIONS_MIN",
    "Keys",
    "Verifier",
    "VerifierError",
    "decoy",
    "derive",
    "make_verifier",
    "parse_verifier",
)

HASHES = {"sha256": 600_000, "sha512": 210_000}
"""The iterations of new verifiers: OWASP's figures for PBKDF2. A stolen verifier lies beside the
hash by scrypt, so guessing against it should not be the cheaper way. The client pays, and ours
keeps the keys for its next connections."""

ITERATIONS_MIN = 4096
"""What RFC 7677 §4 demands at least."""

ITERATIONS_MAX = 5_000_000
"""Some seconds of a core: a server that asks for more wants to burn it."""

SALT_BYTES = 16
SALT_BYTES_MIN = 8
SALT_BYTES_MAX = 256

_PREFIX = "SCRAM-SHA-"


class VerifierError(CogworkError):
    """A SCRAM verifier that is malformed, or costs too much or too little."""


class Keys(NamedTuple):
    """What a password is good for, with one salt."""

    client_key: bytes
    server_key: bytes


class Verifier(NamedTuple):
    """A decoded line."""

    hash_name: str
    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes

    def __str__(self) -> str:
        """Write the line."""
        salt, stored, server = map(_base64, (self.salt, self.stored_key, self.server_key))
        name = f"{_PREFIX}{self.hash_name.removeprefix('sha')}"
        return f"{name}${self.iterations}:{salt}${stored}:{server}"

    def __repr__(self) -> str:
        """Show which, never the keys: reprs end in logs."""
        return f"Verifier({self.hash_name}, {self.iterations} iterations)"


def derive(hash_name: str, password: str, salt: bytes, iterations: int) -> Keys:
    """Derive the keys of a password, which is slow on purpose.

    Args:
        hash_name: As `hashlib` calls it.
        password: As the user types it.
        salt: Of the verifier.
        iterations: Of the verifier.
    """
    prepared = saslprep(password).encode("utf-8", "surrogatepass")
    salted = hashlib.pbkdf2_hmac(hash_name, prepared, salt, iterations)
    return Keys(
        hmac.digest(salted, b"Client Key", hash_name),
        hmac.digest(salted, b"Server Key", hash_name),
    )


def make_verifier(hash_name: str, password: str, iterations: int | None = None) -> Verifier:
    """Make a verifier with a new salt.

    Args:
        hash_name: One of `HASHES`.
        password: As the user types it.
        iterations: None takes what `HASHES` says.
    """
    count = HASHES[hash_name] if iterations is None else iterations
    salt = secrets.token_bytes(SALT_BYTES)
    keys = derive(hash_name, password, salt, count)
    stored_key = hashlib.new(hash_name, keys.client_key).digest()
    return Verifier(hash_name, count, salt, stored_key, keys.server_key)


def decoy(
    hash_name: str, name: str, iterations: int, secret: bytes, salt_bytes: int | None = None
) -> Verifier:
    """Make the verifier of a user that there is not: the same for the same name each time.

    Args:
        hash_name: One of `HASHES`.
        name: As the peer gave it.
        iterations: As the verifiers of users have it.
        secret: Known to the container alone; else who asks could tell the salt from a true one.
        salt_bytes: As the verifiers of users have it; None is what new ones have.
    """
    told = f"{hash_name}\0{name}".encode("utf-8", "surrogatepass")
    salt = hashlib.pbkdf2_hmac("sha256", secret, told, 1, salt_bytes or SALT_BYTES)
    size = hashlib.new(hash_name).digest_size
    return Verifier(hash_name, iterations, salt, secrets.token_bytes(size), bytes(size))


def parse_verifier(line: str) -> Verifier:
    """Read a line.

    Args:
        line: What `str` of a verifier returns.

    Raises:
        VerifierError: It is none; the message never quotes it, as it ends in logs.
    """
    parts = line.split("$")
    if len(parts) != 3:
        raise VerifierError("verifier is not of the form SCRAM-SHA-256$iterations:salt$key:key")
    hash_name = f"sha{parts[0].removeprefix(_PREFIX)}"
    if not parts[0].startswith(_PREFIX) or hash_name not in HASHES:
        raise VerifierError("verifier is for none of SCRAM-SHA-256, SCRAM-SHA-512")
    count, _, salt_text = parts[1].partition(":")
    stored_text, _, server_text = parts[2].partition(":")
    try:
        salt, stored, server = (
            base64.b64decode(part, validate=True) for part in (salt_text, stored_text, server_text)
        )
    except (ValueError, binascii.Error):
        raise VerifierError("verifier has a salt or a key that is not base64") from None
    digits = count if count.isascii() and count.isdecimal() and len(count) < 10 else "0"
    if not ITERATIONS_MIN <= int(digits) <= ITERATIONS_MAX:
        raise VerifierError(f"verifier needs from {ITERATIONS_MIN} to {ITERATIONS_MAX} iterations")
    size = hashlib.new(hash_name).digest_size
    if not SALT_BYTES_MIN <= len(salt) <= SALT_BYTES_MAX or {len(stored), len(server)} != {size}:
        raise VerifierError(
            f"verifier needs a salt of {SALT_BYTES_MIN} to {SALT_BYTES_MAX} bytes "
            f"and keys of {size}"
        )
    return Verifier(hash_name, int(digits), salt, stored, server)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
