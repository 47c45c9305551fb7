"""Every method of AMQP 0-9-1 and of RabbitMQ's extensions to it.

The attributes have RabbitMQ's names. `ticket`, `insist`, `capabilities`, `known_hosts`,
`out_of_band`, `channel_id` and `cluster_id` are reserved: they are kept and have no meaning. Names
of exchanges, queues and the like must be UTF-8; routing keys, tags and texts may be any octets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp091.arguments import (
    BIT,
    LONG,
    LONG_LONG,
    LONG_STRING,
    NAME,
    OCTET,
    SHORT,
    SHORT_STRING,
    TABLE,
    argument,
)
from cogwork.amqp091.method import Method, Role, method

if TYPE_CHECKING:
    from cogwork.amqp091.types import Table

__all__ = (
    "AccessRequest",
    "AccessRequestOk",
    "BasicAck",
    "BasicCancel",
    "BasicCancelOk",
    "BasicConsume",
    "BasicConsumeOk",
    "BasicDeliver",
    "BasicGet",
    "BasicGetEmpty",
    "BasicGetOk",
    "BasicNack",
    "BasicPublish",
    "BasicQos",
    "BasicQosOk",
    "BasicRecover",
    "BasicRecoverAsync",
    "BasicRecoverOk",
    "BasicReject",
    "BasicReturn",
    "ChannelClose",
    "ChannelCloseOk",
    "ChannelFlow",
    "ChannelFlowOk",
    "ChannelOpen",
    "ChannelOpenOk",
    "ConfirmSelect",
    "ConfirmSelectOk",
    "ConnectionBlocked",
    "ConnectionClose",
    "ConnectionCloseOk",
    "ConnectionOpen",
    "ConnectionOpenOk",
    "ConnectionSecure",
    "ConnectionSecureOk",
    "ConnectionStart",
    "ConnectionStartOk",
    "ConnectionTune",
    "ConnectionTuneOk",
    "ConnectionUnblocked",
    "ConnectionUpdateSecret",
    "ConnectionUpdateSecretOk",
    "ExchangeBind",
    "ExchangeBindOk",
    "ExchangeDeclare",
    "ExchangeDeclareOk",
    "ExchangeDelete",
    "ExchangeDeleteOk",
    "ExchangeUnbind",
    "ExchangeUnbindOk",
    "QueueBind",
    "QueueBindOk",
    "QueueDeclare",
    "QueueDeclareOk",
    "QueueDelete",
    "QueueDeleteOk",
    "QueuePurge",
    "QueuePurgeOk",
    "QueueUnbind",
    "QueueUnbindOk",
    "TxCommit",
    "TxCommitOk",
    "TxRollback",
    "TxRollbackOk",
    "TxSelect",
    "TxSelectOk",
)

_CLIENT, _SERVER = Role.CLIENT, Role.SERVER
_EITHER = _CLIENT | _SERVER


# -- Connections (§1.4.2.2)


@method(10, 10, "connection.start", _SERVER)
class ConnectionStart(Method):
    """What the server is, and the SASL mechanisms that it offers."""

    version_major: int = argument(OCTET, default=0)
    version_minor: int = argument(OCTET, default=9)
    server_properties: Table = argument(TABLE, default_factory=dict)
    mechanisms: bytes = argument(LONG_STRING, default=b"PLAIN")
    locales: bytes = argument(LONG_STRING, default=b"en_US")


@method(10, 11, "connection.start-ok", _CLIENT)
class ConnectionStartOk(Method):
    """What the client is, its mechanism and its first response."""

    client_properties: Table = argument(TABLE, default_factory=dict)
    mechanism: str = argument(NAME, default="PLAIN")
    response: bytes = argument(LONG_STRING)
    locale: str = argument(NAME, default="en_US")


@method(10, 20, "connection.secure", _SERVER)
class ConnectionSecure(Method):
    """A challenge of the SASL mechanism."""

    challenge: bytes = argument(LONG_STRING)


@method(10, 21, "connection.secure-ok", _CLIENT)
class ConnectionSecureOk(Method):
    """A response of the SASL mechanism."""

    response: bytes = argument(LONG_STRING)


@method(10, 30, "connection.tune", _SERVER)
class ConnectionTune(Method):
    """The limits that the server offers; 0 is none, `heartbeat` is in seconds."""

    channel_max: int = argument(SHORT, default=0)
    frame_max: int = argument(LONG, default=0)
    heartbeat: int = argument(SHORT, default=0)


@method(10, 31, "connection.tune-ok", _CLIENT)
class ConnectionTuneOk(Method):
    """The limits that hold, no higher than those offered."""

    channel_max: int = argument(SHORT, default=0)
    frame_max: int = argument(LONG, default=0)
    heartbeat: int = argument(SHORT, default=0)


@method(10, 40, "connection.open", _CLIENT)
class ConnectionOpen(Method):
    """Opens a virtual host."""

    virtual_host: str = argument(NAME, default="/")
    capabilities: str = argument(SHORT_STRING, default="")
    insist: bool = argument(BIT, default=False)


@method(10, 41, "connection.open-ok", _SERVER)
class ConnectionOpenOk(Method):
    """The virtual host is open."""

    known_hosts: str = argument(SHORT_STRING, default="")


@method(10, 50, "connection.close", _EITHER)
class ConnectionClose(Method):
    """Closes the connection, and says which method is at fault."""

    reply_code: int = argument(SHORT)
    reply_text: str = argument(SHORT_STRING, default="")
    class_id: int = argument(SHORT, default=0)
    method_id: int = argument(SHORT, default=0)


@method(10, 51, "connection.close-ok", _EITHER)
class ConnectionCloseOk(Method):
    """The last frame of a connection."""


@method(10, 60, "connection.blocked", _SERVER)
class ConnectionBlocked(Method):
    """The server reads no more from connections that publish (RabbitMQ)."""

    reason: str = argument(SHORT_STRING, default="")


@method(10, 61, "connection.unblocked", _SERVER)
class ConnectionUnblocked(Method):
    """The server reads again (RabbitMQ)."""


@method(10, 70, "connection.update-secret", _CLIENT)
class ConnectionUpdateSecret(Method):
    """Replaces a token before it expires (RabbitMQ)."""

    new_secret: bytes = argument(LONG_STRING)
    reason: str = argument(SHORT_STRING, default="")


@method(10, 71, "connection.update-secret-ok", _SERVER)
class ConnectionUpdateSecretOk(Method):
    """The new token is valid (RabbitMQ)."""


# -- Channels (§1.5)


@method(20, 10, "channel.open", _CLIENT)
class ChannelOpen(Method):
    """Opens the channel of its frame."""

    out_of_band: str = argument(SHORT_STRING, default="")


@method(20, 11, "channel.open-ok", _SERVER)
class ChannelOpenOk(Method):
    """The channel is open."""

    channel_id: bytes = argument(LONG_STRING, default=b"")


@method(20, 20, "channel.flow", _EITHER)
class ChannelFlow(Method):
    """Asks the peer to pause or resume sending contents."""

    active: bool = argument(BIT)


@method(20, 21, "channel.flow-ok", _EITHER)
class ChannelFlowOk(Method):
    """The peer has paused or resumed."""

    active: bool = argument(BIT)


@method(20, 40, "channel.close", _EITHER)
class ChannelClose(Method):
    """Closes the channel, and says which method is at fault."""

    reply_code: int = argument(SHORT)
    reply_text: str = argument(SHORT_STRING, default="")
    class_id: int = argument(SHORT, default=0)
    method_id: int = argument(SHORT, default=0)


@method(20, 41, "channel.close-ok", _EITHER)
class ChannelCloseOk(Method):
    """The last frame of a channel, whose number is free again."""


# -- Access tickets: 0-9-1 has none, but some clients still request one (0-8 §3.1.3)


@method(30, 10, "access.request", _CLIENT)
class AccessRequest(Method):
    """Requests an access ticket."""

    realm: str = argument(NAME, default="/data")
    exclusive: bool = argument(BIT, default=False)
    passive: bool = argument(BIT, default=True)
    active: bool = argument(BIT, default=True)
    write: bool = argument(BIT, default=True)
    read: bool = argument(BIT, default=True)


@method(30, 11, "access.request-ok", _SERVER)
class AccessRequestOk(Method):
    """Grants a ticket, which means nothing."""

    ticket: int = argument(SHORT, default=1)


# -- Exchanges (§1.6)


@method(40, 10, "exchange.declare", _CLIENT)
class ExchangeDeclare(Method):
    """Creates an exchange, or checks that it exists if `passive`."""

    ticket: int = argument(SHORT, default=0)
    exchange: str = argument(NAME)
    type: str = argument(NAME, default="direct")
    passive: bool = argument(BIT, default=False)
    durable: bool = argument(BIT, default=False)
    auto_delete: bool = argument(BIT, default=False)
    internal: bool = argument(BIT, default=False)
    nowait: bool = argument(BIT, default=False)
    arguments: Table = argument(TABLE, default_factory=dict)


@method(40, 11, "exchange.declare-ok", _SERVER)
class ExchangeDeclareOk(Method):
    """The exchange exists."""


@method(40, 20, "exchange.delete", _CLIENT)
class ExchangeDelete(Method):
    """Deletes an exchange."""

    ticket: int = argument(SHORT, default=0)
    exchange: str = argument(NAME)
    if_unused: bool = argument(BIT, default=False)
    nowait: bool = argument(BIT, default=False)


@method(40, 21, "exchange.delete-ok", _SERVER)
class ExchangeDeleteOk(Method):
    """The exchange does not exist any more."""


@method(40, 30, "exchange.bind", _CLIENT)
class ExchangeBind(Method):
    """Binds one exchange to another (RabbitMQ)."""

    ticket: int = argument(SHORT, default=0)
    destination: str = argument(NAME)
    source: str = argument(NAME)
    routing_key: str = argument(SHORT_STRING, default="")
    nowait: bool = argument(BIT, default=False)
    arguments: Table = argument(TABLE, default_factory=dict)


@method(40, 31, "exchange.bind-ok", _SERVER)
class ExchangeBindOk(Method):
    """The binding exists (RabbitMQ)."""


@method(40, 40, "exchange.unbind", _CLIENT)
class ExchangeUnbind(Method):
    """Deletes a binding between exchanges (RabbitMQ)."""

    ticket: int = argument(SHORT, default=0)
    destination: str = argument(NAME)
    source: str = argument(NAME)
    routing_key: str = argument(SHORT_STRING, default="")
    nowait: bool = argument(BIT, default=False)
    arguments: Table = argument(TABLE, default_factory=dict)


@method(40, 51, "exchange.unbind-ok", _SERVER)
class ExchangeUnbindOk(Method):
    """The binding does not exist any more; its id is 51, not 41 (RabbitMQ)."""


# -- Queues (§1.7)


@method(50, 10, "queue.declare", _CLIENT)
class QueueDeclare(Method):
    """Creates a queue, or checks that it exists if `passive`."""

    ticket: int = argument(SHORT, default=0)
    queue: str = argument(NAME, default="")
    passive: bool = argument(BIT, default=False)
    durable: bool = argument(BIT, default=False)
    exclusive: bool = argument(BIT, default=False)
    auto_delete: bool = argument(BIT, default=False)
    nowait: bool = argument(BIT, default=False)
    arguments: Table = argument(TABLE, default_factory=dict)


@method(50, 11, "queue.declare-ok", _SERVER)
class QueueDeclareOk(Method):
    """The queue exists; what it holds."""

    queue: str = argument(NAME)
    message_count: int = argument(LONG)
    consumer_count: int = argument(LONG)


@method(50, 20, "queue.bind", _CLIENT)
class QueueBind(Method):
    """Binds a queue to an exchange."""

    ticket: int = argument(SHORT, default=0)
    queue: str = argument(NAME, default="")
    exchange: str = argument(NAME)
    routing_key: str = argument(SHORT_STRING, default="")
    nowait: bool = argument(BIT, default=False)
    arguments: Table = argument(TABLE, default_factory=dict)


@method(50, 21, "queue.bind-ok", _SERVER)
class QueueBindOk(Method):
    """The binding exists."""


@method(50, 30, "queue.purge", _CLIENT)
class QueuePurge(Method):
    """Removes the messages that wait in a queue."""

    ticket: int = argument(SHORT, default=0)
    queue: str = argument(NAME, default="")
    nowait: bool = argument(BIT, default=False)


@method(50, 31, "queue.purge-ok", _SERVER)
class QueuePurgeOk(Method):
    """How many messages were removed."""

    message_count: int = argument(LONG)


@method(50, 40, "queue.delete", _CLIENT)
class QueueDelete(Method):
    """Deletes a queue."""

    ticket: int = argument(SHORT, default=0)
    queue: str = argument(NAME, default="")
    if_unused: bool = argument(BIT, default=False)
    if_empty: bool = argument(BIT, default=False)
    nowait: bool = argument(BIT, default=False)


@method(50, 41, "queue.delete-ok", _SERVER)
class QueueDeleteOk(Method):
    """The queue does not exist any more; how many messages it held."""

    message_count: int = argument(LONG)


@method(50, 50, "queue.unbind", _CLIENT)
class QueueUnbind(Method):
    """Deletes a binding of a queue; there is no `nowait`."""

    ticket: int = argument(SHORT, default=0)
    queue: str = argument(NAME, default="")
    exchange: str = argument(NAME)
    routing_key: str = argument(SHORT_STRING, default="")
    arguments: Table = argument(TABLE, default_factory=dict)


@method(50, 51, "queue.unbind-ok", _SERVER)
class QueueUnbindOk(Method):
    """The binding does not exist any more."""


# -- Messages (§1.8)


@method(60, 10, "basic.qos", _CLIENT)
class BasicQos(Method):
    """Limits how many deliveries may be unacknowledged."""

    prefetch_size: int = argument(LONG, default=0)
    prefetch_count: int = argument(SHORT, default=0)
    global_: bool = argument(BIT, default=False)


@method(60, 11, "basic.qos-ok", _SERVER)
class BasicQosOk(Method):
    """The limit applies from now on."""


@method(60, 20, "basic.consume", _CLIENT)
class BasicConsume(Method):
    """Starts a consumer."""

    ticket: int = argument(SHORT, default=0)
    queue: str = argument(NAME, default="")
    consumer_tag: str = argument(SHORT_STRING, default="")
    no_local: bool = argument(BIT, default=False)
    no_ack: bool = argument(BIT, default=False)
    exclusive: bool = argument(BIT, default=False)
    nowait: bool = argument(BIT, default=False)
    arguments: Table = argument(TABLE, default_factory=dict)


@method(60, 21, "basic.consume-ok", _SERVER)
class BasicConsumeOk(Method):
    """The consumer has started."""

    consumer_tag: str = argument(SHORT_STRING)


@method(60, 30, "basic.cancel", _EITHER)
class BasicCancel(Method):
    """Ends a consumer; a server sends it if the queue is deleted (RabbitMQ)."""

    consumer_tag: str = argument(SHORT_STRING)
    nowait: bool = argument(BIT, default=False)


@method(60, 31, "basic.cancel-ok", _EITHER)
class BasicCancelOk(Method):
    """The consumer has ended."""

    consumer_tag: str = argument(SHORT_STRING)


@method(60, 40, "basic.publish", _CLIENT, has_content=True)
class BasicPublish(Method):
    """Publishes a message."""

    ticket: int = argument(SHORT, default=0)
    exchange: str = argument(NAME, default="")
    routing_key: str = argument(SHORT_STRING, default="")
    mandatory: bool = argument(BIT, default=False)
    immediate: bool = argument(BIT, default=False)


@method(60, 50, "basic.return", _SERVER, has_content=True)
class BasicReturn(Method):
    """Returns a message that was not routed."""

    reply_code: int = argument(SHORT)
    reply_text: str = argument(SHORT_STRING, default="")
    exchange: str = argument(NAME)
    routing_key: str = argument(SHORT_STRING)


@method(60, 60, "basic.deliver", _SERVER, has_content=True)
class BasicDeliver(Method):
    """Delivers a message to a consumer."""

    consumer_tag: str = argument(SHORT_STRING)
    delivery_tag: int = argument(LONG_LONG)
    redelivered: bool = argument(BIT, default=False)
    exchange: str = argument(NAME)
    routing_key: str = argument(SHORT_STRING)


@method(60, 70, "basic.get", _CLIENT)
class BasicGet(Method):
    """Requests one message."""

    ticket: int = argument(SHORT, default=0)
    queue: str = argument(NAME, default="")
    no_ack: bool = argument(BIT, default=False)


@method(60, 71, "basic.get-ok", _SERVER, has_content=True)
class BasicGetOk(Method):
    """Delivers the message; how many are left."""

    delivery_tag: int = argument(LONG_LONG)
    redelivered: bool = argument(BIT, default=False)
    exchange: str = argument(NAME)
    routing_key: str = argument(SHORT_STRING)
    message_count: int = argument(LONG)


@method(60, 72, "basic.get-empty", _SERVER)
class BasicGetEmpty(Method):
    """The queue is empty."""

    cluster_id: str = argument(SHORT_STRING, default="")


@method(60, 80, "basic.ack", _EITHER)
class BasicAck(Method):
    """Acknowledges deliveries; a server confirms what was published (RabbitMQ)."""

    delivery_tag: int = argument(LONG_LONG, default=0)
    multiple: bool = argument(BIT, default=False)


@method(60, 90, "basic.reject", _CLIENT)
class BasicReject(Method):
    """Refuses a delivery."""

    delivery_tag: int = argument(LONG_LONG)
    requeue: bool = argument(BIT, default=True)


@method(60, 100, "basic.recover-async", _CLIENT)
class BasicRecoverAsync(Method):
    """Requests all unacknowledged deliveries again, without an answer."""

    requeue: bool = argument(BIT, default=False)


@method(60, 110, "basic.recover", _CLIENT)
class BasicRecover(Method):
    """Requests all unacknowledged deliveries again."""

    requeue: bool = argument(BIT, default=False)


@method(60, 111, "basic.recover-ok", _SERVER)
class BasicRecoverOk(Method):
    """The deliveries are sent again."""


@method(60, 120, "basic.nack", _EITHER)
class BasicNack(Method):
    """Refuses deliveries; a server refuses what was published (RabbitMQ)."""

    delivery_tag: int = argument(LONG_LONG, default=0)
    multiple: bool = argument(BIT, default=False)
    requeue: bool = argument(BIT, default=True)


# -- Publisher confirms (RabbitMQ)


@method(85, 10, "confirm.select", _CLIENT)
class ConfirmSelect(Method):
    """Makes the server confirm what is published on the channel."""

    nowait: bool = argument(BIT, default=False)


@method(85, 11, "confirm.select-ok", _SERVER)
class ConfirmSelectOk(Method):
    """The mode applies from now on."""


# -- Transactions (§1.9)


@method(90, 10, "tx.select", _CLIENT)
class TxSelect(Method):
    """Makes the channel collect publishes and acknowledgements."""


@method(90, 11, "tx.select-ok", _SERVER)
class TxSelectOk(Method):
    """The mode applies from now on."""


@method(90, 20, "tx.commit", _CLIENT)
class TxCommit(Method):
    """Applies what the channel has collected."""


@method(90, 21, "tx.commit-ok", _SERVER)
class TxCommitOk(Method):
    """What was collected is applied."""


@method(90, 30, "tx.rollback", _CLIENT)
class TxRollback(Method):
    """Discards what the channel has collected."""


@method(90, 31, "tx.rollback-ok", _SERVER)
class TxRollbackOk(Method):
    """What was collected is discarded."""
