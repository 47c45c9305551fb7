"""The host of connections by AMQP 0-9-1: what they ask the container, and tell it.

They stand among all others of the container (`connections.roster`): the same limits, logins and
permissions hold for them.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, cast
from weakref import WeakKeyDictionary

from cogwork.amqp.errors import ProtocolError as RosterError
from cogwork.amqp091.errors import ProtocolError, ReplyCode
from cogwork.amqp091.frames import PROTOCOL_HEADER
from cogwork.container.amqp091.connection import BasicConnection
from cogwork.container.amqp091.faults import shown_vhost
from cogwork.container.amqp091.queues import BasicQueues
from cogwork.container.connections.clients import who_is
from cogwork.container.rabbitmq.requests import RequestError
from cogwork.sasl.sides import LoginBusyError, TokenError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from cogwork.amqp.errors import AmqpError
    from cogwork.amqp.sasl import SaslInit, SaslResponse
    from cogwork.amqp.types import Symbol
    from cogwork.config.amqp091_settings import Amqp091Options
    from cogwork.config.limits import Limits
    from cogwork.container.connections.clients import ClientContext
    from cogwork.container.connections.peers import Peers
    from cogwork.container.security.access import Access
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.dataplane.connection import Connection, Feedable
    from cogwork.dataplane.core import Core
    from cogwork.io.pump import SocketPump, StreamPump

__all__ = ("BasicPeers",)

log = logging.getLogger("cogwork")

IMPATIENT_S = 4
"""Clients with shorter heartbeats are looked at with every tick."""

DEFAULT_VHOST = "/"


class BasicPeers:
    """Owned by the container.

    Attributes:
        options: What clients are told, and whether any are taken.
        reply_prefix: What the addresses begin with that take replies.
        hold: Has a newcomer wait that has connected, if clients wait now; tells whether it does.
        why_blocked: Why clients may publish nothing, as they are told.
        join_records: Has all that is done in this turn survive a crash together, or not at all.
    """

    def __init__(
        self,
        core: Core,
        container_id: str,
        access: Access,
        peers: Peers,
        *,
        vhosts: Mapping[str, VirtualHost],
        options: Amqp091Options,
        reply_prefix: str,
    ) -> None:
        """Take over those that speak AMQP 0-9-1.

        Args:
            core: The data plane.
            container_id: Whose peers they are.
            access: Knows the users.
            peers: Where they stand among others.
            vhosts: Those that are served, by name.
            options: What clients are told, and whether any are taken.
            reply_prefix: What the addresses begin with that take replies.
        """
        self.options = options
        self.reply_prefix = reply_prefix
        self.join_records: Callable[[], None] = _write_nothing
        self._core = core
        self._container_id = container_id
        self._access = access
        self._peers = peers
        self._vhosts = vhosts
        self.why_blocked = ""
        self._is_blocked = False
        self.hold: Callable[[BasicConnection, Callable[[], None]], bool] = _hold_nobody
        self._queues: WeakKeyDictionary[VirtualHost, BasicQueues] = WeakKeyDictionary()
        self._renewals: set[asyncio.Task[None]] = set()
        peers.other_protocol = self.take_over

    @property
    def container_id(self) -> str:
        """The container's."""
        return self._container_id

    @property
    def are_blocked(self) -> bool:
        """Whether all clients publish nothing for now."""
        return self._is_blocked

    @property
    def limits(self) -> Limits:
        """What peers may not exceed."""
        return self._peers.limits

    def _connections(self) -> Iterator[BasicConnection]:
        found = list(self._peers.connections)
        return (each for each in found if isinstance(each, BasicConnection))

    def take_over(self, connection: Connection, header: bytes) -> Feedable | None:
        """Take a connection over whose client speaks AMQP 0-9-1, or an earlier version of it.

        Returns:
            What its bytes go to from now on; None where it is none of these.
        """
        client = self._peers.client_of(connection)
        is_web = client.listen.scheme in ("ws", "wss")
        if not self.options.enabled or is_web or not _is_before_1_0(header):
            return None
        heir = BasicConnection(self._core, self, connection.wire.fd)
        heir.wire.source = connection.wire.source
        self._peers.replace(connection, heir)
        cast("SocketPump | StreamPump", connection.transport).hand_over(heir)
        heir.is_blocked = self._is_blocked
        heir.begin(header)
        return heir.wire

    # -- what connections ask, and tell

    def has_guest(self) -> bool:
        """Return whether a user is called `guest`."""
        return self._access.has("guest")

    def sasl_mechanisms(self, connection: BasicConnection) -> tuple[Symbol, ...]:
        """List what the connection's listener offers, as far as it can work for this peer."""
        return self._peers.sasl_mechanisms(connection)

    def authenticate(self, connection: BasicConnection, frame: SaslInit | SaslResponse) -> None:
        """Have the login checked.

        Raises:
            ProtocolError: Its response is malformed.
        """
        try:
            self._peers.authenticate(connection, frame)
        except RosterError as error:
            raise ProtocolError(ReplyCode.SYNTAX_ERROR, error.description) from None

    def renew(self, connection: BasicConnection, secret: bytes) -> None:
        """Have a new token checked that is to hold in the place of a connection's first one."""
        task = asyncio.get_running_loop().create_task(self._renew(connection, secret))
        self._renewals.add(task)
        task.add_done_callback(self._renewals.discard)

    async def _renew(self, connection: BasicConnection, secret: bytes) -> None:
        try:
            await self._access.renew(connection, connection.client, secret.decode())
        except (UnicodeDecodeError, LoginBusyError, TokenError) as error:
            log.warning("refused a new secret of user %.80r: %s", connection.identity, error)
            connection.secret_done(is_taken=False)
        else:
            self._peers.permit(connection, connection.client)
            for channel in connection.channels:
                channel.permit_anew()
            connection.secret_done(is_taken=True)
        connection.flush()

    def on_open(self, connection: BasicConnection, vhost: str) -> None:
        """Let a client into a virtual host.

        Raises:
            ProtocolError: It may not go there (530).
        """
        try:
            self._enter(connection, vhost)
        except ProtocolError as error:
            who = who_is(connection)
            self._access.security.event("open_refused", **who, reason=error.explanation)
            raise

    def _enter(self, connection: BasicConnection, name: str) -> None:
        client = connection.client
        vhost = self._vhosts.get("" if name == DEFAULT_VHOST else name)
        if vhost is None:
            raise ProtocolError(ReplyCode.NOT_ALLOWED, f"vhost {name:.200} not found")
        client.vhost = vhost
        self._peers.permit(connection, client)
        refused = f"access to vhost '{shown_vhost(vhost.name)}' refused for user "
        refused += f"'{connection.identity or 'guest'}'"
        if client.permissions.are_none:
            raise ProtocolError(ReplyCode.NOT_ALLOWED, refused)
        try:
            self._peers.demand_room(connection, client)
        except RosterError as error:
            explanation = f"{refused}: {error.description}"
            raise ProtocolError(ReplyCode.NOT_ALLOWED, explanation) from None
        is_impatient = 0 < connection.heartbeat_s < IMPATIENT_S
        self._peers.note_open(connection, client, is_client=True, is_impatient=is_impatient)

    def write_together(self) -> None:
        """Have all that is done in this turn survive a crash together, or not at all."""
        self.join_records()

    def queues_of(self, vhost: VirtualHost) -> BasicQueues:
        """Return the queues of a virtual host."""
        found = self._queues.get(vhost)
        if found is None:
            found = self._queues[vhost] = BasicQueues(vhost)
            vhost.exchanges.on_replaced = self._ask_anew
        return found

    async def renew_token(
        self, connection: Connection, client: ClientContext, token: bytes
    ) -> None:
        """Have a new token hold in the place of the one that a client of AMQP 1.0 logged in by.

        Raises:
            RequestError: It does not (400).
        """
        try:
            await self._access.renew(connection, client, token.decode())
        except (UnicodeDecodeError, LoginBusyError, TokenError) as error:
            raise RequestError(400, f"the token is not taken: {error}") from None
        self._peers.permit(connection, client)
        self._peers.permit_links_anew(connection, client)

    def _ask_anew(self) -> None:
        """Ask anew what clients may publish: a queue's name stands for another address now."""
        for connection in self._connections():
            for channel in connection.channels:
                channel.end.forget_allowed()

    def on_channel(self, connection: BasicConnection) -> None:
        """Count one more channel.

        Raises:
            ProtocolError: It is one too many.
        """
        shares = connection.client.shares
        excess = self._peers.sessions.excess(shares)
        if excess is not None:
            raise ProtocolError(ReplyCode.NOT_ALLOWED, f"cannot open the channel: {excess}")
        self._peers.sessions.take(shares)
        connection.client.sessions += 1

    def on_channel_ended(self, connection: BasicConnection) -> None:
        """Count one less."""
        client = connection.client
        if client.sessions:
            client.sessions -= 1
            self._peers.sessions.give_back(client.shares)

    def on_consumer(self, connection: BasicConnection) -> None:
        """Count one more consumer.

        Raises:
            ProtocolError: It is one too many.
        """
        shares = connection.client.shares
        excess = self._peers.links.excess(shares)
        if excess is not None:
            raise ProtocolError(ReplyCode.PRECONDITION_FAILED, f"cannot consume: {excess}")
        self._peers.links.take(shares)

    def on_consumer_ended(self, connection: BasicConnection) -> None:
        """Count one less."""
        self._peers.links.give_back(connection.client.shares)

    def on_closed(self, connection: BasicConnection, error: AmqpError | None) -> None:
        """Forget the connection."""
        self.queues_of(connection.client.vhost).end_connection(connection)
        self._peers.end(connection, connection.client, error)

    def on_fault(self, connection: BasicConnection, error: BaseException) -> None:
        """Log what went wrong with one connection."""
        self._peers.on_fault(connection, error)

    # -- what the container says

    def tick(self, now_s: float) -> None:
        """Let time pass for queues that expire."""
        for vhost in self._vhosts.values():
            self.queues_of(vhost).tick(now_s)

    def block(self, are_blocked: bool, why: str) -> None:
        """Have clients publish nothing for a while, or again, and tell them why."""
        self._is_blocked, self.why_blocked = are_blocked, why
        for connection in self._connections():
            connection.block(are_blocked or connection.client.is_held)

    def permit_anew(self) -> None:
        """End what permissions do not allow any more."""
        for connection in self._connections():
            for channel in connection.channels:
                channel.permit_anew()


def _write_nothing() -> None:
    """There is no disk yet."""


def _is_before_1_0(header: bytes) -> bool:
    """Return whether a protocol header is that of AMQP 0-9-1, or of an earlier version.

    0-8 and 0-9 begin with 1, 1; 0-9-1 with 0, 0 and its version. AMQP 1.0 has 1 as its second octet
    behind a protocol id of 0, 2 or 3.
    """
    if header == PROTOCOL_HEADER:
        return True
    return header[:4] == b"AMQP" and (header[4] == 1 or (header[4] == 0 and header[5] == 0))


def _hold_nobody(_connection: BasicConnection, _go_on: Callable[[], None]) -> bool:
    return False
