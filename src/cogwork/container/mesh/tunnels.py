"""Tunnels: sessions from this container to others, whoever stands between.

Theory of operation. A tunnel is a session that begins on the data connection to the next hop. Its
begin names both ends; each container on the way begins a session of its own towards the next one
and joins the two (`dataplane.relayed`). The far end sees a session like any other. So credit,
settlement and attempts are a matter of the two ends, whatever lies between them.

A container's tunnels to another one are numbered. A higher number ends all lower ones: what is
still under way in those comes too late, so nothing overtakes and nothing comes twice.

A tunnel keeps its way for as long as that holds. Where another way has become cheaper, it moves
when there is nothing in it: `sweep` ends it, and whoever had links in it opens them in a new one.
"""

from __future__ import annotations

import logging
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from cogwork.amqp.errors import AmqpError, Condition
from cogwork.container.mesh.away import Away
from cogwork.container.mesh.names import FROM, HOPS, HOPS_MAX, INCARNATION, NUMBER, TO
from cogwork.dataplane.transport.outgoing import OutgoingLink
from cogwork.dataplane.transport.relayed import relay
from cogwork.router.mesh.bounds import CONTAINERS_MAX

if TYPE_CHECKING:
    from cogwork.amqp.performatives import Begin
    from cogwork.amqp.types import Symbol
    from cogwork.container.mesh.service import MeshService
    from cogwork.dataplane.connection import Connection
    from cogwork.dataplane.link import Link
    from cogwork.dataplane.session import SessionEndpoint

__all__ = ("Tunnels", "origin_of")

STRANGER_S = 10.0
"""So long it counts which was the latest tunnel of a container that the mesh does not know, or not
yet: nothing of an earlier one is on its way any more then."""

log = logging.getLogger("cogwork")


class _Latest(NamedTuple):
    """The latest tunnel from a container.

    Attributes:
        age: Its incarnation and number.
        since_s: When it began.
    """

    age: tuple[int, int]
    since_s: float


@dataclass(slots=True, eq=False)
class Outward:
    """A tunnel that began here.

    Attributes:
        session: This end of it.
        path: The containers that it passes, with both ends, by what was known when it began.
        carried: Transfers in both directions, when it was looked at last.
        was_full: Whether it has had as many links as it may have.
    """

    session: SessionEndpoint
    path: tuple[str, ...]
    carried: int = -1
    was_full: bool = False

    def has_room(self, container: str) -> bool:
        """Return whether one more link may be attached; log the first time that it may not."""
        count = len(self.session.links)
        if count <= self.session.handle_max:
            return True
        if not self.was_full:
            self.was_full = True
            log.error(
                "container %s: the limit of %d links to it is reached: further addresses and "
                "consumers get no link until some of them are closed",
                container,
                count,
            )
        return False

    def has_rested(self) -> bool:
        """Return whether there is nothing in it, and was nothing since it was asked last."""
        before, self.carried = self.carried, _carried(self.session)
        return self.carried == before and not any(map(_is_busy, self.session.links.values()))


class Tunnels:
    """The tunnels that begin at this container, and those that lead to it or through it."""

    def __init__(self, mesh: MeshService) -> None:
        self._mesh = mesh
        self._number = 0
        self._outward: dict[str, Outward] = {}
        self._latest: dict[str, _Latest] = {}

    def to(self, container: str) -> SessionEndpoint | None:
        """Return the session that leads to a container; None where there is no way, or no room."""
        known = self._outward.get(container)
        if known is not None and not known.session.is_over:
            return known.session if known.has_room(container) else None
        connection = self._mesh.way_to(container)
        if connection is None:
            return None
        self._number += 1
        session = connection.begin_session(
            {
                FROM: self._mesh.id,
                TO: container,
                INCARNATION: self._mesh.mesh.own.incarnation,
                NUMBER: self._number,
                HOPS: 0,
            }
        )
        path = self._mesh.mesh.routes.tree.path_to(container)
        self._outward[container] = Outward(session, path)
        return session

    def sweep(self) -> bool:
        """End the tunnels that have rested and do not take the best way any more.

        Returns:
            Whether there were any: what was in them is to be opened again, before anything is sent.
        """
        has_moved = False
        self._forget_strangers(time.monotonic() - STRANGER_S)
        for container, tunnel in list(self._outward.items()):
            has_rested = tunnel.has_rested()
            if tunnel.session.is_over:
                del self._outward[container]
            elif has_rested and self._has_better(container, tunnel):
                del self._outward[container]
                tunnel.session.close()
                has_moved = True
        return has_moved

    def _has_better(self, container: str, tunnel: Outward) -> bool:
        """Return whether a new tunnel would take a cheaper way."""
        routes = self._mesh.mesh.routes
        return not routes.is_best(tunnel.path) and self._mesh.way_to(container) is not None

    # -- what others begin

    def on_begin(self, connection: Connection, channel: int, begin: Begin) -> bool:
        """Pass a tunnel on, or refuse it; False lets it end here."""
        properties = begin.properties or {}
        problem = self._problem_with(properties)
        if problem is None and properties[TO] == self._mesh.id:
            self._end_older(properties)
            return False
        way = None if problem is not None else self._mesh.way_to(str(properties[TO]))
        if problem is None and (way is None or way is connection):
            problem = f"no way to container {properties[TO]!r}"
        inward = connection.relay_session()
        inward.on_begin(channel, begin)
        if problem is not None or way is None:
            inward.finish(AmqpError(condition=Condition.NOT_FOUND, description=problem))
            return True
        hops = properties[HOPS]
        assert isinstance(hops, int)
        relay(inward, begin, way.relay_session(), {**properties, HOPS: hops + 1})
        return True

    def _problem_with(self, properties: dict[Symbol, object]) -> str | None:
        """Return what is wrong with a tunnel's begin; None where nothing is."""
        for key, kind in ((FROM, str), (TO, str), (INCARNATION, int), (NUMBER, int), (HOPS, int)):
            if not isinstance(properties.get(key), kind):
                return f"a session between containers whose begin does not say {key}"
        if not 0 <= _number(properties[HOPS]) < HOPS_MAX:
            return f"a tunnel through more than {HOPS_MAX} containers"
        if properties[FROM] == self._mesh.id:
            return "a tunnel that comes back to where it began"
        if properties[TO] == self._mesh.id:
            latest = self._latest.get(str(properties[FROM]))
            if latest is not None and _age(properties) <= latest.age:
                return "a newer tunnel is there already"
        return None

    def _end_older(self, properties: dict[Symbol, object]) -> None:
        """End the tunnels from a container that a newer one of its own replaces."""
        origin = str(properties[FROM])
        self._latest[origin] = _Latest(_age(properties), time.monotonic())
        if len(self._latest) > CONTAINERS_MAX:
            self._forget_strangers(math.inf)
        error = AmqpError(condition=Condition.LINK_STOLEN, description="a newer tunnel has come")
        for connection in self._mesh.data_connections():
            for session in connection.sessions:
                begun = session.remote
                if begun is not None and (begun.properties or {}).get(FROM) == origin:
                    session.close(error)

    def _forget_strangers(self, before_s: float) -> None:
        """Forget the ages of tunnels from containers that the mesh does not know.

        Names can be invented; and one that was forgotten may come back with a clock that was put
        back, and so with an earlier incarnation.
        """
        known = self._mesh.mesh.database.records
        self._latest = {
            origin: latest
            for origin, latest in self._latest.items()
            if origin in known or latest.since_s >= before_s
        }


def origin_of(session: SessionEndpoint) -> str | None:
    """Return the container that a tunnel comes from; None for one that began here."""
    begun = session.remote
    if begun is None or begun.remote_channel is not None:
        return None
    origin = (begun.properties or {}).get(FROM)
    return origin if isinstance(origin, str) else None


def _carried(session: SessionEndpoint) -> int:
    """Count the transfers that came and went."""
    return session.end.next_incoming_id + session.end.next_outgoing_id


def _is_busy(link: Link) -> bool:
    """Return whether something is under way on a link, or wait for it, or may be coming unseen."""
    end = link.end
    if end is None or end.detached or link.remote is None or end.unsettled:
        return True
    if isinstance(end, OutgoingLink):
        entry = link.context.entry if isinstance(link.context, Away) else None
        return end.queue_count > 0 or (entry is not None and entry.held > 0)
    return False


def _age(properties: dict[Symbol, object]) -> tuple[int, int]:
    return _number(properties[INCARNATION]), _number(properties[NUMBER])


def _number(value: object) -> int:
    assert isinstance(value, int)
    return value
