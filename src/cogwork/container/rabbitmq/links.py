"""The pairs of links at `/management`: requests come by one, and are answered by the other.

Theory of operation. Both links of a pair are attached on one session, under one name, with the
property `paired` (Link Pairing §2). A pair's requests are carried out one after the other, each by
the functions of the methods of AMQP 0-9-1 (`operations`), so that a client sees what it has asked
for before. A request that comes while the client takes no answers is carried out all the same; a
client that goes on without taking any has its links detached.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from cogwork.amqp.errors import AmqpError, Condition
from cogwork.amqp.errors import ProtocolError as AmqpProtocolError
from cogwork.amqp091.methods import QueueDeclare
from cogwork.container.amqp091.declarer import Declarer
from cogwork.container.amqp091.faults import refusal_of
from cogwork.container.amqp091.handlers import begin
from cogwork.container.connections.clients import ClientContext
from cogwork.container.rabbitmq.operations import Operations
from cogwork.container.rabbitmq.requests import (
    Request,
    RequestError,
    Response,
    read_message,
)
from cogwork.container.vhost.paired_links import ADDRESS
from cogwork.dataplane.addresses.entry import CLOSEST_CODE, AddressEntry
from cogwork.dataplane.addresses.port import Port
from cogwork.dataplane.link import Link
from cogwork.dataplane.transport.incoming import IncomingLink
from cogwork.plugin.effects import ACCEPTED
from cogwork.plugin.node import Refused

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from cogwork.amqp.types import Symbol
    from cogwork.amqp091.content import Content
    from cogwork.amqp091.method import Method
    from cogwork.container.amqp091.queues import BasicQueues
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.dataplane.connection import Connection
    from cogwork.plugin.effects import Effect
    from cogwork.plugin.node import Subscription

    Renew = Callable[[Connection, ClientContext, bytes], Awaitable[None]]
    """Has a new token hold in the place of a connection's; raises `RequestError`."""

__all__ = ("ManagementLinks",)

log = logging.getLogger("cogwork")

WAITING_MAX: Final = 100
"""So many requests wait, and so many answers; a client that has more may send no more."""

REQUEST_SIZE_BYTES_MAX: Final = 256 * 1024


class ManagementLinks:
    """Those of all virtual hosts."""

    def __init__(self, queues_of: Callable[[VirtualHost], BasicQueues], renew: Renew) -> None:
        """Initialize it; there are none yet.

        Args:
            queues_of: Returns the queues of a virtual host.
            renew: Has a new token hold.
        """
        self._queues_of = queues_of
        self._renew = renew
        self._nodes: WeakKeyDictionary[VirtualHost, ManagementPairs] = WeakKeyDictionary()

    def node_of(self, vhost: VirtualHost) -> ManagementPairs:
        """Return what the links of a virtual host lead to."""
        node = self._nodes.get(vhost)
        if node is None:
            node = ManagementPairs(vhost, self._queues_of(vhost), self._renew)
            self._nodes[vhost] = node
        return node

    def end_connection(self, connection: Connection, vhost: VirtualHost) -> None:
        """Give up what was a connection's alone."""
        node = self._nodes.get(vhost)
        if node is not None:
            node.end_connection(connection)


class ManagementPairs:
    """The node at `/management` of a virtual host."""

    def __init__(self, vhost: VirtualHost, queues: BasicQueues, renew: Renew) -> None:
        """Initialize it; there is no pair yet."""
        self._queues = queues
        self._renew = renew
        self._core = vhost.core
        self._port = Port(vhost.core, self)
        self._entry = AddressEntry(vhost.core, ADDRESS, CLOSEST_CODE)
        self._entry.add_outlet(self._port)
        self._new: dict[Subscription, LinkPair] = {}
        self._pairs: dict[tuple[object, str], LinkPair] = {}
        self._owners: set[Connection] = set()

    def entry(self, _address: str) -> AddressEntry:
        """Return where requests come in."""
        return self._entry

    def subscribe(self, subscription: Subscription) -> None:
        """Take a link by which requests are answered."""
        answers = AddressEntry(self._core, ADDRESS, CLOSEST_CODE)
        answers.add_outlet(subscription.link)
        pair = LinkPair(answers, self._port, self._queues, self._renew, self._owners)
        subscription.context = self._new[subscription] = pair

    def unsubscribe(self, subscription: Subscription) -> None:
        """Let such a link go."""
        self._new.pop(subscription, None)
        pair = subscription.context
        assert isinstance(pair, LinkPair)
        if pair.key is not None and self._pairs.get(pair.key) is pair:
            del self._pairs[pair.key]
        pair.close()

    def on_batch(self, port: Port) -> None:
        """Take requests in."""
        port.outcomes.clear()
        arrivals, port.arrivals = port.arrivals, []
        for message, token, source, is_settled in arrivals:
            link = source.owner if isinstance(source, IncomingLink) else None
            if source is None or not isinstance(link, Link):
                continue
            if not is_settled:
                source.settle(token, ACCEPTED)
            pair = self._pair_of(link)
            if pair is None:
                text = "a request came before the paired link for its answer was attached"
                _detach(link, Condition.PRECONDITION_FAILED, text)
            else:
                pair.take(link, message)

    def _pair_of(self, link: Link) -> LinkPair | None:
        """Find the pair of a link by which requests come."""
        while self._new:
            subscription, pair = self._new.popitem()
            other = subscription.link.owner
            if isinstance(other, Link):
                pair.key = (other.session, other.name)
                self._pairs[pair.key] = pair
        return self._pairs.get((link.session, link.name))

    def end_connection(self, connection: Connection) -> None:
        """Give up the queues that were a connection's alone."""
        if connection in self._owners:
            self._owners.discard(connection)
            self._queues.end_connection(connection)

    def tick(self, _now_s: float) -> Iterable[Effect]:
        """Let time pass."""
        return ()

    def status(self) -> Mapping[str, object]:
        """Count the pairs."""
        return {"pairs": len(self._pairs) + len(self._new)}

    def close(self) -> None:
        """Take no more."""
        self._entry.close()
        self._port.close()


class LinkPair(Declarer):
    """Two links of a client, which declares what it wants by them.

    Attributes:
        key: The session and the name of both links; None until the first request has come.
    """

    def __init__(
        self,
        answers: AddressEntry,
        port: Port,
        queues: BasicQueues,
        renew: Renew,
        owners: set[Connection],
    ) -> None:
        """Initialize it; no request has come yet.

        Args:
            answers: Leads to the link by which requests are answered.
            port: Sends there.
            queues: Those of the virtual host.
            renew: Has a new token hold.
            owners: Connections that have queues for themselves.
        """
        self.key: tuple[object, str] | None = None
        self._answers = answers
        self._port = port
        self._queues = queues
        self._owners = owners
        self._operations = Operations(self, self._perform, self._renew_token)
        self._renew = renew
        self._link: Link | None = None
        self._waiting: deque[bytes] = deque()
        self._work: asyncio.Task[None] | None = None
        self._window = 0
        self._ok: Method | None = None

    @property
    def _requests(self) -> Link:
        assert self._link is not None, "no request has come yet"
        return self._link

    @property
    def connection(self) -> Connection:
        """Whose it is."""
        return self._requests.session.connection

    @property
    def client(self) -> ClientContext:
        """What the container keeps with the connection."""
        context = self.connection.context
        assert isinstance(context, ClientContext)
        return context

    @property
    def queues(self) -> BasicQueues:
        """The queues of the virtual host."""
        return self._queues

    def reply(self, method: Method, content: Content | None = None) -> None:
        """Take note of the answer to a method."""
        del content
        self._ok = method

    def take(self, link: Link, message: bytes) -> None:
        """Have a request carried out, after those that came before it."""
        self._link = link
        self._waiting.append(message)
        end = link.end
        if len(self._waiting) >= WAITING_MAX and isinstance(end, IncomingLink) and not self._window:
            self._window = end.window
            end.end_credit()
        if self._answers.held >= WAITING_MAX:
            text = f"{WAITING_MAX} answers wait for credit on the paired link"
            _detach(link, Condition.RESOURCE_LIMIT_EXCEEDED, text)
        elif self._work is None:
            self._work = asyncio.get_running_loop().create_task(self._go_on())

    async def _go_on(self) -> None:
        """Carry out what waits."""
        try:
            while self._waiting:
                await self._answer(self._waiting.popleft())
        finally:
            self._work = None
        end = self._requests.end
        if self._window and isinstance(end, IncomingLink):
            end.resume_credit(self._window)
            self._window = 0
            self._requests.session.connection.flush()

    async def _answer(self, octets: bytes) -> None:
        """Carry out a request, and answer it; its connection may have gone meanwhile."""
        try:
            message, body = read_message(octets)
        except AmqpProtocolError as error:
            _detach(self._requests, error.condition, error.description)
            return
        try:
            if len(octets) > REQUEST_SIZE_BYTES_MAX:
                text = (
                    f"a request of {len(octets)} bytes; at most {REQUEST_SIZE_BYTES_MAX} are read"
                )
                raise RequestError(400, text)
            response = await self._operations.answer(Request.of(message, body))
        except RequestError as error:
            log.info("request %.80r %.200r failed: %s", message.subject, message.to, error.text)
            response = Response(error.status, error.text)
        except Exception:
            log.exception("request %.80r %.200r failed", message.subject, message.to)
            response = Response(500, "an internal error; the container's log has it")
        self._answers.send(self._port, 0, response.encoded(message.message_id), settled=True)
        self._answers.core.flush()

    async def _perform(self, method: Method) -> Method | None:
        """Do what a method asks for; return its answer.

        Raises:
            ProtocolError: It cannot be done.
        """
        self._ok = None
        if isinstance(method, QueueDeclare) and method.exclusive:
            self._owners.add(self.connection)
        try:
            work = begin(self, method, None)
            if work is not None:
                await work
        except Refused as refused:
            raise refusal_of(refused) from None
        return self._ok

    async def _renew_token(self, token: bytes) -> None:
        await self._renew(self.connection, self.client, token)

    def close(self) -> None:
        """Carry out nothing more."""
        self._waiting.clear()
        if self._work is not None:
            self._work.cancel()
        self._answers.close()


def _detach(link: Link, condition: Symbol, description: str) -> None:
    if link.is_attached:
        link.detach(AmqpError(condition=condition, description=description))
        link.session.connection.flush()
