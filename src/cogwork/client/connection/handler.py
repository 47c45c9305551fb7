"""One connection to a container, as its client's side sees it."""

from __future__ import annotations

import asyncio
import logging
import platform
from contextlib import suppress
from typing import TYPE_CHECKING

from cogwork import __version__
from cogwork.amqp.errors import AmqpError, Condition, FrameTooLarge, ProtocolError
from cogwork.amqp.extensions import ANONYMOUS_RELAY
from cogwork.amqp.frames import FRAME_HEADER_BYTES, MIN_MAX_FRAME_SIZE
from cogwork.amqp.performatives import Open, Role
from cogwork.amqp.redirect import FORCE, REDIRECTS
from cogwork.amqp.sasl import PLAIN, SaslCode, SaslInit
from cogwork.amqp.types import Symbol, UInt
from cogwork.client.connection.redirection import Redirected, redirection_of
from cogwork.client.errors import AuthenticationError, ConnectError, connection_error
from cogwork.client.links.link_end import LEFT_PAUSE_S, LinkEnd, has_more
from cogwork.dataplane.encoding.composites import encode
from cogwork.dataplane.host import DiallingSide
from cogwork.io.login import ClientLogin, NoMechanismError, off_loop
from cogwork.sasl.sides import ClientContext

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.amqp.performatives import Attach
    from cogwork.client.connection.url import Endpoint
    from cogwork.client.options import Options
    from cogwork.dataplane.connection import Connection
    from cogwork.dataplane.link import Link
    from cogwork.dataplane.session import SessionEndpoint
    from cogwork.dataplane.transport.session_end import Session
    from cogwork.io.pump import SocketPump, StreamPump
    from cogwork.sasl.verifier import Keys

__all__ = ("ConnectionHandler", "KeyCache", "PasswordWanted")

KeyCache = dict[tuple[str, str, bytes, int], "Keys"]

log = logging.getLogger("cogwork.client")

CLOSE_TIMEOUT_S = 5.0
"""A container answers a close at once, or never, however lively it is."""

_COMES_BACK = AmqpError(
    condition=Condition.CONNECTION_FORCED, description="the client goes on by another connection"
)

UNHEARD = {
    "amqp": "; a port for TLS is named by amqps://, one for WebSocket by ws://",
    "ws": "; a port for plain AMQP is named by amqp://, one for TLS by wss:// or amqps://",
}
"""What may be wrong with a URL where the other end hangs up without a word."""


class PasswordWanted(AuthenticationError):
    """SCRAM was refused where PLAIN is offered, too, and may be tried."""


class ConnectionHandler(DiallingSide):
    """A connection, and the host that the data plane asks.

    Attributes:
        endpoint: Where it leads.
        connection: Set by `start`.
        opened: Done once the container has opened, or has not.
        closed: Done once the connection is over; its result is the error, if there was one.
        fell_silent: Whether it was given up because nothing came any more.
    """

    connection: Connection

    def __init__(
        self,
        endpoint: Endpoint,
        options: Options,
        *,
        insists: bool = False,
        redirects: int = 0,
        keys: KeyCache | None = None,
        tells_password: bool = False,
        token: str | None = None,
    ) -> None:
        """Start with no connection yet.

        Args:
            endpoint: Where it will lead.
            options: Name, SASL, time-outs.
            insists: Whether it asks not to be redirected.
            redirects: How many redirects in a row have led there.
            keys: Keys of SCRAM from connections before.
            tells_password: Whether to log in by PLAIN, as SCRAM was refused.
            token: What to log in by; None without.
        """
        loop = asyncio.get_running_loop()
        self.endpoint = endpoint
        self.opened: asyncio.Future[None] = loop.create_future()
        self.closed: asyncio.Future[AmqpError | None] = loop.create_future()
        self._options = options
        self._insists = insists
        self._redirects = redirects
        self._pump: SocketPump | StreamPump | None = None
        self._sessions: list[SessionEndpoint] = []
        self._fault: BaseException | None = None
        self._session_error: AmqpError | None = None
        self._closing_since_s: float | None = None
        self._overlong = ""
        self._keys = {} if keys is None else keys
        self._tells_password = tells_password
        self._token = token
        self._login = ClientLogin()
        self._end_point: Callable[[], bytes | None] = _no_end_point
        self.fell_silent = False

    # -- life

    def start(
        self,
        connection: Connection,
        pump: SocketPump | StreamPump,
        end_point: Callable[[], bytes | None] | None = None,
    ) -> None:
        """Say the first header on a connection whose socket stands.

        Args:
            connection: Made with this handler as its host.
            pump: Carries its bytes.
            end_point: Tells what the TLS connection is known by; None without TLS.
        """
        self.connection = connection
        self._end_point = end_point or _no_end_point
        self._pump = pump
        vhost = self.endpoint.vhost
        hostname = self._options.hostname
        if hostname is None:
            hostname = f"vhost:{vhost}" if vhost else self.endpoint.name
        asked: dict[Symbol, object] = {FORCE: True} if self._insists else {}
        # That it is there says that this client follows redirects (`cogwork cluster rebalance`).
        if self._redirects or not self._insists:
            asked[REDIRECTS] = UInt(self._redirects)
        opening = Open(
            container_id=self._options.name,
            hostname=hostname,
            max_frame_size=self._options.max_frame_size_bytes,
            channel_max=connection.settings.channel_max,
            idle_time_out=int(self._options.idle_timeout_s * 500) or None,
            desired_capabilities=(ANONYMOUS_RELAY,),
            properties={
                Symbol("product"): "cogwork-client",
                Symbol("version"): __version__,
                Symbol("platform"): f"Python {platform.python_version()}",
                **asked,
            },
        )
        self._measure(opening, "name, host and virtual host")
        connection.start(opening)

    def _measure(self, frame: Open | SaslInit, parts: str) -> None:
        """Note a frame of more octets than a peer must take before it has opened (§2.4.1, §5.3.1).

        Most take more, and tokens need it: it is sent all the same.
        """
        size_bytes = len(encode(frame)) + FRAME_HEADER_BYTES
        if size_bytes > MIN_MAX_FRAME_SIZE:
            self._overlong = (
                f"; the {frame.NAME}, with {parts}, takes {size_bytes} octets, and a peer need not "
                f"take more than {MIN_MAX_FRAME_SIZE} before it has opened"
            )

    async def close(self, timeout_s: float, *, comes_back: bool = False) -> None:
        """Close in order, or after the time-out without it.

        Args:
            timeout_s: How long the container may take to answer.
            comes_back: Whether links go on by another connection. The container is told an error
                then: it takes a close without one for the end of what consumers hold.
        """
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    while self._has_more():
                        await asyncio.sleep(LEFT_PAUSE_S)
            self.connection.close(_COMES_BACK if comes_back else None)
            self.connection.flush()
            await asyncio.wait([self.closed], timeout=timeout_s)
        finally:
            self.abandon()

    def _has_more(self) -> bool:
        """Return whether a message has begun to leave, and is not through."""
        return self.connection.is_open and any(
            has_more(link) for session in self._sessions for link in session.links.values()
        )

    def abandon(self) -> None:
        """Give everything up at once."""
        self._login.cancel()
        self.connection.lose()
        if self._pump is not None:
            self._pump.close()

    def tick(self) -> None:
        """Let time pass: heartbeat, a container that is silent, or does not answer a close."""
        now_s = self.connection.wire.core.now
        limit_s = self._options.idle_timeout_s
        if limit_s and self.connection.is_open:
            self.fell_silent = now_s - self.connection.wire.last_received_s >= limit_s
        self.connection.tick(now_s)
        if not self.connection.is_over or self.closed.done():
            return
        if self._closing_since_s is None:
            self._closing_since_s = now_s
        elif now_s - self._closing_since_s > CLOSE_TIMEOUT_S:
            self.connection.lose(self._session_error)

    @property
    def has_relay(self) -> bool:
        """Whether messages can be sent without a link to their address."""
        opened = self.connection.remote
        return opened is not None and ANONYMOUS_RELAY in opened.offered_capabilities

    # -- links

    def attach(self, end: LinkEnd) -> None:
        """Attach a link end on a session that has room."""
        link = self._open_link(end)
        if link is None:
            count = sum(len(session.links) for session in self._sessions)
            text = f"{count} links are attached, as many as the container takes on a connection"
            condition = Condition.RESOURCE_LIMIT_EXCEEDED
            end.not_attached(AmqpError(condition=condition, description=text))
            return
        link.context = end
        end.link = link
        end.move_to(self.endpoint)
        try:
            end.attach(link)
        except FrameTooLarge as error:
            link.session.forget_link(link)
            condition = Condition.FRAME_SIZE_TOO_SMALL
            end.not_attached(AmqpError(condition=condition, description=str(error)))

    def _open_link(self, end: LinkEnd) -> Link | None:
        """Make a link on a session that has room; None where there may be no more sessions."""
        for session in self._sessions:
            try:
                return session.open_link(end.name, end.role)
            except ProtocolError:  # full, which is rare
                continue
        opened = self.connection.remote
        if opened is None or len(self._sessions) > opened.channel_max:
            return None
        session = self.connection.begin_session()
        # Until the answer has come it takes as many links as the first one.
        session.handle_max = self._sessions[0].handle_max
        self._sessions.append(session)
        return session.open_link(end.name, end.role)

    # -- what the data plane asks: SASL and open

    def sasl_init(self, _connection: Connection, offered: tuple[Symbol, ...]) -> SaslInit:
        """Choose the mechanism: of those that were asked for, else the strongest."""
        endpoint, options = self.endpoint, self._options
        wanted = (PLAIN,) if self._tells_password else options.mechanisms
        context = ClientContext(
            work=off_loop,
            user=endpoint.user,
            password=endpoint.password,
            token=self._token,
            has_certificate=options.tls is not None,
            is_private=endpoint.is_private,
            end_point=self._end_point(),
            offered=offered,
            chosen=None if wanted is None else tuple(map(Symbol, wanted)),
            keys=self._keys,
        )
        try:
            init = self._login.begin(context, endpoint.name)
        except NoMechanismError as error:
            self._fault = self._no_mechanism(offered, error)
            raise self._fault from None
        self._token = None
        if init.mechanism == PLAIN and wanted is None and not endpoint.is_private:
            log.warning("%s: the password goes there unencrypted: amqps:// protects it", endpoint)
        self._measure(init, "user, password or token, and host")
        return init

    def _no_mechanism(
        self, offered: tuple[Symbol, ...], error: NoMechanismError
    ) -> AuthenticationError:
        names = ", ".join(offered) or "none"
        usable = " or ".join(error.usable) or "none of them"
        hint = ""
        if not error.usable and self._token is not None:
            hint = "; a token goes only by amqps:// or wss://, unless sasl='OAUTHBEARER'"
        elif self.endpoint.user is None and self._token is None:
            hint = "; a URL can hold user:password@"
        return AuthenticationError(
            f"{self.endpoint}: the container offers {names}, this client can use {usable}{hint}"
        )

    def on_sasl_challenge(self, connection: Connection, challenge: bytes) -> None:
        """Answer, as soon as the answer is there."""
        self._login.respond(connection, challenge)

    def on_sasl_success(self, _connection: Connection, data: bytes | None) -> None:
        """Demand what the mechanism has the container prove."""
        self._login.finish(data)

    def on_open(self, connection: Connection, _opened: Open) -> None:
        """The container has opened; if it does not serve the virtual host it will close now."""
        self._sessions.append(connection.begin_session())
        connection.flush()

    def on_session_begun(self, _session: SessionEndpoint) -> None:
        """The container goes along: the connection can be used."""
        if not self.opened.done():
            self.opened.set_result(None)

    # -- what the data plane asks: links

    def on_attach(self, link: Link, _attach: Attach) -> None:
        """Containers attach no links of their own to clients."""
        link.refuse(Condition.NOT_ALLOWED, "this client takes no links")

    def on_attached(self, link: Link) -> None:
        """The container answered."""
        if isinstance(link.context, LinkEnd):
            link.context.on_attached(link)

    def on_stopping(self, link: Link) -> None:
        """A link's compiled half is about to end."""
        if isinstance(link.context, LinkEnd):
            link.context.stopping()

    def on_detached(self, link: Link, error: AmqpError | None, *, closed: bool) -> None:
        """A link has gone."""
        # One that the peer has left alone, with its session in place, does not come back by itself.
        is_lost = not closed and error is None and not link.was_left
        if isinstance(link.context, LinkEnd):
            link.context.on_detached(error, is_lost=is_lost)

    def on_session_ended(self, _session: SessionEndpoint, error: AmqpError | None) -> None:
        """A session ended: begins all over, as the links on it cannot go on."""
        self._session_error = error
        self.connection.close(_COMES_BACK)

    def on_settled_by_sender(
        self, session: Session, first: int, last: int, state: bytes, *, settled: bool
    ) -> None:
        """The owner of items confirms what it was told of them."""
        if not settled:
            return
        for link in session.owner.links.values():
            if isinstance(link.context, LinkEnd) and link.role is Role.RECEIVER:
                link.context.settled_by_peer(session, first, last, state)

    def on_drained(self, link: Link) -> None:
        """A sender has used up the credit it was asked to drain."""
        if isinstance(link.context, LinkEnd):
            link.context.drained()

    # -- the end

    def on_fault(self, _connection: Connection, error: BaseException) -> None:
        """Keep what went wrong here or in TLS: it is the cause of what follows."""
        self._fault = error

    def on_closed(self, _connection: Connection, error: AmqpError | None) -> None:
        """The connection is over."""
        if not self.opened.done():
            self.opened.set_exception(self._why(error))
        if not self.closed.done():
            self.closed.set_result(error or self._session_error)

    def _why(self, error: AmqpError | None) -> ConnectError:
        overlong = self._overlong if self.connection.remote is None else ""
        if self._fault is not None:
            return self._why_faulty(self._fault, overlong)
        if error is not None and error.condition == Condition.CONNECTION_REDIRECT:
            return self._why_not_here(error)
        if error is not None and error.description and not self.connection.wire.bytes_in:
            scheme = self.endpoint.scheme
            text = f"{error.description} before anything came{UNHEARD.get(scheme, '')}"
            error = AmqpError(condition=error.condition, description=text)
        made = connection_error(str(self.endpoint), error, overlong)
        refusal = self.connection.sasl_refusal
        if refusal is SaslCode.SYS_TEMP:  # the same login may succeed later: it is worth a retry
            return ConnectError(str(made))
        is_refused = refusal is SaslCode.AUTH
        return self._refused(made) if is_refused and self._login.is_scram else made

    def _refused(self, made: ConnectError) -> ConnectError:
        """Return whether the password may be told, or would have to be, where SCRAM is refused."""
        if self._login.may_tell_password:
            return PasswordWanted(str(made))
        if not self._login.is_plain_offered:
            return made
        return AuthenticationError(
            f"{made}; a password that was hashed before there was SCRAM needs `cogwork passwd` "
            "once more, or sasl='PLAIN', which tells it to who reads along"
        )

    def _why_faulty(self, fault: BaseException, overlong: str) -> ConnectError:
        if isinstance(fault, ConnectError):
            return fault
        made = ConnectError(f"{self.endpoint}: {fault}{overlong}")
        made.__cause__ = fault
        return made

    def _why_not_here(self, redirect: AmqpError) -> ConnectError:
        try:
            return Redirected(self.endpoint, redirection_of(self.endpoint, redirect))
        except ConnectError as problem:
            return problem


def _no_end_point() -> bytes | None:
    return None
