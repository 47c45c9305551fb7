"""Passwords: hashed with scrypt, checked off the event loop, never shown.

Theory of operation. A hash is one line, `scrypt$n$r$p$salt$hash`, so that the cost can rise without
a change of format. A check takes a core for a quarter of a second, so checks run in few threads
behind a fair queue; what does not fit is refused at once, because its peer would have gone before
its turn came. Each check costs the same, whoever is asked for: a hash of each cost that any user
has is derived, the user's own or a decoy, so that time tells neither names nor the age of hashes.

Accepted passwords are not remembered. A cache quick enough to help would have to hold something
that is quick to try guesses against, which is what scrypt is there to prevent.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from cogwork.amqp.errors import CogworkError
from cogwork.container.login_queue import LoginQueue

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cogwork.container.settings import User

__all__ = (
    "PasswordChecker",
    "PasswordHashError",
    "check_hash",
    "hash_password",
    "is_old",
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

THREADS = 2
"""Logins of clients never take more than two cores from traffic."""

RESERVE_THREADS = 1
"""For users with `mesh = true`, besides."""

PENDING_MAX = 256
"""More than two threads check within the time that a peer has to authenticate."""


class PasswordHashError(CogworkError):
    """A password hash that is malformed, or costs too much to check."""


Cost = tuple[int, int, int]
"""n, r and p."""


class _Hash(NamedTuple):
    """A decoded line."""

    n: int
    r: int
    p: int
    salt: bytes
    digest: bytes

    @property
    def cost(self) -> Cost:
        return self.n, self.r, self.p

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


def is_old(encoded: str) -> bool:
    """Tell whether a hash is cheaper to guess against than new ones are.

    Args:
        encoded: What `hash_password` returned, maybe years ago.

    Raises:
        PasswordHashError: The hash is malformed.
    """
    return _work(_decode(encoded).cost) < _work((COST_N, BLOCK_SIZE_R, PARALLELISM_P))


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
        self._decoys: Mapping[Cost, _Hash] = {}
        self._mesh_users: frozenset[str] = frozenset()
        threads = THREADS + RESERVE_THREADS
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="password")
        self._queue = LoginQueue(self._threads, THREADS, RESERVE_THREADS, PENDING_MAX)
        self.replace(users)

    def replace(self, users: Iterable[User]) -> None:
        """Takes other users, such as those of a configuration read again.

        Args:
            users: All of them.

        Raises:
            PasswordHashError: One hash is malformed; the users stay as they were.
        """
        all_users = list(users)
        hashes = {
            each.name: _decode(each.password_hash) for each in all_users if each.password_hash
        }
        costs = {each.cost for each in hashes.values()}
        self._decoys = {
            cost: _decoy(*cost) for cost in costs or {(COST_N, BLOCK_SIZE_R, PARALLELISM_P)}
        }
        self._mesh_users = frozenset(each.name for each in all_users if each.mesh)
        self._hashes = hashes

    async def check(self, name: str, password: str, source: str = "") -> bool:
        """Tells whether the user exists and the password is theirs.

        Args:
            name: As the peer gave it.
            password: As the peer gave it.
            source: Where the peer is.

        Raises:
            LoginBusyError: Too many checks wait already.
        """
        known = self._hashes.get(name)
        hashes = dict(self._decoys) if known is None else {**self._decoys, known.cost: known}
        work = partial(_match_all, list(hashes.values()), known, password)
        return await self._queue.run(source, work, is_reserved=name in self._mesh_users)

    def close(self) -> None:
        """Stops the threads; checks that wait are cancelled."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _match_all(hashes: Iterable[_Hash], known: _Hash | None, password: str) -> bool:
    """Derive all of them, and tell whether the user's own is right."""
    right = [each for each in hashes if each.matches(password)]
    return known is not None and known in right


def _work(cost: Cost) -> int:
    n, r, p = cost
    return n * r * p


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
