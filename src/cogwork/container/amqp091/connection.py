"""One connection by AMQP 0-9-1: header, login, limits, heartbeats and its end (§1.4).

Theory of operation. The wire hands over whole frames, `cogwork.amqp091.Connection` makes commands
of them and says what the peer did wrong. What concerns the connection is dealt with here, by a
table of methods; what concerns a channel goes to that channel. Where somebody has to be asked
(whether a password is right, which virtual host there is) it is the host, `BasicPeers`.

Under a memory alarm, and while what it has published waits for room in queues, a client that
publishes is not read; heartbeats go on from this side, and its own are not missed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from cogwork.amqp.errors import AmqpError, Condition
from cogwork.amqp.sasl import OAUTHBEARER, SaslCode, SaslResponse
from cogwork.amqp.types import Symbol
from cogwork.amqp091 import methods as m
from cogwork.amqp091.assembler import Command
from cogwork.amqp091.connection import Connection as ProtocolConnection
from cogwork.amqp091.connection import Failure, Received
from cogwork.amqp091.errors import LocalProtocolError, ProtocolError, ReplyCode
from cogwork.amqp091.frames import DEFAULT_FRAME_MAX, HEARTBEAT, answer_to_header
from cogwork.amqp091.method import Role
from cogwork.amqp091.states import CONNECTION_OVER, ConnectionState
from cogwork.amqp091.tuning import DEFAULT_CHANNEL_MAX
from cogwork.container.amqp091.channel import Channel
from cogwork.container.amqp091.faults import error_of, fault_of
from cogwork.container.amqp091.handlers import dispatch
from cogwork.container.amqp091.login import init_of, mechanisms_offered
from cogwork.container.amqp091.properties import (
    has_capability,
    product_of,
    server_properties,
    text_in,
)
from cogwork.container.amqp091.returns import Returns
from cogwork.dataplane.amqp091.wire import BasicWire
from cogwork.sasl.oauthbearer import DUMMY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cogwork.amqp091.content import Content
    from cogwork.amqp091.method import Method
    from cogwork.amqp091.types import Table
    from cogwork.container.amqp091.host import BasicHost
    from cogwork.container.amqp091.queues import BasicQueues
    from cogwork.container.connections.clients import ClientContext
    from cogwork.dataplane.core import Core
    from cogwork.dataplane.host import Transport
    from cogwork.dataplane.session import SessionEndpoint
    from cogwork.io.pump import SocketPump, StreamPump

__all__ = ("BasicConnection",)

MISSED_HEARTBEATS = 2
"""So many intervals without a frame, and a peer counts as gone (§4.2.7)."""


class BasicConnection:
    """The server's end of one connection.

    Attributes:
        wire: The compiled half.
        host: Whose connection it is.
        transport: What carries the bytes.
        identity: Who the peer proved to be; None for nobody, or before it did.
        authenticated: Whether the peer has logged in.
        context: What the container keeps with it.
        started_s: When it was made, by the core's clock.
        client_properties: What the client says of itself.
        heartbeat_s: How often each end sends something; 0 is never.
        returns: Bounds what is returned to it.
        has_opened: Whether the peer has asked for a virtual host, and was let in.
        is_blocked: Whether the client is to publish nothing for a while.
        has_published: Whether it has ever published.
    """

    protocol = "AMQP 0-9-1"

    def __init__(self, core: Core, host: BasicHost, fd: int = -1) -> None:
        """Begin where the client's header has come.

        Args:
            core: The data plane.
            host: Whose connection it is.
            fd: The socket's file descriptor; -1 where a layer stands between.
        """
        self.wire = BasicWire(core, self, fd)
        self.host = host
        self.returns = Returns(self.wire, host.options.max_returned_messages)
        self.transport: Transport | None = None
        self.identity: str | None = None
        self.authenticated = False
        self.context: object = None
        self.started_s = core.now
        self.client_properties: Table = {}
        self.heartbeat_s = 0
        self.has_opened = False
        self._is_token = False
        self.is_blocked = False
        self.has_published = False
        self._pauses: set[str] = set()
        self._unheard_s = 0.0
        self._protocol = ProtocolConnection(Role.SERVER, host.limits.max_message_size_bytes)
        self._channels: dict[int, Channel] = {}
        self._mechanism = ""
        self._close: m.ConnectionClose | None = None
        self._is_proved = False
        self._is_ended = False

    # -- as those see it who keep connections

    @property
    def client(self) -> ClientContext:
        """What the container keeps with it."""
        return cast("ClientContext", self.context)

    @property
    def queues(self) -> BasicQueues:
        """The queues of its virtual host."""
        return self.host.queues_of(self.client.vhost)

    @property
    def reply_prefix(self) -> str:
        """What the addresses begin with that take replies."""
        return self.host.reply_prefix

    @property
    def is_open(self) -> bool:
        """Whether both sides have opened and neither has closed."""
        return self._protocol.state is ConnectionState.RUNNING and not self._is_ended

    @property
    def is_over(self) -> bool:
        """Whether nothing may be sent any more."""
        return self._is_ended or self._protocol.state in CONNECTION_OVER

    @property
    def container_id(self) -> str:
        """What the client calls this connection, if it does."""
        return text_in(self.client_properties, "connection_name")

    @property
    def product(self) -> str:
        """What program the client says that it is."""
        return product_of(self.client_properties)

    @property
    def peer_idle_timeout_s(self) -> float:
        """For how long the peer bears silence; 0: for ever."""
        return float(self.heartbeat_s)

    @property
    def sessions(self) -> list[SessionEndpoint]:
        """None: these are AMQP 1.0's."""
        return []

    @property
    def channels(self) -> list[Channel]:
        """Those that are open."""
        return list(self._channels.values())

    @property
    def channel_numbers(self) -> Sequence[int]:
        """The numbers of its channels."""
        return sorted(self._channels)

    @property
    def consumer_names(self) -> Sequence[str]:
        """The tags of its consumers."""
        return [tag for each in self._channels.values() for tag in each.consumers]

    @property
    def session_count(self) -> int:
        """Counts its channels."""
        return len(self._channels)

    @property
    def link_count(self) -> int:
        """Counts the consumers of these."""
        return sum(len(each.consumers) for each in self._channels.values())

    @property
    def messages_in(self) -> int:
        """Counts what was published on its channels."""
        return sum(each.end.deliveries for each in self._channels.values())

    @property
    def messages_out(self) -> int:
        """Counts what went to the consumers that stand."""
        return sum(each.delivered for each in self._channels.values())

    @property
    def unsettled(self) -> int:
        """Counts the deliveries that are not acknowledged."""
        return sum(each.unacknowledged for each in self._channels.values())

    # -- sending

    def begin(self, header: bytes) -> None:
        """Answer the client's header: begin the login, or say which header would be right."""
        refusal = answer_to_header(header)
        if refusal:
            self.wire.write(refusal)
            text = f"the client's protocol header {header!r} is not that of AMQP 0-9-1"
            self._end(AmqpError(condition=Condition.CONNECTION_FRAMING_ERROR, description=text))
            return
        mechanisms = mechanisms_offered(self.host.sasl_mechanisms(self))
        properties = server_properties(self.host.options, self.host.container_id)
        self.send(0, m.ConnectionStart(server_properties=properties, mechanisms=mechanisms))

    def send(self, channel: int, method: Method, content: Content | None = None) -> None:
        """Send a command; a client that has closed its connection would not heed it.

        Raises:
            LocalProtocolError: It may not be sent now.
            EncodeError: It does not fit into the peer's frames.
        """
        if channel and self._close is not None:
            return
        out = bytearray()
        self._protocol.send(out, channel, method, content)
        self.wire.write(bytes(out))

    def flush(self) -> None:
        """Send what was written, where that is not done by a batch that ends anyway."""
        self.wire.core.flush()

    # -- what the wire hands over

    def on_frames(self, octets: bytes) -> None:
        """Take in frames that the wire does not deal with itself."""
        for event in self._protocol.receive(octets):
            if self._is_ended:
                return
            if isinstance(event, Failure):
                self.fail(event)
            else:
                self._take(event)

    def _take(self, event: Received) -> None:
        number, (method, content) = event
        try:
            if number:
                self._take_on_channel(number, method, content)
            else:
                _HANDLERS[type(method)](self, method)
        except ProtocolError as error:
            self.fail(Failure(number, error.of_method(method.CLASS_ID, method.METHOD_ID)))
        except Exception as error:  # one connection's fault must stay its own
            self.on_fault(error)

    def _take_on_channel(self, number: int, method: Method, content: Content | None) -> None:
        if isinstance(method, m.ChannelOpen):
            self.host.on_channel(self)
            self._channels[number] = Channel(self, number)
            self.send(number, m.ChannelOpenOk())
            return
        channel = self._channels.get(number)
        if channel is not None and channel.is_waiting:
            channel.put_off(method, content)
        elif channel is not None:
            dispatch(channel, method, content)
        elif isinstance(method, m.ChannelClose):  # it crossed this side's
            self.send(number, m.ChannelCloseOk())

    def count_consumer(self) -> None:
        """Count one more consumer.

        Raises:
            ProtocolError: It is one too many.
        """
        self.host.on_consumer(self)

    def count_no_consumer(self) -> None:
        """Count one less."""
        self.host.on_consumer_ended(self)

    def take_later(self, number: int, method: Method, content: Content | None) -> None:
        """Take a command that had to wait for another one of its channel."""
        self._take(Received(number, Command(method, content)))

    def hold_reading(self, number: int, is_held: bool) -> None:
        """Read nothing while too much waits on a channel, or read again."""
        self._pause(is_held, f"channel {number}")

    def fail_channel(self, number: int, error: ProtocolError) -> None:
        """Close a channel for what is not the answer to a method that has just come."""
        self.fail(Failure(number, error))

    def end_channel(self, number: int) -> None:
        """Give up a channel and what it holds."""
        channel = self._channels.pop(number, None)
        if channel is not None:
            channel.close()
            self.host.on_channel_ended(self)
            self.note_idle()

    def fail(self, failure: Failure) -> None:
        """Close the channel, or the connection, for what the peer did wrong."""
        if self._close is not None:
            self.end_channel(failure.channel)
        if self.is_over:
            return
        is_hard = failure.error.is_hard or not failure.channel
        if not is_hard and self._protocol.is_closed_by_peer(failure.channel):
            self.end_channel(failure.channel)
            self.send(failure.channel, m.ChannelCloseOk())
            return
        if is_hard:
            self._end_channels()
        else:
            self.end_channel(failure.channel)
        out = bytearray()
        try:
            self._protocol.fail(out, failure)
        except LocalProtocolError:
            self._end(error_of(failure.error))
            return
        self.wire.write(bytes(out))

    def on_fault(self, error: BaseException) -> None:
        """Something of ours failed while this connection's bytes were worked on."""
        self.host.on_fault(self, error)
        text = "an internal error; the container's log has it"
        self.fail(Failure(0, ProtocolError(ReplyCode.INTERNAL_ERROR, text)))

    def on_stream_error(self, error: Exception) -> None:
        """What came is not what the layer between speaks; its transport ends."""
        self.host.on_fault(self, error)

    def on_backlog(self, is_large: bool) -> None:
        """Read no more while messages of this connection wait for room in queues, or again."""
        self._pause(is_large, "backlog")

    def on_violation(self, condition: str, description: str) -> None:
        """Close the connection: the wire, or the login, has found something that ends it."""
        self.close(AmqpError(condition=Symbol(condition), description=description))

    def on_lost(self, errno: int) -> None:
        """The transport has ended: with an error number, or 0 for an end of file."""
        if self._protocol.state in CONNECTION_OVER:  # it has read why, and does not answer
            self._end(None, linger=False)
            return
        text = f"connection lost (errno {errno})" if errno else "the client has just gone"
        self._end(AmqpError(condition=Condition.CONNECTION_FORCED, description=text), linger=False)

    # -- the end

    def close(self, error: AmqpError | None = None) -> None:
        """Close from this side; before it has begun, the transport is just ended."""
        self.fail(Failure(0, fault_of(error)))

    def lose(self, error: AmqpError | None = None) -> None:
        """End at once: the transport has gone, or is to go without another word."""
        self._end(error)

    def _end(self, error: AmqpError | None, *, linger: bool = True) -> None:
        if self._is_ended:
            return
        self._is_ended = True
        self._close = None
        self._end_channels()
        self.wire.stop()
        try:
            self.host.on_closed(self, error)
        finally:  # else a socket stays that nobody reads, and that wakes the loop for ever
            if self.transport is not None:
                self.transport.finish(linger=linger)

    def _end_channels(self) -> None:
        for number in list(self._channels):
            self.end_channel(number)

    def _on_close(self, method: m.ConnectionClose) -> None:
        """Close once what was sent before is done: it may be publishes behind a declaration."""
        self._close = method
        self.note_idle()

    def note_idle(self) -> None:
        """Take note that a channel waits no more: a client that has closed is answered then."""
        method = self._close
        if method is None or any(each.is_waiting for each in self._channels.values()):
            return
        self._close = None
        self._end_channels()
        self.send(0, m.ConnectionCloseOk())
        text = f"closed by the client: {method.reply_code} {method.reply_text}"
        is_orderly = method.reply_code in (0, ReplyCode.REPLY_SUCCESS)
        error = AmqpError(condition=Condition.CONNECTION_FORCED, description=text)
        self._end(None if is_orderly else error)

    def _on_close_ok(self, _method: m.ConnectionCloseOk) -> None:
        self._end(None, linger=False)

    # -- time

    def tick(self, now_s: float) -> None:
        """Let time pass: send heartbeats, give up a peer that is silent for too long (§4.2.7)."""
        interval_s = self.heartbeat_s
        if not interval_s or self.is_over:
            return
        if now_s - self.wire.last_sent_s >= interval_s / 2:
            self.wire.write(HEARTBEAT)
        silent_s = now_s - max(self.wire.last_received_s, self._unheard_s)
        if self._pauses:  # it may say what it likes, and nobody hears it
            return
        if silent_s >= MISSED_HEARTBEATS * interval_s and not self._is_heard():
            text = f"missed heartbeats from client, timeout: {interval_s}s"
            self._end(AmqpError(condition=Condition.RESOURCE_LIMIT_EXCEEDED, description=text))

    def _is_heard(self) -> bool:
        """Return whether the peer has spoken after all: this process may have stood still."""
        before_s = self.wire.last_received_s
        if self.transport is not None:
            self.transport.read_rest()
        return self._is_ended or self.wire.last_received_s != before_s

    # -- login

    def _on_start_ok(self, method: m.ConnectionStartOk) -> None:
        self.client_properties = method.client_properties
        self._mechanism = method.mechanism
        offered = self.host.sasl_mechanisms(self)
        init = init_of(method, offered, has_guest=self.host.has_guest())
        self._is_token = init.mechanism == OAUTHBEARER != method.mechanism
        self.host.authenticate(self, init)

    def _on_secure_ok(self, method: m.ConnectionSecureOk) -> None:
        if self._is_proved:
            self._tune()
        else:
            self.host.authenticate(self, SaslResponse(response=method.response))

    def sasl_challenge(self, challenge: bytes) -> None:
        """Ask the client for more."""
        if self.is_over or self.authenticated:
            return
        if self._is_token:  # it is told why by the end of the login
            self.host.authenticate(self, SaslResponse(response=DUMMY))
        else:
            self.send(0, m.ConnectionSecure(challenge=challenge))

    def sasl_done(
        self, code: SaslCode, identity: str | None = None, data: bytes | None = None
    ) -> None:
        """Go on after a login, or refuse it.

        Args:
            code: How it ended.
            identity: Who the peer is.
            data: What proves this side to the client: its last challenge, as there is no other
                place for it.
        """
        if self.is_over or self.authenticated:
            return
        if code is not SaslCode.OK:
            self._refuse_login(is_temporary=code is SaslCode.SYS_TEMP)
            return
        self.identity, self.authenticated = identity, True
        if data is None:
            self._tune()
        else:
            self._is_proved = True
            self.send(0, m.ConnectionSecure(challenge=data))

    def _refuse_login(self, *, is_temporary: bool) -> None:
        """Say that a login is refused; who cannot hear that takes the end for it (RabbitMQ)."""
        if not has_capability(self.client_properties, "authentication_failure_close"):
            self._end(None)
            return
        what = "is not possible now" if is_temporary else "was refused"
        text = f"Login {what} using authentication mechanism {self._mechanism:.40}. For details "
        text += "see the broker logfile."
        self.fail(Failure(0, ProtocolError(ReplyCode.ACCESS_REFUSED, text)))

    def _tune(self) -> None:
        limits = self.host.limits
        tune = m.ConnectionTune(
            channel_max=min(DEFAULT_CHANNEL_MAX, limits.sessions_per_connection),
            frame_max=DEFAULT_FRAME_MAX,
            heartbeat=min(int(limits.idle_timeout_s), 0xFFFF),
        )
        self.send(0, tune)

    def _on_tune_ok(self, method: m.ConnectionTuneOk) -> None:
        assert self._protocol.limits is not None, "a tune-ok sets them"
        self.heartbeat_s = method.heartbeat
        self.wire.max_frame_out = self._protocol.limits.frame_max
        self.wire.allow_frames(self._protocol.limits.frame_max)

    def _on_open(self, method: m.ConnectionOpen) -> None:
        self.host.on_open(self, method.virtual_host)
        self.has_opened = True
        if not self.host.hold(self, self._answer_open):
            self._answer_open()

    def _answer_open(self) -> None:
        self.send(0, m.ConnectionOpenOk())
        if self.is_blocked:
            self._tell_blocked()

    def _on_update_secret(self, method: m.ConnectionUpdateSecret) -> None:
        """Take a new secret: what a password lets a client do does not end with one."""
        if self.client.grant is not None:
            self.host.renew(self, method.new_secret)
        else:
            self.send(0, m.ConnectionUpdateSecretOk())

    def secret_done(self, *, is_taken: bool) -> None:
        """Tell the client whether its new secret was taken; else it is closed (RabbitMQ)."""
        if self.is_over:
            return
        if is_taken:
            self.send(0, m.ConnectionUpdateSecretOk())
        else:
            text = "New secret was refused by one of the backends"
            self.fail(Failure(0, ProtocolError(ReplyCode.NOT_ALLOWED, text)))

    # -- publishers that wait

    def write_together(self) -> None:
        """Have all that is done now survive a crash together, or not at all."""
        self.host.write_together()

    def note_publish(self) -> None:
        """Take note that the client publishes: it waits while memory is short."""
        if not self.has_published:
            self.has_published = True
            self._pause(self.is_blocked, "memory")

    def block(self, is_blocked: bool) -> None:
        """Have the client publish nothing for a while, or go on."""
        self.is_blocked = is_blocked
        if self.is_open:
            self._tell_blocked()
            self._pause(is_blocked and self.has_published, "memory")

    def _pause(self, is_paused: bool, why: str) -> None:
        """Read nothing for a reason, or read again once there is none left."""
        had_any = bool(self._pauses)
        (self._pauses.add if is_paused else self._pauses.discard)(why)
        if self.transport is not None and bool(self._pauses) != had_any:
            cast("SocketPump | StreamPump", self.transport).pause(not had_any)
            self._unheard_s = self.wire.core.now

    def _tell_blocked(self) -> None:
        if not has_capability(self.client_properties, "connection.blocked"):
            return
        told = m.ConnectionBlocked(reason=self.host.why_blocked) if self.is_blocked else None
        self.send(0, told or m.ConnectionUnblocked())


_HANDLERS: dict[type[Method], Callable[[BasicConnection, Method], None]] = cast(
    "dict[type[Method], Callable[[BasicConnection, Method], None]]",
    {
        m.ConnectionStartOk: BasicConnection._on_start_ok,
        m.ConnectionSecureOk: BasicConnection._on_secure_ok,
        m.ConnectionTuneOk: BasicConnection._on_tune_ok,
        m.ConnectionOpen: BasicConnection._on_open,
        m.ConnectionClose: BasicConnection._on_close,
        m.ConnectionCloseOk: BasicConnection._on_close_ok,
        m.ConnectionUpdateSecret: BasicConnection._on_update_secret,
    },
)
"""What a client sends on channel 0; `states` has seen to the order."""
