"""Checks passwords against the hashes of a container's users, off the event loop.

Theory of operation. A check takes a core for a quarter of a second, so checks run in few threads
behind a fair queue; what does not fit is refused at once, because its peer would have gone before
its turn came. Each check costs the same, whoever is asked for: a hash of each cost that any user
has is derived, the user's own or a decoy, so that time tells neither names nor the age of hashes.

Accepted passwords are not remembered. A cache quick enough to help would have to hold something
that is quick to try guesses against, which is what scrypt is there to prevent.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from cogwork.config.password_hash import decode, decoy, present_cost
from cogwork.container.security.login_queue import LoginQueue

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cogwork.config.password_hash import Cost, Hash
    from cogwork.config.settings import User

__all__ = ("PasswordChecker",)

THREADS = 2
"""Logins of clients never take more than two cores from traffic."""

RESERVE_THREADS = 1
"""For users with `mesh = true`, besides."""

PENDING_MAX = 256
"""More than two threads check within the time that a peer has to authenticate."""


class PasswordChecker:
    """Checks names and passwords for one container. Owned by its event loop."""

    def __init__(self, users: Iterable[User]) -> None:
        """Decode the users' hashes.

        Args:
            users: As configured.

        Raises:
            PasswordHashError: One hash is malformed.
        """
        self._hashes: Mapping[str, Hash] = {}
        self._decoys: Mapping[Cost, Hash] = {}
        self._mesh_users: frozenset[str] = frozenset()
        threads = THREADS + RESERVE_THREADS
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="password")
        self._queue = LoginQueue(self._threads, THREADS, RESERVE_THREADS, PENDING_MAX)
        self.replace(users)

    def replace(self, users: Iterable[User]) -> None:
        """Take other users, such as those of a configuration read again.

        Args:
            users: All of them.

        Raises:
            PasswordHashError: One hash is malformed; the users stay as they were.
        """
        all_users = list(users)
        hashes = {each.name: decode(each.password_hash) for each in all_users if each.password_hash}
        costs = {each.cost for each in hashes.values()}
        self._decoys = {cost: decoy(*cost) for cost in costs or {present_cost()}}
        self._mesh_users = frozenset(each.name for each in all_users if each.mesh)
        self._hashes = hashes

    async def check(self, name: str, password: str, source: str = "") -> bool:
        """Return whether the user exists and the password is theirs.

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
        """Stop the threads; check that wait are cancelled."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _match_all(hashes: Iterable[Hash], known: Hash | None, password: str) -> bool:
    """Derive all of them, and tell whether the user's own is right."""
    right = [each for each in hashes if each.matches(password)]
    return known is not None and known in right
