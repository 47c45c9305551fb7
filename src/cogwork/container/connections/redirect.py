"""Which newcomers a container sends away, and where to: a pure decision.

Theory of operation. What counts is the usage: clients, and messages and memory counted in clients
(`container/connections/usage`). A container knows its own clients exactly, and of the others what
their last hello said. That is old by up to a heartbeat, so the newcomers that were sent to each
since are added: each of them until the figures have grown by one, or are so much younger that it
must be among them or has gone elsewhere. A newcomer that was redirected already is kept. Whoever
sent it here knew what it had sent and this container does not: by its older figures of the others
it would send most of a crowd back.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from cogwork.amqp.redirect import KNOWN_HOSTS_MAX, Host, Redirect, host_of

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ("Newcomer", "Redirector")

ARRIVAL_S = 2.0
"""Within it a newcomer that was sent away has arrived, or never will."""

AGE_S = 2.0
"""With hellos each second: they tell what was counted up to a second before."""


class Newcomer(NamedTuple):
    """A client that has just opened its connection.

    Attributes:
        scheme: What it speaks: `amqp`, `amqps`, `ws` or `wss`.
        is_near: Whether it is on this machine.
        redirects: How many redirects in a row have led it here.
    """

    scheme: str
    is_near: bool = False
    redirects: int = 0


class _Other:
    """Another container, as its hellos tell, and the newcomers that are on their way to it."""

    __slots__ = ("_sent_s", "clients", "hosts", "load")

    def __init__(self) -> None:
        self.clients = 0
        self.load = 0.0
        self.hosts: dict[str, list[Host]] = {}
        self._sent_s: deque[float] = deque()

    @property
    def usage(self) -> float:
        """What it has to do once those on their way have arrived, counted in clients."""
        return self.clients + len(self._sent_s) + self.load

    def update(
        self, clients: int, hosts: dict[str, list[Host]], counted_s: float, load: float
    ) -> None:
        """Take over figures, and no longer counts beside them whom they count.

        Whoever was sent before `counted_s` is among them, or has gone elsewhere.
        """
        for _ in range(min(clients - self.clients, len(self._sent_s))):
            self._sent_s.popleft()
        while self._sent_s and self._sent_s[0] < counted_s:
            self._sent_s.popleft()
        self.clients = clients
        self.load = load
        self.hosts = hosts

    def send(self, now_s: float) -> None:
        """Remember a newcomer that is on its way."""
        self._sent_s.append(now_s)

    def hosts_for(self, newcomer: Newcomer) -> list[Host]:
        """List where a newcomer reaches it: by what it speaks, over loopback from here only."""
        hosts = self.hosts.get(newcomer.scheme, [])
        return [host for host in hosts if newcomer.is_near or not host.is_loopback]


class Redirector:
    """Decides over newcomers. Owned by the container.

    Attributes:
        margin: How many clients more than the one with the fewest this container takes before it
            sends newcomers there; None sends them away only while it drains.
        is_draining: Whether every newcomer is sent away that can be.
    """

    def __init__(self, margin: int | None, age_s: float = AGE_S) -> None:
        """Initialize it; it knows of no other container yet.

        Args:
            margin: As the attribute.
            age_s: How old the figures of the others may be when they are taken over.
        """
        self.margin = margin
        self.is_draining = False
        self._counted_after_s = age_s + ARRIVAL_S
        self._others: dict[str, _Other] = {}

    def update(
        self,
        container_id: str,
        clients: int,
        urls: Iterable[str],
        now_s: float,
        load: float = 0.0,
    ) -> None:
        """Take over what another container says of itself, new or once more.

        One that drains is to be `remove`d instead.

        Args:
            container_id: Its id.
            clients: How many it has.
            urls: Where it can be reached, as `scheme://HOST:PORT`; others are left out.
            now_s: The time, by the monotonic clock.
            load: What it has to do besides, counted in clients.
        """
        other = self._others.setdefault(container_id, _Other())
        other.update(clients, _hosts_by_scheme(urls), now_s - self._counted_after_s, load)

    def remove(self, container_id: str) -> None:
        """Send nobody to a container from now on: it cannot be reached, or drain."""
        self._others.pop(container_id, None)

    @property
    def usages(self) -> list[float]:
        """What the others have to do, counted in clients."""
        return [other.usage for other in self._others.values()]

    def choose(self, newcomer: Newcomer, usage: float, now_s: float) -> Redirect | None:
        """Decide over one newcomer.

        Args:
            newcomer: What is known of it.
            usage: What this container has to do, counted in clients, without the newcomer.
            now_s: The time, by the monotonic clock.

        Returns:
            Where it has to go, which it is counted to have done from now on; None where it stays.
        """
        if not self.is_draining and (self.margin is None or newcomer.redirects):
            return None
        reachable = self._reachable(newcomer)
        if not reachable:
            return None
        least_used, _ = reachable[0]
        if not self.is_draining and usage <= least_used.usage + (self.margin or 0):
            return None
        return self._send(reachable, now_s)

    def move(self, newcomer: Newcomer, now_s: float) -> Redirect | None:
        """Return where a client that stands is to go, which has least to do; None for nowhere."""
        reachable = self._reachable(newcomer)
        return self._send(reachable, now_s) if reachable else None

    def _reachable(self, newcomer: Newcomer) -> list[tuple[_Other, list[Host]]]:
        """List the others that a client reaches, with where; those with least to do come first."""
        others = sorted(self._others.items(), key=lambda item: (item[1].usage, item[0]))
        return [(other, hosts) for _, other in others if (hosts := other.hosts_for(newcomer))]

    @staticmethod
    def _send(reachable: list[tuple[_Other, list[Host]]], now_s: float) -> Redirect:
        reachable[0][0].send(now_s)
        target, *known_hosts = (host for _, hosts in reachable for host in hosts)
        return Redirect(target, tuple(known_hosts[:KNOWN_HOSTS_MAX]))


def _hosts_by_scheme(urls: Iterable[str]) -> dict[str, list[Host]]:
    """Sort URLs by what is spoken there; what is no such URL is of no use to anybody."""
    hosts: dict[str, list[Host]] = {}
    for url in urls:
        scheme, _, rest = url.partition("://")
        try:
            hosts.setdefault(scheme, []).append(host_of(rest))
        except ValueError:
            continue
    return hosts
