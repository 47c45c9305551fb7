"""What a connection needs of its surroundings: somebody who decides, and something that carries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from cogwork.amqp.errors import Condition, ProtocolError

if TYPE_CHECKING:
    from cogwork.amqp.errors import AmqpError
    from cogwork.amqp.performatives import Attach, Open
    from cogwork.amqp.sasl import SaslInit, SaslResponse
    from cogwork.amqp.types import Symbol
    from cogwork.dataplane.connection import Connection
    from cogwork.dataplane.link import Link
    from cogwork.dataplane.session import SessionEndpoint
    from cogwork.dataplane.transport.session_end import Session

__all__ = ("DiallingSide", "Host", "ListeningSide", "Transport")


class Transport(Protocol):
    """What carries a connection's bytes."""

    def prefer(self) -> None:
        """Have its input read before that of other connections, as far as that is possible."""

    def read_rest(self) -> None:
        """Read what has come of it, before the connection is given up for its silence."""

    def finish(self, *, linger: bool) -> None:
        """Send what is left and closes; lingers where the peer may still be sending."""


class Host(Protocol):
    """Whose connection it is: the container, or the client."""

    def sasl_mechanisms(self, connection: Connection) -> tuple[Symbol, ...]:
        """Server: lists what is offered; empty where none is needed and none offered."""

    def authenticate(self, connection: Connection, frame: SaslInit | SaslResponse) -> None:
        """Server: answers by `connection.sasl_challenge` or `.sasl_done`, now or later."""

    def may_skip_sasl(self, connection: Connection) -> bool:
        """Server: whether a peer may start without SASL, as anonymous."""

    def sasl_init(self, connection: Connection, offered: tuple[Symbol, ...]) -> SaslInit:
        """Client: chooses a mechanism; raises where none of the offered ones will do."""

    def on_sasl_challenge(self, connection: Connection, challenge: bytes) -> None:
        """Client: answers with `connection.sasl_response`, now or later."""

    def on_sasl_success(self, connection: Connection, data: bytes | None) -> None:
        """Client: raises where the server, which lets it in, has not proved what it has to."""

    def on_open(self, connection: Connection, opened: Open) -> None:
        """The peer's open has come; a server answers with `connection.open`, or raises."""

    def on_attach(self, link: Link, attach: Attach) -> None:
        """The peer attaches a link: accept it with `attach` and `carry`, or refuse it."""

    def on_attached(self, link: Link) -> None:
        """The peer answered our attach."""

    def on_stopping(self, link: Link) -> None:
        """A link's compiled half is about to end, whoever detached."""

    def on_detached(self, link: Link, error: AmqpError | None, *, closed: bool) -> None:
        """The peer detached a link, or its session or connection has gone."""

    def on_begun(self, session: SessionEndpoint) -> None:
        """The peer began a session, and was answered; it may be closed again."""

    def on_session_begun(self, session: SessionEndpoint) -> None:
        """The peer answered our begin."""

    def on_session_ended(self, session: SessionEndpoint, error: AmqpError | None) -> None:
        """The peer ended a session."""

    def on_closed(self, connection: Connection, error: AmqpError | None) -> None:
        """The connection is over: closed by the peer, lost, or closed by us and answered."""

    def on_fault(self, connection: Connection, error: BaseException) -> None:
        """Our own fault, to be logged."""

    def on_settled_by_sender(
        self, session: Session, first: int, last: int, state: bytes, *, settled: bool
    ) -> None:
        """A sender settled deliveries that it sent us."""

    def on_drained(self, link: Link) -> None:
        """The sender used up the credit that we asked it to drain."""


class DiallingSide:
    """What is never asked of a side that dials, nor of one that takes over when logins are over."""

    def sasl_mechanisms(self, _connection: Connection) -> tuple[Symbol, ...]:
        """Offer nothing."""
        return ()

    def authenticate(self, connection: Connection, frame: SaslInit | SaslResponse) -> None:
        """Let nobody in."""

    def may_skip_sasl(self, _connection: Connection) -> bool:
        """Let nobody in without it, either."""
        return False

    def on_sasl_challenge(self, _connection: Connection, challenge: bytes) -> None:
        """Have an answer to none: a side whose mechanisms have challenges says so itself."""
        raise ProtocolError(
            Condition.NOT_ALLOWED, f"a SASL challenge of {len(challenge)} bytes is not expected"
        )

    def on_sasl_success(self, _connection: Connection, data: bytes | None) -> None:
        """Demand no proof of the server."""

    def on_begun(self, session: SessionEndpoint) -> None:
        """Bear as many sessions as its peer begins."""


class ListeningSide:
    """What is never asked of a side that listens and attaches nothing itself, or leaves it idle."""

    def sasl_init(self, _connection: Connection, offered: tuple[Symbol, ...]) -> SaslInit:
        """Choose nothing: it is this side that offers."""
        raise ProtocolError(Condition.NOT_ALLOWED, f"mechanisms {offered} are the server's to say")

    def on_sasl_challenge(self, _connection: Connection, challenge: bytes) -> None:
        """Never: only a side that dials is challenged."""

    def on_sasl_success(self, _connection: Connection, data: bytes | None) -> None:
        """Never: only a side that dials is let in."""

    def on_begun(self, session: SessionEndpoint) -> None:
        """Bear as many sessions as its peer begins."""

    def on_attached(self, link: Link) -> None:
        """Never: it attaches no links."""

    def on_session_begun(self, session: SessionEndpoint) -> None:
        """Never: it begins no sessions."""

    def on_session_ended(self, session: SessionEndpoint, error: AmqpError | None) -> None:
        """Nothing is left to do: the links have been told."""

    def on_settled_by_sender(
        self, session: Session, first: int, last: int, state: bytes, *, settled: bool
    ) -> None:
        """What a sender was told stays told."""

    def on_drained(self, link: Link) -> None:
        """Never: it does not drain senders."""
