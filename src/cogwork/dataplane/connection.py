"""A connection as Python sees it: headers, SASL, open and close, sessions (AMQP 1.0 §2.4, §5.3).

Theory of operation. The wire gives a connection everything that is not hot: protocol headers, SASL
frames, and the performatives from open to close. The connection follows the state tables, keeps
its sessions, and asks its `Host`, the container or the client, what to do. Both roles are here: a
server answers headers and opens, a client starts with them.

The peer's faults arrive as `ProtocolError`, or from the wire as violations; either ends what its
scope says: the link, the session or the connection. A fault of our own closes the connection with
`amqp:internal-error` and leaves all others alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from cogwork.amqp.errors import AmqpError, Condition, ProtocolError, Scope
from cogwork.amqp.extensions import ESTABLISHMENT_FAILED
from cogwork.amqp.frames import AMQP_HEADER, SASL_HEADER, TLS_HEADER
from cogwork.amqp.performatives import (
    Begin,
    Close,
    Open,
    Performative,
    Role,
    decode_performative,
)
from cogwork.amqp.sasl import (
    SaslChallenge,
    SaslCode,
    SaslFrame,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
    decode_sasl,
    refusal_of,
)
from cogwork.amqp.states import CONNECTION_OVER, ConnectionState, Event, connection_step
from cogwork.amqp.types import Symbol
from cogwork.dataplane.encoding.composites import decode, encode
from cogwork.dataplane.fitting import fitting
from cogwork.dataplane.link import Ending
from cogwork.dataplane.sessions import Sessions
from cogwork.dataplane.transport.wire import Wire

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cogwork.dataplane.connection_settings import ConnectionSettings
    from cogwork.dataplane.core import Core
    from cogwork.dataplane.host import Host, Transport
    from cogwork.dataplane.session import SessionEndpoint
    from cogwork.dataplane.transport.incoming import IncomingLink
    from cogwork.dataplane.transport.outgoing import OutgoingLink
    from cogwork.dataplane.transport.relayed import RelayedSession
    from cogwork.dataplane.transport.session_end import Session

__all__ = ("Connection", "Feedable")

_SASL = 1

PRODUCT_MAX = 80
"""Characters that are shown of what a peer says that it is."""

_CLOSE = encode(Close())
_OUTCOMES = {code: encode(SaslOutcome(code=code)) for code in SaslCode}


class Feedable(Protocol):
    """Takes bytes in: a wire."""

    def feed(self, data: bytes) -> None:
        """Take in bytes, and end the batch."""


class Connection:
    """One end of a connection.

    Attributes:
        wire: The compiled half.
        host: Whose connection it is.
        settings: What this side announces.
        transport: What carries the bytes; set before any arrive.
        identity: Who the peer proved to be; None for nobody, or before it did.
        authenticated: Whether SASL has succeeded, or was not asked for.
        is_client: Whether this side has begun.
        remote: The peer's open; None until it came.
        sasl_refusal: Client: why the server did not let it in; None where it did not say so.
        context: Whatever the host keeps with the connection.
        relay: Asked of each session that the peer begins whether to pass it on; None passes none.
        takes_over: Asked, for a first header that is not AMQP 1.0's, for the wire of a connection
            that speaks the protocol of that; None where no other is spoken.
        state: Where in its life it is.
        started_s: When it was made, by the core's clock.
        peer_idle_timeout_s: For how long the peer bears silence; 0: for ever.
        was_closed: Whether the peer has closed it, instead of just being gone.
        ending: How it ended; meaningless while it has not.
    """

    __slots__ = (
        "_heir",
        "_is_ended",
        "_sasl_asked",
        "_sasl_init",
        "_sessions",
        "_to_send_on_open",
        "authenticated",
        "context",
        "ending",
        "host",
        "identity",
        "is_client",
        "peer_idle_timeout_s",
        "relay",
        "remote",
        "sasl_refusal",
        "settings",
        "started_s",
        "state",
        "takes_over",
        "transport",
        "was_closed",
        "wire",
    )

    def __init__(self, core: Core, host: Host, settings: ConnectionSettings, fd: int = -1) -> None:
        self.wire = Wire(core, self, settings.max_frame_size_bytes, fd)
        self.wire.owe_open()
        self.host = host
        self.settings = settings
        self.transport: Transport | None = None
        self.identity: str | None = None
        self.authenticated = False
        self.is_client = False
        self.was_closed = False
        self.sasl_refusal: SaslCode | None = None
        self.ending = Ending.LOST
        self.remote: Open | None = None
        self.context: object = None
        self.relay: Callable[[Connection, int, Begin], bool] | None = None
        self.takes_over: Callable[[Connection, bytes], Feedable | None] | None = None
        self.state = ConnectionState.START
        self.peer_idle_timeout_s = 0.0
        self.started_s = core.now
        self._sessions = Sessions(self)
        self._to_send_on_open: Open | None = None
        self._sasl_asked = False
        self._sasl_init: SaslInit | None = None
        self._is_ended = False
        self._heir: Feedable | None = None

    # -- both roles

    def take_settings(self, settings: ConnectionSettings) -> None:
        """Go by other settings from now on: what this side announces is what it takes."""
        self.settings = settings
        self.wire.allow_frames(settings.max_frame_size_bytes)

    def write(self, channel: int, performative: Performative) -> None:
        """Send a performative.

        Raises:
            FrameTooLarge: The peer takes no frame of that size; nothing was sent.
        """
        if not self.is_over:
            self.wire.write_frame(channel, fitting(performative, self.wire.max_frame_out))

    def flush(self) -> None:
        """Send what was written, where that is not done by a batch that ends anyway."""
        self.wire.core.flush()

    @property
    def is_over(self) -> bool:
        """Whether nothing may be sent any more."""
        return self.state in CONNECTION_OVER

    @property
    def is_open(self) -> bool:
        """Whether both sides have opened and neither has closed."""
        return self.state is ConnectionState.OPENED

    @property
    def has_opened(self) -> bool:
        """Whether the peer's open has come."""
        return self.remote is not None

    @property
    def protocol(self) -> str:
        """What it speaks."""
        return "AMQP 1.0"

    @property
    def container_id(self) -> str:
        """What the peer calls itself; empty before its open has come."""
        return "" if self.remote is None else self.remote.container_id

    @property
    def product(self) -> str:
        """What program the peer says that it is, and of which version."""
        said = {} if self.remote is None else self.remote.properties or {}
        words = (said.get(Symbol(key)) for key in ("product", "version"))
        return " ".join(str(word) for word in words if word)[:PRODUCT_MAX]

    @property
    def channel_numbers(self) -> Sequence[int]:
        """The numbers of the channels of its sessions that end here."""
        return sorted(session.channel for session in self._sessions.here)

    @property
    def consumer_names(self) -> Sequence[str]:
        """The names of the links on which it is sent messages."""
        links = [link for session in self._sessions.here for link in session.links.values()]
        return [link.name for link in links if link.role is Role.SENDER]

    @property
    def session_count(self) -> int:
        """Counts its sessions that end here."""
        return len(self._sessions.here)

    @property
    def link_count(self) -> int:
        """Counts the links of these."""
        return sum(len(session.links) for session in self._sessions.here)

    @property
    def messages_in(self) -> int:
        """Counts what came by the links that stand."""
        return self._deliveries(Role.RECEIVER)

    @property
    def messages_out(self) -> int:
        """Counts what went by the links that stand."""
        return self._deliveries(Role.SENDER)

    def _deliveries(self, role: Role) -> int:
        links = (link for session in self.sessions for link in session.links.values())
        return sum(link.end.deliveries for link in links if link.role is role and link.end)

    @property
    def unsettled(self) -> int:
        """Counts the deliveries that were sent to the peer and are not settled."""
        return sum(session.end.unsettled for session in self._sessions.here)

    @property
    def sessions(self) -> list[SessionEndpoint]:
        """The sessions that end here, by no particular order."""
        return self._sessions.here

    @property
    def relayed(self) -> list[RelayedSession]:
        """The sides of sessions that are passed on."""
        return self._sessions.relayed

    @property
    def passed(self) -> tuple[int, int]:
        """Counts the messages that came in, and went out, in sessions that are passed on."""
        return self._sessions.passed

    def open(self, opening: Open) -> None:
        """Send this side's open, first or in answer."""
        self.state = connection_step(self.state, Event.SEND_START)
        is_answer = self.remote is not None  # until then the peer's limit is not known
        self.wire.write_frame(
            0, fitting(opening, self.wire.max_frame_out) if is_answer else encode(opening)
        )
        self.wire.note_open()

    def begin_session(self, properties: dict[Symbol, object] | None = None) -> SessionEndpoint:
        """Begin a session from this side; `properties` say what for."""
        session = self._sessions.make()
        session.begin(properties)
        return session

    def relay_session(self) -> RelayedSession:
        """Make a side of a session that is passed on."""
        return self._sessions.make_relayed()

    def close(self, error: AmqpError | None = None) -> None:
        """Close from this side; before an open was sent the transport is just ended."""
        if self.is_over:
            return
        event = Event.SEND_FAIL if error else Event.SEND_STOP
        if self.state in (ConnectionState.OPENED, ConnectionState.OPEN_SENT):
            self.state = connection_step(self.state, event)
            self._write_settlements()
            self.wire.write_frame(0, fitting(Close(error=error), self.wire.max_frame_out))
            self._sessions.lose()
            return
        if self.state in (ConnectionState.HDR_EXCH, ConnectionState.OPEN_RCVD):
            # AMQP 1.0 §2.4.3: an open is owed before the close that says why.
            is_refused = error is not None and not self.is_client
            properties: dict[Symbol, object] = {ESTABLISHMENT_FAILED: True} if is_refused else {}
            self.open(Open(container_id="", properties=properties or None))
            self.close(error)
            return
        self._end(error)

    def lose(self, error: AmqpError | None = None) -> None:
        """End at once: the transport has gone, or is to go without another word."""
        self._end(error)

    def _end(self, error: AmqpError | None, *, linger: bool = True) -> None:
        if self._is_ended:
            return
        self._is_ended = True
        self.state = ConnectionState.END
        self._sessions.lose()
        self.wire.stop()
        try:
            self.host.on_closed(self, error)
        finally:  # else a socket stays that nobody reads, and that wakes the loop for ever
            if self.transport is not None:
                self.transport.finish(linger=linger)

    def _write_settlements(self) -> None:
        for session in self._sessions:
            session.end.write_settlements()

    def tick(self, now_s: float) -> None:
        """Let time pass: sends heartbeats, and give up a peer that is silent for too long."""
        silent_s = now_s - self.wire.last_sent_s
        if (
            self.peer_idle_timeout_s
            and not self.is_over
            and silent_s >= self.peer_idle_timeout_s / 2
        ):
            self.wire.write_frame(0, b"")
        timeout_s = self.settings.idle_timeout_s
        if timeout_s and self.remote and now_s - self.wire.last_received_s >= timeout_s:
            if self._is_heard(self.wire.last_received_s):
                return
            self._fail(
                Condition.RESOURCE_LIMIT_EXCEEDED, f"nothing was received for {timeout_s:g} s"
            )
            self._end(None)

    def _is_heard(self, since_s: float) -> bool:
        """Return whether the peer has spoken after all: this process may have stood still."""
        if self.transport is not None:
            self.transport.read_rest()
        return self._is_ended or self.wire.last_received_s != since_s

    # -- the client's start

    def start(self, opening: Open, *, with_sasl: bool = True) -> None:
        """Client: says the first header; the rest follows from what the server answers."""
        self.is_client = True
        self._to_send_on_open = opening
        if with_sasl:
            self.wire.write(SASL_HEADER)
        else:
            self.authenticated = True
            self._start_amqp()
        self.wire.core.flush()

    def _start_amqp(self) -> None:
        self.wire.write(AMQP_HEADER)
        self.state = connection_step(self.state, Event.SEND_HEADER)
        assert self._to_send_on_open is not None
        self.open(self._to_send_on_open)

    # -- what the wire hands over

    def on_header(self, header: bytes) -> None:
        """Take in a protocol header (§2.2)."""
        takes_over, self.takes_over = self.takes_over, None
        if header == SASL_HEADER and not self.authenticated:
            self.wire.start_framing()
            if not self.is_client:
                self.wire.write(SASL_HEADER)
                self._write_sasl(
                    SaslMechanisms(sasl_server_mechanisms=self.host.sasl_mechanisms(self))
                )
        elif header == AMQP_HEADER and (self.authenticated or self._skips_sasl()):
            self.state = connection_step(self.state, Event.RECEIVE_HEADER)
            self.wire.start_framing()
            if not self.is_client:
                self.wire.write(AMQP_HEADER)
                self.state = connection_step(self.state, Event.SEND_HEADER)
        elif takes_over is not None and (heir := takes_over(self, header)) is not None:
            self._heir = heir
            self._is_ended = True
            self.state = ConnectionState.END
            self.wire.stop()
        else:
            self._refuse_header(header)

    def on_rest(self, octets: bytes) -> None:
        """Pass on what came behind a header of another protocol."""
        if self._heir is not None:
            self._heir.feed(octets)

    def _skips_sasl(self) -> bool:
        self.authenticated = not self.is_client and self.host.may_skip_sasl(self)
        return self.authenticated

    def _refuse_header(self, header: bytes) -> None:
        """Say the header that would be right, and ends (§2.2)."""
        if not self.is_client:
            self.wire.write(AMQP_HEADER if self.authenticated else SASL_HEADER)
        found = f"the peer's protocol header {header!r} is not AMQP 1.0's"
        if header == TLS_HEADER:
            found = "the peer requires TLS: connect with amqps://, or wss://"
        self._end(AmqpError(condition=Condition.CONNECTION_FRAMING_ERROR, description=found))

    def on_frame(self, frame_type: int, channel: int, body: bytes) -> None:
        """Take in a frame that is not hot."""
        try:
            if frame_type == _SASL and not self.authenticated:
                self._on_sasl(decode_sasl(body, 0, decode))
            elif frame_type == 0 and self.authenticated:
                self._on_performative(channel, decode_performative(body, 0, decode)[0])
            else:
                raise ProtocolError(
                    Condition.CONNECTION_FRAMING_ERROR,
                    f"a frame of type {frame_type} is not allowed now",
                )
        except ProtocolError as error:
            self._blame(channel, error)
        except Exception as error:  # one connection's fault must stay its own
            self.on_fault(error)

    def on_fault(self, error: Exception) -> None:
        """Something of ours failed while this connection's bytes were worked on."""
        self.host.on_fault(self, error)
        self._fail(Condition.INTERNAL_ERROR, "an internal error; the container's log has it")

    def on_stream_error(self, error: Exception) -> None:
        """What came is not what the layer between speaks; its transport ends."""
        self.host.on_fault(self, error)

    def on_violation(self, condition: str, description: str) -> None:
        """The wire found something that ends the connection."""
        self._fail(Symbol(condition), description)

    def on_session_violation(self, session: Session, condition: str, description: str) -> None:
        """The wire found something that ends a session."""
        session.owner.close(AmqpError(condition=Symbol(condition), description=description))

    def on_link_violation(
        self, link: IncomingLink | OutgoingLink, condition: str, description: str
    ) -> None:
        """The wire found something that ends a link."""
        link.owner.detach(AmqpError(condition=Symbol(condition), description=description))

    def on_sender_disposition(
        self, session: Session, first: int, last: int, settled: bool, state: bytes
    ) -> None:
        """A sender settled what it sent."""
        self.host.on_settled_by_sender(session, first, last, state, settled=settled)

    def on_lost(self, errno: int) -> None:
        """The transport has ended: with an error number, or 0 for an end of file."""
        text = f"connection lost (errno {errno})" if errno else "connection lost"
        self._end(AmqpError(condition=Condition.CONNECTION_FORCED, description=text), linger=False)

    def _blame(self, channel: int, error: ProtocolError) -> None:
        session = self._session_on(channel)
        if error.scope is not Scope.CONNECTION and session is not None:
            session.close(AmqpError(condition=error.condition, description=error.description))
        else:
            self._fail(error.condition, error.description)

    def _fail(self, condition: Symbol, description: str) -> None:
        """Close with an error; what still arrives is thrown away unread."""
        error = AmqpError(condition=condition, description=description)
        self.close(error)
        self._end(error)

    # -- SASL

    def _on_sasl(self, frame: SaslFrame) -> None:
        if isinstance(frame, (SaslInit, SaslResponse)) and not self.is_client:
            if isinstance(frame, SaslInit) and self._sasl_asked:
                raise ProtocolError(Condition.NOT_ALLOWED, "a second sasl-init")
            self._sasl_asked = True
            self.host.authenticate(self, frame)
        elif isinstance(frame, SaslMechanisms) and self.is_client and self._sasl_init is None:
            self._sasl_init = self.host.sasl_init(self, tuple(frame.sasl_server_mechanisms))
            self._write_sasl(self._sasl_init)
        elif isinstance(frame, SaslChallenge) and self._sasl_init is not None:
            self.host.on_sasl_challenge(self, frame.challenge)
        elif isinstance(frame, SaslOutcome) and self.is_client:
            self._on_sasl_outcome(frame)
        else:
            raise ProtocolError(Condition.NOT_ALLOWED, f"{frame.NAME} is not allowed now")

    def _on_sasl_outcome(self, outcome: SaslOutcome) -> None:
        if outcome.code is not SaslCode.OK:
            self.sasl_refusal = outcome.code
            self._end(
                AmqpError(
                    condition=Condition.UNAUTHORIZED_ACCESS,
                    description=self._refusal(outcome.code),
                )
            )
            return
        self.host.on_sasl_success(self, outcome.additional_data)
        self._sasl_init = None  # it holds a password
        self.authenticated = True
        self.wire.expect_header()
        self._start_amqp()

    def _refusal(self, code: SaslCode) -> str:
        """Return why the server may not have let this client in."""
        if self._sasl_init is None:
            return f"the server refused the authentication before it was asked ({code.name})"
        return refusal_of(self._sasl_init, code)

    def sasl_challenge(self, challenge: bytes) -> None:
        """Server: asks the client for more."""
        if not self.is_over and not self.authenticated:
            self._write_sasl(SaslChallenge(challenge=challenge))

    def sasl_response(self, response: bytes) -> None:
        """Client: answers a challenge."""
        if not self.is_over and not self.authenticated:
            self._write_sasl(SaslResponse(response=response))

    def sasl_done(
        self, code: SaslCode, identity: str | None = None, data: bytes | None = None
    ) -> None:
        """Server: says how authentication ended; a refusal ends the connection.

        Args:
            code: How.
            identity: Who the peer is.
            data: What proves this side to the client, where the mechanism has such a thing.
        """
        if self.is_over or self.authenticated:
            return
        if data is None:
            self.wire.write_frame(0, _OUTCOMES[code], _SASL)
        else:
            self._write_sasl(SaslOutcome(code=code, additional_data=data))
        if code is SaslCode.OK:
            self.identity = identity
            self.authenticated = True
            self.wire.expect_header()
        else:
            self._end(None)

    def _write_sasl(self, frame: SaslFrame) -> None:
        self.wire.write_frame(0, encode(frame), _SASL)

    # -- open, close, sessions

    def _on_performative(self, channel: int, performative: Performative) -> None:
        if isinstance(performative, Open):
            self._on_open(performative)
        elif isinstance(performative, Close):
            self._on_close(performative)
        else:
            self.state = connection_step(self.state, Event.RECEIVE_FRAME)
            if self.state in (ConnectionState.DISCARDING, ConnectionState.CLOSE_SENT):
                return
            if isinstance(performative, Begin):
                self._on_begin(channel, performative)
                return
            session = self._session_on(channel)
            if session is None:
                raise ProtocolError(
                    Condition.NOT_ALLOWED,
                    f"{performative.NAME} on channel {channel}, where no session has begun",
                )
            session.on_performative(performative)

    def _on_open(self, opened: Open) -> None:
        self.state = connection_step(self.state, Event.RECEIVE_START)
        self.remote = opened
        self.wire.max_frame_out = min(max(opened.max_frame_size, 512), 1 << 20)
        self.peer_idle_timeout_s = (opened.idle_time_out or 0) / 1000
        self.host.on_open(self, opened)

    def _on_close(self, close: Close) -> None:
        self.was_closed = True
        self.state = connection_step(self.state, Event.RECEIVE_STOP)
        if self.state is ConnectionState.CLOSE_RCVD:
            if close.error is None:
                self.ending = Ending.CONNECTION_CLOSED
            self._write_settlements()
            self._sessions.lose(self.ending)
            self.wire.write_frame(0, _CLOSE)
        self._end(close.error, linger=False)

    def _on_begin(self, channel: int, begin: Begin) -> None:
        if channel > self.settings.channel_max:
            raise ProtocolError(
                Condition.NOT_ALLOWED,
                f"channel {channel} is above the channel-max of {self.settings.channel_max}",
            )
        if self._session_on(channel) is not None:
            raise ProtocolError(Condition.NOT_ALLOWED, f"channel {channel} is in use")
        if begin.remote_channel is not None:
            session = self._sessions.at(begin.remote_channel)
            if session is None or session.remote_channel is not None:
                raise ProtocolError(
                    Condition.NOT_ALLOWED, f"begin answers none on channel {begin.remote_channel}"
                )
            session.on_begin(channel, begin)
            return
        if self.relay is not None and self.relay(self, channel, begin):
            return
        if self.remote is not None and self._sessions.free_channel > self.remote.channel_max:
            raise ProtocolError(
                Condition.NOT_ALLOWED,
                f"more sessions than the peer's own channel-max of {self.remote.channel_max} lets "
                "this side answer",
            )
        begun = self._sessions.make()
        begun.on_begin(channel, begin)
        begun.begin()
        self.host.on_begun(begun)

    def _session_on(self, channel: int) -> SessionEndpoint | RelayedSession | None:
        session = self.wire.session_on(channel)
        return None if session is None else cast("SessionEndpoint | RelayedSession", session.owner)

    def forget_session(self, session: SessionEndpoint | RelayedSession) -> None:
        """Free a session's channels once both sides have ended it."""
        self._sessions.forget(session)
        if session.remote_channel is not None:
            self.wire.map_session(session.remote_channel, None)
