"""A whole container in process, with bystanders whose messages must go on whatever others do."""

from __future__ import annotations

import asyncio
from math import inf
from typing import TYPE_CHECKING
from unittest.mock import patch

from hosted import LISTEN, Hosted
from wires import Peer

from cogwork.amqp.outcomes import Accepted
from cogwork.amqp.sasl import OAUTHBEARER
from cogwork.config.settings import Anonymous, Configuration, Group, OAuth, Permission, User
from cogwork.container.connections.slow_peers import detach_overdue
from cogwork.container.mesh.names import DATA
from cogwork.container.security.oauth.jwks import parse_keys
from cogwork.sasl import scram
from cogwork.sasl.mechanisms import SCRAM
from fuzz import seeds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wires import Consumer

    from cogwork.container.mesh.connection import MeshConnection
    from cogwork.dataplane.connection import Connection

__all__ = ("Victim",)

TURNS_MAX = 5
"""Of the event loop, within which a login is checked."""


class Passwords:
    """Knows no password, and is quick to say so."""

    async def check(self, _name: str, _password: str, _source: str) -> bool:
        return False

    def close(self) -> None:
        pass


class Delays:
    """Lets nobody wait: a million wrong passwords are to be looked at."""

    def wait_s(self, _source: str, _name: str, _now_s: float) -> float:
        return 0.0

    def fail(self, _source: str, _name: str, _now_s: float) -> None:
        pass

    def succeed(self, _source: str, _name: str) -> None:
        pass


class Victim(Hosted):
    """A container, its bystanders, and a door for hostile connections."""

    def __init__(self) -> None:
        everything = [Permission(address="#", rights=["send", "receive", "manage"])]
        user = User(name=seeds.USER, scram_verifiers=seeds.VERIFIERS, permissions=everything)
        own = [Permission(address="$user/#", rights=["send", "receive"])]
        rules = OAuth(
            issuer=seeds.ISSUER,
            audience=[seeds.AUDIENCE],
            jwks="never read",
            default_groups=["own"],
        )
        configuration = Configuration(
            id="hosted",
            listeners=[LISTEN],
            users=[user],
            groups=[Group(name="own", permissions=own)],
            oauth=rules,
            anonymous=Anonymous(permissions=everything, mesh=True),
        )
        with patch("time.time", return_value=seeds.HOST_LIFE / 1000):
            super().__init__(configuration)  # neighbours name the life that they have heard
        self.mesh = self.container.mesh
        self.mesh.on_fault = self._on_mesh_fault  # type: ignore[method-assign]  # it watches
        self.mesh.start(())
        self.linked = 0
        self.identities: set[str | None] = set()
        scram.make_nonce = lambda: seeds.NONCE  # else no recorded proof would ever be right
        access = self.container._access  # real checks take a tenth of a second
        access._delays = Delays()  # type: ignore[assignment]  # a fake
        access._passwords = Passwords()  # type: ignore[assignment]  # a fake
        assert access._tokens is not None
        keys = access._tokens._keys
        keys._keys = parse_keys(seeds.JWKS)
        keys._read_s = keys._tried_s = inf  # which is never long ago
        self._publisher = Peer(self).greet().publisher("bystander/a")
        self._consumer = Peer(self).greet().consumer("bystander/a", credit=10)
        self._subscriber = Peer(self).greet().consumer("topic/bystander.#", credit=10)
        self._to_topic = self.peers[0].publisher("topic/bystander.x")

    def _on_mesh_fault(self, connection: MeshConnection, error: BaseException) -> None:
        self._on_fault(connection.connection, error)

    async def suffer(self, chunks: Iterable[bytes], *, politely: bool) -> None:
        """Take in a hostile connection, and lose it.

        One of a mesh comes in pairs: what the other of the two says is always right.
        """
        beside: list[Connection] = []
        connection = self.connect()
        client = self.container.peers.client_of(connection)
        client.mechanisms = (*SCRAM, OAUTHBEARER, *client.mechanisms)
        client.end_point = seeds.END_POINT
        for chunk in chunks:
            if seeds.IS_CONTROL in chunk:
                beside.append(self._say(seeds.mesh_opening(DATA)))
            connection.wire.feed(chunk)
            connection.wire.take_output(100_000)
            self.core.flush()
            if seeds.IS_DATA in chunk:
                beside.append(self._say(seeds.control()))
            await self._logged_in(connection)
        self.identities.add(connection.identity)
        self.linked += self.mesh.is_linked(seeds.NEIGHBOUR)
        if politely:
            connection.close()
        for each in (connection, *beside):
            each.lose()
        self.core.flush()
        self.mesh.incoming_peers._kept_out.clear()  # the next one is another
        assert not self.container.faults, self.container.faults

    def _say(self, chunks: Iterable[bytes]) -> Connection:
        connection = self.connect()
        for chunk in chunks:
            connection.wire.feed(chunk)
            connection.wire.take_output(100_000)
            self.core.flush()
        return connection

    async def _logged_in(self, connection: Connection) -> None:
        """Let a login be checked that waits for a task."""
        for _ in range(TURNS_MAX):
            login = self.container._access._logins.get(connection)
            if login is None or login.task is None:
                return
            await asyncio.sleep(0)

    def check_bystanders(self) -> None:
        """Assert that messages between bystanders arrive and are answered."""
        for publisher, consumer in (
            (self._publisher, self._consumer),
            (self._to_topic, self._subscriber),
        ):
            _take_all(consumer)
            before = len(consumer.arrivals)
            delivery = publisher.send(b"still here")
            publisher.send(b"x" * 3000, pieces=3, settled=True)
            consumer.flow(10)
            consumer.accept_all()
            bodies = [arrival.body for arrival in consumer.arrivals[before:]]
            assert b"still here" in bodies
            assert b"x" * 3000 in bodies
            assert publisher.outcomes[delivery] == Accepted()
            consumer.arrivals.clear()
            publisher.outcomes.clear()
            publisher.sent.clear()
            publisher.answers.clear()
        for peer in self.peers:
            assert not peer.finished
            peer.heard.clear()

    def check_nothing_left(self) -> None:
        """Assert that the hostile connections that have gone left nothing behind."""
        detach_overdue(self.core)
        for now_s in (self.core.now + 1e6, self.core.now + 2e6):
            for vhost in self.container.vhosts.values():
                vhost.forget_idle(now_s)
        assert len(self.container.peers.connections) == len(self.peers)
        assert not self.mesh.peer_links
        assert not self.mesh.incoming_peers._waiting
        assert self.core.held_bytes == 0
        assert self.core.held_deliveries == 0
        assert self.core.open_fanouts == 0
        assert len(self.core.wires) == len(self.peers)
        assert self.core.blocked_links() == []


def _take_all(consumer: Consumer) -> None:
    """Take what strangers have sent, who may publish to bystanders, too, and use their credit."""
    before = -1
    while before != len(consumer.arrivals):
        before = len(consumer.arrivals)
        consumer.flow(10)
        consumer.accept_all()
