"""A whole container in process, with bystanders whose messages must go on whatever others do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hosted import LISTEN, Hosted
from wires import Peer

from cogwork.amqp.outcomes import Accepted
from cogwork.container.overdue import detach_overdue
from cogwork.container.settings import Anonymous, Configuration, Permission, User
from cogwork.sasl import scram
from cogwork.sasl.mechanisms import SCRAM
from fuzz import seeds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wires import Consumer

__all__ = ("Victim",)


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
        super().__init__(
            Configuration(
                id="hosted",
                listeners=[LISTEN],
                users=[user],
                anonymous=Anonymous(permissions=everything),
            )
        )
        scram.make_nonce = lambda: seeds.NONCE  # else no recorded proof would ever be right
        access = self.container._access  # real checks take a tenth of a second
        access._delays = Delays()  # type: ignore[assignment]  # a fake
        access._passwords = Passwords()  # type: ignore[assignment]  # a fake
        self._publisher = Peer(self).greet().publisher("bystander/a")
        self._consumer = Peer(self).greet().consumer("bystander/a", credit=10)
        self._subscriber = Peer(self).greet().consumer("topic/bystander.#", credit=10)
        self._to_topic = self.peers[0].publisher("topic/bystander.x")

    def suffer(self, chunks: Iterable[bytes], *, politely: bool) -> None:
        """Takes in a hostile connection, and loses it."""
        connection = self.connect()
        client = self.container.peers.client_of(connection)
        client.mechanisms = (*SCRAM, *client.mechanisms)
        client.end_point = seeds.END_POINT
        for chunk in chunks:
            connection.wire.feed(chunk)
            connection.wire.take_output(100_000)
            self.core.flush()
        if politely:
            connection.close()
        connection.lose()
        self.core.flush()
        assert not self.container.faults, self.container.faults

    def check_bystanders(self) -> None:
        """Asserts that messages between bystanders arrive and are answered."""
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
        """Asserts that the hostile connections that have gone left nothing behind."""
        detach_overdue(self.core)
        for now_s in (self.core.now + 1e6, self.core.now + 2e6):
            for vhost in self.container.vhosts.values():
                vhost.forget_idle(now_s)
        assert len(self.container.peers.connections) == len(self.peers)
        assert self.core.held_bytes == 0
        assert self.core.held_deliveries == 0
        assert self.core.open_fanouts == 0
        assert len(self.core.wires) == len(self.peers)
        assert self.core.blocked_links() == []


def _take_all(consumer: Consumer) -> None:
    """Takes what strangers have sent, who may publish to bystanders, too, and use their credit."""
    before = -1
    while before != len(consumer.arrivals):
        before = len(consumer.arrivals)
        consumer.flow(10)
        consumer.accept_all()
