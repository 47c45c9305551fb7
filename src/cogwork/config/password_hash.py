"""Hashes of passwords by scrypt, as `[[user]] password_hash` has them.

A hash is one line, `scrypt$n$r$p$salt$hash`, so that the cost can rise without a change of format.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from typing import NamedTuple

from cogwork.amqp.errors import CogworkError

__all__ = (
    "Cost",
    "Hash",
    "PasswordHashError",
    "check_hash",
    "decode",
    "decoy",
    "derive",
    "hash_password",
    "is_old",
    "present_cost",
    "verify",
)

COST_N = 2**14
BLOCK_SIZE_R = 8
PARALLELISM_P = 5
"""Of the settings that OWASP lists as equal, the one with 16 MiB for a check: with 2^17, 8, 1 it is
128 MiB, and three threads would double what a small container may hold."""

SALT_BYTES = 16
HASH_BYTES = 32

MEMORY_BYTES_MAX = 256 * 1024 * 1024
"""For one check: a hash that asks for more would let two logins fill a small machine."""

PARALLELISM_MAX = 16
"""Each step multiplies the time of a check."""


class PasswordHashError(CogworkError):
    """A password hash that is malformed, or costs too much to check."""


Cost = tuple[int, int, int]
"""n, r and p."""


class Hash(NamedTuple):
    """A decoded line."""

    n: int
    r: int
    p: int
    salt: bytes
    digest: bytes

    @property
    def cost(self) -> Cost:
        """What a check takes."""
        return self.n, self.r, self.p

    def matches(self, password: str) -> bool:
        """Tell whether it is this password's."""
        return hmac.compare_digest(derive(password, self), self.digest)


def hash_password(password: str) -> str:
    """Hash a password with a new salt.

    Args:
        password: As the user types it.

    Returns:
        What `[[user]] password_hash` takes.
    """
    fresh = decoy(*present_cost())
    encoded = (base64.b64encode(part).decode() for part in (fresh.salt, derive(password, fresh)))
    return "$".join(("scrypt", str(fresh.n), str(fresh.r), str(fresh.p), *encoded))


def verify(encoded: str, password: str) -> bool:
    """Return whether a password is the hashed one, in a time that does not depend on the answer.

    Args:
        encoded: What `hash_password` returned.
        password: The one to check.

    Raises:
        PasswordHashError: The hash is malformed.
    """
    return decode(encoded).matches(password)


def check_hash(encoded: str) -> None:
    """Look whether a hash can be used.

    Args:
        encoded: What `hash_password` returned.

    Raises:
        PasswordHashError: The hash is malformed, or costs too much; the message never quotes it.
    """
    decode(encoded)


def is_old(encoded: str) -> bool:
    """Tell whether a hash is cheaper to guess against than new ones are.

    Args:
        encoded: What `hash_password` returned, maybe years ago.

    Raises:
        PasswordHashError: The hash is malformed.
    """
    return _work(decode(encoded).cost) < _work(present_cost())


def present_cost() -> Cost:
    """Return the cost of the hashes that are made now."""
    return COST_N, BLOCK_SIZE_R, PARALLELISM_P


def _work(cost: Cost) -> int:
    n, r, p = cost
    return n * r * p


def decoy(n: int, r: int, p: int) -> Hash:
    """Make a hash that nobody knows a password for."""
    return Hash(n, r, p, os.urandom(SALT_BYTES), os.urandom(HASH_BYTES))


def derive(password: str, how: Hash) -> bytes:
    """Derive the digest that a password has by a hash's cost and salt."""
    return hashlib.scrypt(
        password.encode("utf-8", "surrogatepass"),
        salt=how.salt,
        n=how.n,
        r=how.r,
        p=how.p,
        maxmem=2 * MEMORY_BYTES_MAX,
        dklen=len(how.digest),
    )


def decode(encoded: str) -> Hash:
    """Read a line; errors never quote it, as they end in logs.

    Raises:
        PasswordHashError: The hash is malformed, or costs too much.
    """
    scheme, *fields = encoded.split("$")
    if scheme != "scrypt" or len(fields) != 5:
        raise PasswordHashError("password hash is not of the form scrypt$n$r$p$salt$hash")
    try:
        n, r, p = map(int, fields[:3])
        salt, digest = (base64.b64decode(part, validate=True) for part in fields[3:])
    except (ValueError, binascii.Error):
        raise PasswordHashError(
            "password hash has n, r or p that is no number, or salt or hash that is not base64"
        ) from None
    if n < 2 or n & (n - 1) or r < 1 or not 1 <= p <= PARALLELISM_MAX:
        raise PasswordHashError(
            f"password hash needs n a power of two, r from 1, p from 1 to {PARALLELISM_MAX}"
        )
    if 128 * n * r > MEMORY_BYTES_MAX:
        raise PasswordHashError(
            f"password hash needs {128 * n * r} bytes of memory, over {MEMORY_BYTES_MAX}"
        )
    if len(salt) < SALT_BYTES // 2 or len(digest) < SALT_BYTES:
        raise PasswordHashError("password hash has a salt or hash that is too short")
    return Hash(n, r, p, salt, digest)
