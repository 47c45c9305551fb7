"""A search for a container that takes a connection: whom to try next.

Theory of operation. A search goes through a list of endpoints until one answers. A redirect puts
those that it names before the list, and the list begins anew: where none of them answers, the
client comes back to whom it was told of at first. A container that it comes back to is asked to
keep it, so that containers that redirect to each other, or to one that is dead, lock nobody out.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from cogwork.client.errors import ConnectError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cogwork.client.connection.redirection import Redirected
    from cogwork.client.connection.url import Endpoint

__all__ = ("REDIRECTS_MAX", "Search")

REDIRECTS_MAX = 8
"""Redirects in a row that are followed: who goes on for longer is being led around."""


class Search:
    """One attempt to connect, over all hosts there are. Owned by the connector.

    Attributes:
        redirects: How many redirects it has followed.
        failures: Why there is no connection yet, in order.
    """

    def __init__(self, nearest: Iterable[Endpoint], given: Iterable[Endpoint]) -> None:
        """Begin.

        Args:
            nearest: Those to try first: the last one, and what the last redirect named.
            given: Those that the application named.
        """
        self.redirects = 0
        self.failures: list[ConnectError] = []
        self._named = list(nearest)
        self._given = list(given)
        self._waiting = deque([*self._named, *self._given])
        self._failed: set[Endpoint] = set()
        self._senders: set[Endpoint] = set()

    def __iter__(self) -> Iterator[Endpoint]:
        """Yield the next one to try; `fail` or `follow` tells what came of it."""
        while self._waiting:
            endpoint = self._waiting.popleft()
            if endpoint not in self._failed:
                yield endpoint

    def insists(self, endpoint: Endpoint) -> bool:
        """Return whether a container has to be asked to keep us: it has sent us away already."""
        return endpoint in self._senders

    def fail(self, endpoint: Endpoint, error: ConnectError) -> None:
        """Try one no more."""
        self._failed.add(endpoint)
        self.failures.append(error)

    def follow(self, endpoint: Endpoint, redirected: Redirected) -> None:
        """Go on where one redirects to, unless there were too many redirects."""
        if self.redirects == REDIRECTS_MAX:
            error = ConnectError(f"{redirected}, after {REDIRECTS_MAX} redirects in a row")
            error.condition = redirected.condition
            self.fail(endpoint, error)
            return
        self.redirects += 1
        self.failures.append(redirected)
        self._senders.add(endpoint)
        self._named = redirected.redirection.endpoints
        self._waiting = deque([*self._named, *self._given])

    def nearest(self, endpoint: Endpoint) -> list[Endpoint]:
        """List whom to try first next time, if `endpoint` has taken the connection."""
        given_up = {endpoint, *self._failed}
        return [endpoint, *(other for other in self._named if other not in given_up)]
