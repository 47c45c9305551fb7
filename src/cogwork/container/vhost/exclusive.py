"""Addresses that one receiver has for itself: the names of servers, and of ZeroMQ peers.

A receiver that asks for its address alone (`EXCLUSIVE`) is refused where somebody receives there,
at this container or at one that is linked with it; and while it stands, everybody else is. The
same session, which is a user's client with the same link, takes its address over: nobody may have
noticed yet that its earlier connection is lost.

Theory of operation. Each claim is announced over the mesh. Two containers may grant one before
either hears of the other's, or while the mesh is parted. So claims are ordered: one of a session
that has held the address before comes before a first claim, and then the lesser container id
decides. Each container compares as it hears of a claim; all compare the same values, so that one
claim alone holds, and every other one is detached as an attach would have been refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

from cogwork.amqp.errors import AmqpError, Condition
from cogwork.amqp.extensions import EXCLUSIVE, EXCLUSIVE_AGAIN
from cogwork.container.federation.claims import Claim
from cogwork.container.gateways.inside import Inside
from cogwork.dataplane.transport.outgoing import OutgoingLink
from cogwork.plugin.node import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.amqp.terminus import Source
    from cogwork.container.connections.clients import ClientContext
    from cogwork.container.federation.claims import Claims
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.dataplane.addresses.entry import AddressEntry
    from cogwork.dataplane.link import Link

__all__ = ("Holders",)

OWNER_BYTES = 8
"""Of the digest that tells sessions apart: nobody finds another session of the same one."""


@dataclass(slots=True, frozen=True, eq=False)
class _Holder:
    """Who holds an address here.

    Attributes:
        link: Its link.
        owner: Its session.
        entry: Where it receives from.
        standing: That of its claim.
    """

    link: Link
    owner: tuple[str, ...]
    entry: AddressEntry
    standing: int


class Holders:
    """Who holds an address of a virtual host alone, by address."""

    def __init__(self, vhost: VirtualHost) -> None:
        """Initialize it; it knows of nobody.

        Args:
            vhost: Whose addresses they are.
        """
        self._vhost = vhost
        self._held: dict[str, _Holder] = {}

    @property
    def _claims(self) -> Claims | None:
        reach = self._vhost.reach
        return None if reach is None else reach.claims

    def claim(
        self, link: Link, source: Source, address: str, entry: AddressEntry, client: ClientContext
    ) -> None:
        """Let a receiver have an address, alone where it asks for that.

        Raises:
            Refused: Somebody holds it.
        """
        name = address.removeprefix("/")
        is_alone = EXCLUSIVE in source.capabilities
        elsewhere = [] if self._claims is None else self._claims.at(name)
        if not is_alone and not self._held and not elsewhere:
            return
        owner = _owner_of(link, client, self._claims)
        holder = self._held.get(name)
        if holder is not None:
            if holder.owner != owner:
                raise _taken(name, f"by {holder.owner[1]!r:.80}")
            text = "taken over by the same client, with another connection"
            self._end(name, holder, AmqpError(condition=Condition.LINK_STOLEN, description=text))
        digest = _digest_of(owner)
        for each in elsewhere:
            if each.owner != digest:
                raise _taken(name, f"at container {each.container}")
        if is_alone:
            standing = self._standing(name, source, elsewhere, entry)
            self._held[name] = _Holder(link, owner, entry, standing)
            if self._claims is not None:
                self._claims.announce(name, Claim(standing, "", digest))

    def _standing(
        self, name: str, source: Source, elsewhere: list[Claim], entry: AddressEntry
    ) -> int:
        """Return that of a new claim, to which no claim of another session stands against.

        Raises:
            Refused: Somebody receives there without a claim.
        """
        if next(_receivers(entry), None) is not None:
            raise _taken(name, "by another receiver")
        is_again = EXCLUSIVE_AGAIN in source.capabilities
        if not is_again and self._vhost.reach is not None:
            own = {each.container for each in elsewhere}
            others = set(self._vhost.reach.wanted_at(name)) - own
            if others:
                raise _taken(name, f"at container {', '.join(sorted(others))}")
        return min([0, *(each.standing for each in elsewhere)]) - (is_again or bool(elsewhere))

    def release(self, link: Link, address: str) -> None:
        """Give an address back, if the link holds it."""
        name = address.removeprefix("/")
        holder = self._held.get(name)
        if holder is not None and holder.link is link:
            self._forget(name)

    def compare(self, name: str) -> None:
        """End what receives here from an address where a claim of another container holds."""
        claims = self._claims
        elsewhere = [] if claims is None else claims.at(name)
        if not elsewhere or claims is None:
            return
        first, holder = elsewhere[0], self._held.get(name)
        if holder is None:
            entry = self._vhost.space.entries.get(name.encode())
            links = [] if entry is None else [each.owner for each in _receivers(entry)]
            for link in links:
                _detach(link, _taken_error(name, f"at container {first.container}"))
            return
        digest = _digest_of(holder.owner)
        if Claim(holder.standing, claims.container_id, digest) < first:
            return
        if first.owner == digest:
            text = f"taken over by the same client, at container {first.container}"
            error = AmqpError(condition=Condition.LINK_STOLEN, description=text)
        else:
            error = _taken_error(name, f"at container {first.container}, whose claim comes first")
        self._end(name, holder, error)

    def _end(self, name: str, holder: _Holder, error: AmqpError) -> None:
        """Take an address from who holds it."""
        _detach(holder.link, error)
        if self._held.get(name) is holder:
            self._forget(name)
        if holder.link.end is not None:
            holder.entry.remove_outlet(holder.link.end)

    def _forget(self, name: str) -> None:
        del self._held[name]
        if self._claims is not None:
            self._claims.withdraw(name)


def _receivers(entry: AddressEntry) -> Iterator[OutgoingLink]:
    """Go over the clients that receive from an address at this container."""
    for each in entry.outlets:
        if isinstance(each, OutgoingLink) and not each.is_branch:
            yield each


def _owner_of(link: Link, client: ClientContext, claims: Claims | None) -> tuple[str, ...]:
    """Return what a session is known by across its connections: user, container-id and link.

    A gateway's own connections are named alike in all containers, so the container counts.
    """
    connection = link.session.connection
    opened, user = connection.remote, connection.identity
    home = "" if claims is None or not isinstance(client.listen, Inside) else claims.container_id
    client_id = "" if opened is None else opened.container_id
    return ("" if user is None else f"user {user}", client_id, link.name, home)


def _digest_of(owner: tuple[str, ...]) -> int:
    digest = blake2b(repr(owner).encode(errors="surrogatepass"), digest_size=OWNER_BYTES)
    return int.from_bytes(digest.digest())


def _detach(link: Link, error: AmqpError) -> None:
    link.detach(error)
    link.session.connection.flush()


def _taken_text(name: str, holder: str) -> str:
    return f"{name!r:.200} is held {holder}: a name is one receiver's alone"


def _taken_error(name: str, holder: str) -> AmqpError:
    return AmqpError(condition=Condition.RESOURCE_LOCKED, description=_taken_text(name, holder))


def _taken(name: str, holder: str) -> Refused:
    return Refused(_taken_text(name, holder), Condition.RESOURCE_LOCKED)
