"""Two ends of one connection, both of this code: a client and a broker, fed to each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wires import Broker

from cogwork.amqp.performatives import Open, Role
from cogwork.amqp.sasl import ANONYMOUS, PLAIN, SaslCode, SaslInit, SaslResponse
from cogwork.amqp.terminus import Source, Target
from cogwork.dataplane.addresses.entry import CLOSEST_CODE, AddressEntry
from cogwork.dataplane.addresses.port import Port
from cogwork.dataplane.connection import Connection
from cogwork.dataplane.connection_settings import ConnectionSettings
from cogwork.dataplane.transport.incoming import IncomingLink
from cogwork.dataplane.transport.outgoing import OutgoingLink

if TYPE_CHECKING:
    from cogwork.amqp.errors import AmqpError
    from cogwork.amqp.types import Symbol
    from cogwork.dataplane.link import Link
    from cogwork.dataplane.session import SessionEndpoint


class Client(Broker):
    """The client's host: it attaches links, and gathers what arrives."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[Open] = []
        self.attached: list[Link] = []
        self.detached: list[tuple[str, AmqpError | None, bool]] = []
        self.ended: list[AmqpError | None] = []
        self.outcomes: list[tuple[int, int]] = []
        self.mechanism = ANONYMOUS
        self.inbox = Port(self.core, self)

    def on_batch(self, port: Port) -> None:
        self.outcomes += [(token, code) for token, code, _, _ in port.outcomes]
        super().on_batch(port)

    def sasl_init(self, connection: Connection, offered: tuple[Symbol, ...]) -> SaslInit:
        assert self.mechanism in offered
        return SaslInit(mechanism=self.mechanism)

    def on_open(self, connection: Connection, opened: Open) -> None:
        self.opened.append(opened)

    def on_attached(self, link: Link) -> None:
        self.attached.append(link)

    def on_detached(self, link: Link, error: AmqpError | None, *, closed: bool) -> None:
        self.detached.append((link.name, error, closed))

    def on_session_ended(self, session: SessionEndpoint, error: AmqpError | None) -> None:
        self.ended.append(error)

    def sender(self, session: SessionEndpoint, address: str) -> Link:
        link = session.open_link(f"to-{address}", Role.SENDER)
        link.attach(source=Source(), target=Target(address=address))
        end = OutgoingLink(session.end, link.handle)
        end.feeder = self.inbox
        link.carry(end)
        return link

    def receiver(self, session: SessionEndpoint, address: str, credit: int) -> Link:
        link = session.open_link(f"from-{address}", Role.RECEIVER)
        link.attach(source=Source(address=address), target=Target())
        entry = AddressEntry(self.core, address, CLOSEST_CODE)
        entry.add_outlet(self.node)
        end = IncomingLink(session.end, link.handle, entry)
        link.carry(end)
        end.grant(credit)
        return link


class Server(Broker):
    """A broker that asks for SASL."""

    def __init__(self) -> None:
        super().__init__()
        self.mechanisms = (ANONYMOUS, PLAIN)
        self.asked: list[SaslInit | SaslResponse] = []
        self.lets_anyone_in = True

    def sasl_mechanisms(self, connection: Connection) -> tuple[Symbol, ...]:
        return self.mechanisms

    def may_skip_sasl(self, connection: Connection) -> bool:
        return self.lets_anyone_in

    def authenticate(self, connection: Connection, frame: SaslInit | SaslResponse) -> None:
        self.asked.append(frame)
        if isinstance(frame, SaslInit) and frame.mechanism == ANONYMOUS:
            connection.sasl_done(SaslCode.OK)


class Ends:
    """Both ends, and what carries bytes between them."""

    def __init__(
        self, *, with_sasl: bool = True, mechanism: Symbol = ANONYMOUS, **settings: Any
    ) -> None:
        self.client, self.server = Client(), Server()
        self.client.mechanism = mechanism
        self.near = Connection(self.client.core, self.client, ConnectionSettings())
        self.far = Connection(self.server.core, self.server, ConnectionSettings(**settings))
        self.finished: list[Connection] = []
        for connection in (self.near, self.far):
            connection.transport = Transport(self.finished, connection)
        self.near.start(Open(container_id="client", idle_time_out=2000), with_sasl=with_sasl)
        self.run()

    def run(self) -> None:
        """Carry bytes both ways until nobody has more to say."""
        self.near.flush()
        self.far.flush()
        while self.near.wire.unsent_bytes or self.far.wire.unsent_bytes:
            self.far.wire.feed(self.near.wire.take_output())
            self.near.wire.feed(self.far.wire.take_output())
        assert not self.client.faults
        assert not self.server.faults


class Transport:
    def __init__(self, finished: list[Connection], connection: Connection) -> None:
        self._finished = finished
        self._connection = connection

    def prefer(self) -> None:
        pass

    def read_rest(self) -> None:
        pass

    def finish(self, *, linger: bool) -> None:
        self._finished.append(self._connection)
