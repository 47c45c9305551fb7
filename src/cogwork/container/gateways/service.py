"""The gateways of a container: which there are, their life, what they tell of themselves."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from functools import partial
from typing import TYPE_CHECKING, cast

from cogwork.amqp.sasl import ANONYMOUS
from cogwork.container.gateways.door import GatewayDoor
from cogwork.container.gateways.inside import Inside
from cogwork.container.gateways.pipe import MemoryPipe
from cogwork.plugin.gateway import GatewayContext, GatewayError
from cogwork.plugins import PluginError, load, names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from cogwork.config.settings import User
    from cogwork.container.connections.clients import ClientContext
    from cogwork.container.connections.peers import Peers
    from cogwork.container.mesh.readiness import Readiness
    from cogwork.container.security.access import Access
    from cogwork.dataplane.connection import Connection
    from cogwork.plugin.door import Door, Sender
    from cogwork.plugin.gateway import Gateway, GatewayFactory

__all__ = ("Gateways",)

GROUP = "cogwork.gateways"

log = logging.getLogger("cogwork")


class Gateways:
    """Makes, starts, ticks and stops them. Owned by the container."""

    def __init__(
        self,
        container_id: str,
        peers: Peers,
        access: Access,
        options: Mapping[str, Mapping[str, object]],
    ) -> None:
        """Make the gateways; none listens yet.

        Args:
            container_id: Whose they are.
            peers: Get their connections.
            access: Knows the users.
            options: Of each gateway, by its name.

        Raises:
            GatewayError: There is none of a name, it cannot be loaded, or an option is wrong.
        """
        self._peers = peers
        self._doors: list[GatewayDoor] = []
        self._inner: dict[GatewayDoor, Connection] = {}
        self._readiness: Readiness | None = None
        self._ticked_s = 0.0
        self._security = access.security
        self._container_id = container_id
        self._gateways = self._made(options, access.is_user, has_users=access.has_users)

    def _made(
        self,
        options: Mapping[str, Mapping[str, object]],
        is_user: Callable[[str], bool],
        *,
        has_users: bool,
    ) -> dict[str, Gateway]:
        return {
            name: _factory_of(name)(
                GatewayContext(
                    name=name,
                    options=values,
                    container_id=self._container_id,
                    now_s=time.monotonic,
                    token=os.urandom,
                    warn=partial(log.warning, "gateway %s: %s", name),
                    note_refusal=partial(self._note_refusal, name),
                    open_door=partial(self._open_door, name),
                    is_user=is_user,
                    has_users=has_users,
                )
            )
            for name, values in options.items()
        }

    def _note_refusal(self, name: str, peer: str, reason: str) -> None:
        """Have the security log tell of a client that a gateway does not let in."""
        listener = f"gateway {name}"
        self._security.event("connection_refused", peer=peer, listener=listener, reason=reason)

    def check(self, options: Mapping[str, Mapping[str, object]], users: Iterable[User]) -> None:
        """Check another configuration, of gateways that are not to start.

        Args:
            options: Of each gateway, by its name.
            users: Those who are there then.

        Raises:
            GatewayError: The container would refuse to start with it.
        """
        known = {user.name for user in users}
        self._made(options, known.__contains__, has_users=bool(known))

    def reload(self) -> list[str]:
        """Have each read its files again; return what is wrong with those of some."""
        problems = []
        for name, gateway in self._gateways.items():
            try:
                gateway.reload()
            except GatewayError as error:
                problems.append(f"gateway {name}: {error}")
        return problems

    def start(self, readiness: Readiness) -> None:
        """Have all of them listen.

        Args:
            readiness: Tells when it is known what other containers want.

        Raises:
            GatewayListenError: One cannot listen; those before it have stopped again.
        """
        self._readiness = readiness
        loop = asyncio.get_running_loop()
        for gateway in self._gateways.values():
            try:
                gateway.start(loop)
            except BaseException:
                self.close()
                raise

    def _open_door(self, name: str, sender: Sender, user: str | None) -> Door:
        door = GatewayDoor(name, sender, self._is_served)
        self._doors = [each for each in self._doors if not each.is_closed]
        self._inner = {each: inner for each, inner in self._inner.items() if not each.is_closed}
        self._doors.append(door)
        assert self._readiness is not None
        join = partial(self._join, name, door, user)
        if self._readiness.is_reached:
            join()
        else:
            self._readiness.when_reached(join)
        return door

    def _join(self, name: str, door: GatewayDoor, user: str | None) -> None:
        """Join a door with an end of the container's own."""
        inner = self._peers.join(Inside(name), (ANONYMOUS,), user)
        self._inner[door] = inner
        pipe = MemoryPipe(inner, door.connection, asyncio.get_running_loop().call_soon)
        door.start(pipe)

    def _is_served(self, door: GatewayDoor, address: str) -> bool:
        inner = self._inner.get(door)
        if inner is None or inner.is_over:
            return False
        return cast("ClientContext", inner.context).vhost.is_served(address)

    def tick(self, now_s: float) -> None:
        """Let time pass."""
        for name, gateway in self._gateways.items():
            try:
                gateway.tick(now_s)
            except Exception as error:  # a plug-in's fault must not stop the container's clock
                log.error("gateway %s: %s", name, error, exc_info=error)
        if now_s - self._ticked_s >= 1.0:
            self._ticked_s = now_s
            for door in self._doors:
                door.tick(now_s)

    def drain(self) -> None:
        """Have them take on nothing new."""
        for gateway in self._gateways.values():
            gateway.drain()

    @property
    def are_drained(self) -> bool:
        """Whether nothing is under way in any of them."""
        return all(gateway.is_drained for gateway in self._gateways.values())

    def close(self) -> None:
        """End all of them."""
        for gateway in self._gateways.values():
            gateway.close()
        for door in self._doors:
            door.close()
        self._doors.clear()
        self._inner.clear()

    @property
    def endpoints(self) -> dict[str, list[str]]:
        """Where each listens, by its name."""
        return {name: gateway.endpoints for name, gateway in self._gateways.items()}

    def status(self) -> dict[str, Mapping[str, object]]:
        """Return what each tells of itself, by its name."""
        return dict(self._statuses())

    def _statuses(self) -> Iterator[tuple[str, Mapping[str, object]]]:
        for name, gateway in self._gateways.items():
            yield name, {"endpoints": gateway.endpoints, **gateway.status()}


def _factory_of(name: str) -> GatewayFactory:
    try:
        factory = load(GROUP, name, "gateway")
    except PluginError as error:
        raise GatewayError(str(error)) from error
    if factory is None:
        known = ", ".join(names(GROUP)) or "none"
        raise GatewayError(f"gateway {name!r}: there is none of this name; installed: {known}")
    return cast("GatewayFactory", factory)
