"""The links that a container keeps: those of its configuration, and those that were added."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from cogwork.amqp.errors import CogworkError, Condition
from cogwork.config.link_urls import LinkUrl
from cogwork.config.settings import Link
from cogwork.container.mesh.dialler import LinkDialler
from cogwork.plugin.node import Refused
from cogwork.router.mesh.bounds import COST_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cogwork.container.mesh.service import MeshService
    from cogwork.io.places import Places

__all__ = ("LinkManager",)

log = logging.getLogger("cogwork")


class LinkManager:
    """Those who dial them, one for each place."""

    def __init__(self, mesh: MeshService) -> None:
        """Dial nobody yet.

        Args:
            mesh: Gets the peer links.
        """
        self._mesh = mesh
        self._by_endpoint: dict[str, LinkDialler] = {}
        self._allowed: Places | None = None
        self._number = int(time.time() * 1000)

    def __iter__(self) -> Iterator[LinkDialler]:
        """Go over them as they are now."""
        return iter(list(self._by_endpoint.values()))

    def __len__(self) -> int:
        return len(self._by_endpoint)

    def allow(self, places: Places | None) -> None:
        """Dial nothing else from now on, and give up what was added and leads elsewhere.

        Args:
            places: Where links may lead; None is everywhere.
        """
        self._allowed = places
        for name, dialler in list(self._by_endpoint.items()):
            if not dialler.link.is_to_worker and not self._may_dial(dialler.url):
                log.warning("link to %s: removed, because dial.allow does not list it", dialler.url)
                self._end(name)

    def _may_dial(self, url: LinkUrl) -> bool:
        return self._allowed is None or self._allowed.hold(url.host, url.port)

    def add(self, url: str, cost: int = 1) -> None:
        """Dial one more container.

        Raises:
            Refused: The URL is malformed or not allowed, the cost too high, or there is such a
                link.
        """
        target = LinkUrl.parse(url)
        if not self._may_dial(target):
            text = f"link: {target} is not allowed: dial.allow does not list it"
            raise Refused(text, Condition.UNAUTHORIZED_ACCESS)
        if not 1 <= cost <= COST_MAX:
            text = f"link: found a cost of {cost}, expected one from 1 to {COST_MAX}"
            raise Refused(text, Condition.INVALID_FIELD)
        self.dial(Link(url=url, cost=cost))

    def dial(self, link: Link) -> None:
        """Dial what is configured.

        Raises:
            Refused: The URL is malformed, or there is such a link.
        """
        dialler = LinkDialler(self._mesh, link)
        name = dialler.url.endpoint
        if name in self._by_endpoint:
            raise Refused(f"link: there is one to {name} already")
        self._by_endpoint[name] = dialler
        dialler.start()

    def renew(self, links: Iterable[Link]) -> list[str]:
        """Log in as links say that were read again, where their places are dialled already.

        Args:
            links: As configured now.

        Returns:
            What is wrong with certificates, where those before stay in use.
        """
        problems = []
        for link in links:
            dialler = self._by_endpoint.get(link.target.endpoint)
            try:
                if dialler is not None:
                    dialler.renew(link)
            except CogworkError as error:
                problems.append(f"link to {link.target}: {error}")
        return problems

    def look(self) -> None:
        """Have revocation lists read again that have changed."""
        for dialler in self:
            dialler.look()

    def remove(self, url: str) -> None:
        """End a link that was dialled from here.

        Raises:
            Refused: The URL is malformed.
            KeyError: There is none.
        """
        self._end(LinkUrl.parse(url).endpoint)

    def _end(self, endpoint: str) -> None:
        dialler = self._by_endpoint.pop(endpoint)
        dialler.stop()
        if dialler.peer_link is not None:
            dialler.peer_link.control.close(None)

    def stop(self) -> None:
        """Dial no more; link that stand are left alone."""
        for dialler in self:
            dialler.stop()

    def next_number(self) -> int:
        """Return a number that no link dialled here has had."""
        self._number += 1
        return self._number

    def cost_to(self, peer: str) -> int:
        """Return what is configured for the link to a container; 0 where there is none."""
        return next((each.link.cost for each in self if each.peer == peer), 0)
