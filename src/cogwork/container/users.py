"""Passwords: hashed with scrypt, checked off the event loop, never shown.

Theory of operation. A hash is one line, `scrypt$n$r$p$salt$hash`, so that the cost can rise without
a change of format. A check takes a core for a twentieth of a second, so checks run in two threads
behind a bounded queue; what does not fit is refused at once, because its peer would have gone
before its turn came. An unknown user costs the same as a known one: a decoy hash is checked, so
that time does not tell names.

Accepted passwords are not remembered. A cache quick enough to help would have to hold something
that is quick to try guesses against, which is what scrypt is there to prevent.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from cogwork.amqp.errors import CogworkError
from cogwork.sasl.sides import LoginBusyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cogwork.container.settings import User

__all__ = (
    "PasswordChecker",
    "PasswordHashError",
    "check_hash",
    "hash_password",
    "verify",
)

COST_N = 2**14
"""16 MiB and some 50 ms a check: a thousand clients that reconnect at once are in after half a
minute, and a guess costs a thief the same."""

BLOCK_SIZE_R = 8
PARALLELISM_P = 1
SALT_BYTES = 16
HASH_BYTES = 32

MEMORY_BYTES_MAX = 256 * 1024 * 1024
"""For one check: a hash that asks for more would let two logins fill a small machine."""

PARALLELISM_MAX = 16
"""Each step multiplies the time of a check."""

THREADS = 2
"""Logins never take more than two cores from traffic."""

PENDING_MAX = 256
"""What two threads check within the time that a peer has to authenticate."""


class PasswordHashError(CogworkError):
    """A password hash that is malformed, or costs too much to check."""


class _Hash(NamedTuple):
    """A decoded line."""

    n: int
    r: int
    p: int
    salt: bytes
    digest: bytes

    def matches(self, password: str) -> bool:
        return hmac.compare_digest(_derive(password, self), self.digest)


def hash_password(password: str) -> str:
    """Hashes a password with a new salt.

    Args:
        password: As the user types it.

    Returns:
        What `[[user]] password_hash` takes.
    """
    fresh = _decoy(COST_N, BLOCK_SIZE_R, PARALLELISM_P)
    encoded = (base64.b64encode(part).decode() for part in (fresh.salt, _derive(password, fresh)))
    return "$".join(("scrypt", str(fresh.n), str(fresh.r), str(fresh.p), *encoded))


def verify(encoded: str, password: str) -> bool:
    """Tells whether a password is the hashed one, in a time that does not depend on the answer.

    Args:
        encoded: What `hash_password` returned.
        password: The one to check.

    Raises:
        PasswordHashError: The hash is malformed.
    """
    return _decode(encoded).matches(password)


def check_hash(encoded: str) -> None:
    """Looks whether a hash can be used.

    Args:
        encoded: What `hash_password` returned.

    Raises:
        PasswordHashError: The hash is malformed, or costs too much; the message never quotes it.
    """
    _decode(encoded)


class PasswordChecker:
    """Checks names and passwords for one container. Owned by its event loop."""

    def __init__(self, users: Iterable[User]) -> None:
        """Decode the users' hashes.

        Args:
            users: As configured.

        Raises:
            PasswordHashError: One hash is malformed.
        """
        self._hashes: Mapping[str, _Hash] = {}
        self._decoy = _decoy(COST_N, BLOCK_SIZE_R, PARALLELISM_P)
        self._pending = 0
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="password")
        self.replace(users)

    def replace(self, users: Iterable[User]) -> None:
        """Takes other users, such as those of a configuration read again.

        Args:
            users: All of them.

        Raises:
            PasswordHashError: One hash is malformed; the users stay as they were.
        """
        hashes = {user.name: _decode(user.password_hash) for user in users if user.password_hash}
        dearest = max(hashes.values(), key=lambda each: each.n * each.r * each.p, default=None)
        if dearest is not None:
            self._decoy = _decoy(dearest.n, dearest.r, dearest.p)
        self._hashes = hashes

    async def check(self, name: str, password: str) -> bool:
        """Tells whether the user exists and the password is theirs.

        Args:
            name: As the peer gave it.
            password: As the peer gave it.

        Raises:
            LoginBusyError: Too many checks wait already.
        """
        if self._pending >= PENDING_MAX:
            raise LoginBusyError(
                f"{PENDING_MAX} logins wait for their password check; try again later"
            )
        self._pending += 1
        known = self._hashes.get(name)
        try:
            job = self._threads.submit((known or self._decoy).matches, password)
            is_right = await asyncio.wrap_future(job)
        finally:
            self._pending -= 1
        return is_right and known is not None

    def close(self) -> None:
        """Stops the threads; checks that wait are cancelled."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _decoy(n: int, r: int, p: int) -> _Hash:
    """Makes a hash that no one knows a password for."""
    return _Hash(n, r, p, os.urandom(SALT_BYTES), os.urandom(HASH_BYTES))


def _derive(password: str, how: _Hash) -> bytes:
    return hashlib.scrypt(
        password.encode("utf-8", "surrogatepass"),
        salt=how.salt,
        n=how.n,
        r=how.r,
        p=how.p,
        maxmem=2 * MEMORY_BYTES_MAX,
        dklen=len(how.digest),
    )


def _decode(encoded: str) -> _Hash:
    """Reads a line; errors never quote it, as they end in logs."""
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
    return _Hash(n, r, p, salt, digest)
