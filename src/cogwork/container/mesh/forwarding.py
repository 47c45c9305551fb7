"""Sends messages of exchanges to the private queues of other containers, and hears of these.

Theory of operation. A container that a message is for has one link from here, which carries
wrapped messages (`dataplane.addresses.forwarding`), and an address whose only outlet is that link.
While the link is not there a `LostWay` stands in its place: its copies are in doubt. Once the
container is given up, its bindings are taken out of the graph, and what still comes is nobody's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from cogwork.container.mesh.names import FORWARDED
from cogwork.container.vhost.private_names import container_in
from cogwork.container.vhost.reply_addresses import container_of, reply_address_in
from cogwork.dataplane.addresses.entry import CLOSEST_CODE, AddressEntry
from cogwork.dataplane.addresses.forwarding import ForwardOutlet, LostWay

if TYPE_CHECKING:
    from collections.abc import Set

    from cogwork.amqp.errors import AmqpError
    from cogwork.container.mesh.away import Away, Opener
    from cogwork.container.vhost.exchanges import Exchanges
    from cogwork.dataplane.addresses.exchange import Changes
    from cogwork.dataplane.core import Core
    from cogwork.router.exchanges.forwards import Forward, ForwardRoute
    from cogwork.router.mesh.messages import Interest

__all__ = ("Forwarding",)


class Surroundings(Protocol):
    """What it needs of the reach that owns it.

    Attributes:
        core: The data plane.
        container_id: This container's.
    """

    core: Core
    container_id: str

    def is_known(self, container: str) -> bool:
        """Return whether the mesh knows a container."""

    def announce(self, address: str, *, is_there: bool) -> None:
        """Tell other containers of an address, or that it is none any more."""

    def open(
        self, container: str, address: str, entry: AddressEntry, opener: Opener
    ) -> Away | None:
        """Attach a link to another container; None where there is no way."""

    def open_later(self) -> None:
        """Have `restore` called, when what was lost may be opened again."""


@dataclass(slots=True, eq=False)
class _Way:
    """What leads to one container.

    Attributes:
        entry: Takes the wrapped messages; its outlet is the link, or what stands for it.
        lost: Stands for the link while there is none.
        outlets: The addresses of messages for it, by their routes.
        link: The link; None while there is none.
    """

    entry: AddressEntry
    lost: LostWay
    outlets: dict[ForwardRoute, AddressEntry] = field(default_factory=dict)
    link: Away | None = None


class Forwarding:
    """That of one virtual host; owned by its reach."""

    def __init__(self, surroundings: Surroundings, exchanges: Exchanges) -> None:
        """Know of no other container."""
        self._outside = surroundings
        self._exchanges = exchanges
        self._ways: dict[str, _Way] = {}

    def start(self) -> None:
        """Have exchanges send here what is for others, and tell these of private queues here."""
        self._exchanges.send_elsewhere_by(self.find, self.holder_of)
        self._exchanges.private.announce_all(self._announce)

    # -- what is told

    def _announce(self, address: str, is_there: bool) -> None:
        self._outside.announce(address, is_there=is_there)

    def take_interest(self, container: str, interest: Interest) -> None:
        """Take note of a binding of another container's private queue."""
        self._exchanges.remote.take(container, interest.address)

    def lose_interest(self, container: str, interest: Interest) -> None:
        """Take note that there is such a binding no longer."""
        self._exchanges.remote.lose(container, interest.address)

    def holder_of(self, queue: str) -> str | None:
        """Return the other container that has a private queue, or may have; None where none has."""
        address = reply_address_in(queue)
        if address is not None:
            found = container_of(address)
        else:
            found = container_in(queue) or self._exchanges.remote.holder_of(queue)
        if found is None or found == self._outside.container_id:
            return None
        return found if self._outside.is_known(found) else None

    # -- messages

    def find(self, forward: Forward, changes: Changes) -> AddressEntry | None:
        """Return where messages for another container come in; None where it is not known."""
        container, route = forward
        if not self._outside.is_known(container):
            return None
        way = self._ways.get(container)
        if way is None:
            way = self._ways[container] = self._made(container)
        entry = way.outlets.get(route)
        if entry is None:
            core = self._outside.core
            entry = way.outlets[route] = AddressEntry(core, way.entry.name, CLOSEST_CODE)
            entry.add_outlet(ForwardOutlet(core, way.entry, route.octets, changes))
        return entry

    def _made(self, container: str) -> _Way:
        core = self._outside.core
        way = _Way(AddressEntry(core, f"{FORWARDED}/{container}", CLOSEST_CODE), LostWay(core))
        way.entry.add_outlet(way.lost)
        self._connect(container, way)
        return way

    def _connect(self, container: str, way: _Way) -> None:
        way.link = self._outside.open(container, FORWARDED, way.entry, self)
        if way.link is not None:
            way.entry.add_outlet(way.link.end)
            way.entry.remove_outlet(way.lost)

    # -- links

    def stopping(self, link: Away) -> None:
        """Take a link out of use that is about to end; what waits for it is in doubt."""
        way = self._ways.get(link.container)
        if way is not None and way.link is link:
            way.link = None
            way.entry.add_outlet(way.lost)
            way.entry.remove_outlet(link.end)
        self._outside.open_later()

    def refused(self, _link: Away, _error: AmqpError) -> None:
        """Do nothing: a container of an earlier version takes none, and tells of no bindings."""

    def restore(self) -> None:
        """Open the links that should be there and are not."""
        for container, way in self._ways.items():
            if way.link is None:
                self._connect(container, way)

    def sweep(self, given_up: Set[str]) -> None:
        """Give up containers that are not reached for long, and forget those that have gone."""
        self._exchanges.remote.set_unreachable(given_up)
        for container, way in list(self._ways.items()):
            way.lost.is_given_up = container in given_up
            if not self._outside.is_known(container):
                self._forget(container, way)

    def _forget(self, container: str, way: _Way) -> None:
        del self._ways[container]
        if way.link is not None:
            way.link.detach()
        self._exchanges.changed()
        for entry in way.outlets.values():
            for outlet in entry.outlets:
                assert isinstance(outlet, ForwardOutlet)
                outlet.close()
            entry.close()
        way.entry.close()
        way.lost.close()

    @property
    def dropped(self) -> int:
        """Counts the copies that found no way to their container."""
        return sum(way.lost.dropped for way in self._ways.values())
