"""A container in process that suffers hostile clients of AMQP 0-9-1, and what these say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from hosted import Unused

from cogwork.amqp.sasl import ANONYMOUS, PLAIN
from cogwork.amqp091 import methods as m
from cogwork.amqp091.content import BasicProperties, Content, write_command
from cogwork.amqp091.frames import PROTOCOL_HEADER, FrameType, write_frame
from cogwork.config.settings import Listen
from fuzz.victim import Victim

if TYPE_CHECKING:
    import random
    import socket
    from collections.abc import Iterable

    from cogwork.amqp091.method import Method
    from cogwork.container.amqp091.connection import BasicConnection

__all__ = ("BasicMutator", "BasicVictim")

LISTEN = Listen(port=0, transport="amqps", sasl=["ANONYMOUS", "PLAIN"])
"""Not a plain socket: its bytes come by `feed`."""

FRAME_MAX = 4096
NAMES = ("", "a", "b", "amq.fanout", "amq.topic", "bystander/a", "n" * 255, "/", "ü")
KEYS = ("", "a", "a.b", "#", "*.b", "k" * 255, "\udcff")
TABLES: tuple[dict[str, object], ...] = (
    {},
    {"x-max-length": 1, "x-overflow": "reject-publish"},
    {"x-message-ttl": 1, "x-dead-letter-exchange": "amq.fanout"},
    {"x-max-priority": 5, "deep": {"a": [1, {"b": [None, True, 2.5]}]}},
    {"CC": ["a", "b"], "BCC": ["a"], "x-match": "any", "a": 1},
)


class Bare:
    """Stands where a pump would; the connection that takes over is what is fed from then on."""

    def __init__(self) -> None:
        self.heir: BasicConnection | None = None

    def hand_over(self, heir: BasicConnection) -> None:
        self.heir = heir
        heir.transport = cast("Any", self)

    def prefer(self) -> None:
        pass

    def pause(self, is_paused: bool) -> None:
        pass

    def read_rest(self) -> None:
        pass

    def finish(self, *, linger: bool) -> None:
        pass


class BasicVictim(Victim):
    """A container, its bystanders, and a way in for hostile clients of AMQP 0-9-1."""

    reached = 0

    async def suffer_basic(self, chunks: Iterable[bytes]) -> None:
        """Take in a hostile connection, and lose it."""
        sock = cast("socket.socket", Unused())
        accepted = self.container.peers.accept(LISTEN, (ANONYMOUS, PLAIN), sock)
        assert accepted is not None
        connection, transport = accepted[0], Bare()
        connection.transport = cast("Any", transport)
        for chunk in chunks:
            wire = connection.wire if transport.heir is None else transport.heir.wire
            wire.feed(chunk)
            wire.take_output(100_000)
            self.core.flush()
        heir = transport.heir
        if heir is None:
            connection.lose()
        else:
            self.reached += bool(heir.channels)
            heir.on_lost(0)
        self.core.flush()
        assert not self.container.faults, self.container.faults


class BasicMutator:
    """Makes conversations, most of which get far; the same seed gives the same octets."""

    def __init__(self, chance: random.Random) -> None:
        self.random = chance

    def conversation(self) -> list[bytes]:
        """Return what a client says, in pieces."""
        chance = self.random
        out = bytearray(PROTOCOL_HEADER)
        for channel, method in (
            (
                0,
                m.ConnectionStartOk(
                    client_properties={},
                    mechanism="PLAIN",
                    response=b"\0guest\0guest",
                    locale="en_US",
                ),
            ),
            (0, m.ConnectionTuneOk(channel_max=10, frame_max=FRAME_MAX, heartbeat=0)),
            (0, m.ConnectionOpen(virtual_host="/")),
            (1, m.ChannelOpen()),
            (2, m.ChannelOpen()),
        ):
            write_command(out, channel, method, None, FRAME_MAX)
        start = len(out) if chance.random() < 0.8 else 0
        for _ in range(chance.randrange(1, 25)):
            self._say(out)
        self._spoil(out, start)
        return self._pieces(bytes(out))

    def _say(self, out: bytearray) -> None:
        chance = self.random
        channel = chance.choice((1, 1, 2)) if chance.random() < 0.98 else chance.choice((0, 3))
        if chance.random() < 0.02:
            kind = chance.choice((*FrameType, 0, 9))
            write_frame(out, kind, channel, chance.randbytes(chance.randrange(30)))
            return
        method = self._method()
        content = self._content() if method.HAS_CONTENT else None
        write_command(out, channel, method, content, FRAME_MAX)

    def _content(self) -> Content:
        chance = self.random
        properties = BasicProperties(
            headers=chance.choice((None, *TABLES)),
            delivery_mode=chance.choice((None, 1, 2)),
            priority=chance.choice((None, 0, 9, 255)),
            expiration=chance.choice((None, "0", "1000", "soon")),
            reply_to=chance.choice((None, "amq.rabbitmq.reply-to", "a")),
            user_id=chance.choice((None, None, None, "guest", "other")),
            type=chance.choice((None, "amqp-1.0")),
        )
        return Content.of(properties, chance.randbytes(chance.choice((0, 1, 100, 9000))))

    def _method(self) -> Method:
        chance = self.random
        name, other, key = chance.choice(NAMES), chance.choice(NAMES), chance.choice(KEYS)
        table, yes = chance.choice(TABLES), chance.random() < 0.5
        tag = chance.randrange(5)
        kind = chance.choice(("direct", "fanout", "topic", "headers", "none"))
        publish = m.BasicPublish(exchange=name, routing_key=key, mandatory=chance.random() < 0.2)
        return chance.choice(
            (
                publish,
                publish,
                publish,
                m.QueueDeclare(queue=name, exclusive=yes, auto_delete=True, arguments=table),
                m.QueueBind(queue=name, exchange=other, routing_key=key, arguments=table),
                m.QueueUnbind(queue=name, exchange=other, routing_key=key, arguments=table),
                m.QueuePurge(queue=name),
                m.QueueDelete(queue=name, if_unused=yes),
                m.ExchangeDeclare(exchange=name, type=kind, auto_delete=yes, arguments=table),
                m.ExchangeBind(destination=name, source=other, routing_key=key, arguments=table),
                m.ExchangeDelete(exchange=name, if_unused=yes),
                m.BasicConsume(queue=name, consumer_tag=key, no_ack=yes, arguments=table),
                m.BasicCancel(consumer_tag=key),
                m.BasicGet(queue=name, no_ack=yes),
                m.BasicAck(delivery_tag=tag, multiple=yes),
                m.BasicNack(delivery_tag=tag, multiple=yes, requeue=chance.random() < 0.5),
                m.BasicReject(delivery_tag=tag, requeue=yes),
                m.BasicRecover(requeue=yes),
                m.BasicQos(prefetch_count=tag, global_=yes),
                m.ConfirmSelect(),
                m.TxSelect(),
                m.TxCommit(),
                m.TxRollback(),
                m.ChannelFlow(active=yes),
                m.ChannelClose(reply_code=200, reply_text="", class_id=0, method_id=0),
                publish if chance.random() < 0.8 else m.ChannelOpen(),
                publish if chance.random() < 0.8 else m.ChannelCloseOk(),
            )
        )

    def _spoil(self, out: bytearray, start: int) -> None:
        chance = self.random
        for _ in range(chance.choice((0, 0, 1, 3))):
            at = chance.randrange(start, max(len(out), start + 1))
            match chance.randrange(3):
                case 0:
                    out[at : at + 1] = chance.randbytes(1)
                case 1:
                    del out[at : at + chance.randrange(1, 9)]
                case _:
                    out[at:at] = chance.randbytes(chance.randrange(1, 5))

    def _pieces(self, octets: bytes) -> list[bytes]:
        found = []
        while octets:
            size = self.random.choice((1, 7, 30, 1000, 100_000))
            found.append(octets[:size])
            octets = octets[size:]
        return found
