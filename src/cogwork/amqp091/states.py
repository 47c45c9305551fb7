"""The life of connections and channels, as tables (AMQP 0-9-1 §2.2.4, §1.4, §1.5).

The tables are blind to roles: client and server follow the same ones, and `Method.SENT_BY` tells
which of them may send a method at all. A transition that is not listed is an error: of the peer
where it concerns something received, of this program otherwise. Codes and texts are RabbitMQ's.

What has been received after this end sent a close is discarded, but for a close and its answer:
both ends may close at the same time, and each answers the other.
"""

from __future__ import annotations

from enum import Enum, IntEnum, auto
from typing import TYPE_CHECKING, Final

from cogwork.amqp091.errors import LocalProtocolError, ProtocolError, ReplyCode
from cogwork.amqp091.methods import (
    ChannelClose,
    ChannelCloseOk,
    ChannelOpen,
    ChannelOpenOk,
    ConnectionBlocked,
    ConnectionClose,
    ConnectionCloseOk,
    ConnectionOpen,
    ConnectionOpenOk,
    ConnectionSecure,
    ConnectionSecureOk,
    ConnectionStart,
    ConnectionStartOk,
    ConnectionTune,
    ConnectionTuneOk,
    ConnectionUnblocked,
    ConnectionUpdateSecret,
    ConnectionUpdateSecretOk,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.amqp091.method import Method

__all__ = (
    "CHANNEL",
    "CHANNEL_CLOSING",
    "CONNECTION",
    "CONNECTION_OVER",
    "ChannelState",
    "ConnectionState",
    "Direction",
    "channel_step",
    "connection_step",
)


class Direction(Enum):
    """Whether this end sends a method or receives it."""

    SENT = auto()
    RECEIVED = auto()


class ConnectionState(IntEnum):
    """What was agreed on so far; each state is named for what has happened last."""

    HEADER = auto()
    """Both ends speak this protocol."""
    STARTED = auto()
    SECURING = auto()
    """The server has a response, and decides whether it is enough."""
    CHALLENGED = auto()
    TUNING = auto()
    TUNED = auto()
    OPENING = auto()
    RUNNING = auto()
    CLOSE_SENT = auto()
    CLOSE_CROSSED = auto()
    """Both ends have sent a close, and the peer's is not answered yet."""
    CLOSE_RECEIVED = auto()
    CLOSED = auto()


class ChannelState(IntEnum):
    """Whether a channel's number is in use, and what for."""

    CLOSED = auto()
    OPEN_SENT = auto()
    OPEN_RECEIVED = auto()
    OPEN = auto()
    CLOSE_SENT = auto()
    CLOSE_CROSSED = auto()
    """Both ends have sent a close, and the peer's is not answered yet."""
    CLOSE_RECEIVED = auto()


_C, _H = ConnectionState, ChannelState
_SENT, _RECEIVED = Direction.SENT, Direction.RECEIVED

_HANDSHAKE: Final[dict[tuple[ConnectionState, type[Method]], ConnectionState]] = {
    (_C.HEADER, ConnectionStart): _C.STARTED,
    (_C.STARTED, ConnectionStartOk): _C.SECURING,
    (_C.SECURING, ConnectionSecure): _C.CHALLENGED,
    (_C.CHALLENGED, ConnectionSecureOk): _C.SECURING,
    (_C.SECURING, ConnectionTune): _C.TUNING,
    (_C.TUNING, ConnectionTuneOk): _C.TUNED,
    (_C.TUNED, ConnectionOpen): _C.OPENING,
    (_C.OPENING, ConnectionOpenOk): _C.RUNNING,
    (_C.RUNNING, ConnectionBlocked): _C.RUNNING,
    (_C.RUNNING, ConnectionUnblocked): _C.RUNNING,
    (_C.RUNNING, ConnectionUpdateSecret): _C.RUNNING,
    (_C.RUNNING, ConnectionUpdateSecretOk): _C.RUNNING,
}
"""Only one end sends each of these, so the direction says nothing."""

_BEFORE_CLOSE = (
    _C.STARTED, _C.SECURING, _C.CHALLENGED, _C.TUNING, _C.TUNED, _C.OPENING, _C.RUNNING,
)  # fmt: skip  # a list

CONNECTION: Final[Mapping[tuple[ConnectionState, Direction, type[Method]], ConnectionState]] = {
    **{
        (state, direction, method): after
        for (state, method), after in _HANDSHAKE.items()
        for direction in Direction
    },
    **{(state, _SENT, ConnectionClose): _C.CLOSE_SENT for state in _BEFORE_CLOSE},
    **{(state, _RECEIVED, ConnectionClose): _C.CLOSE_RECEIVED for state in _BEFORE_CLOSE},
    (_C.CLOSE_SENT, _RECEIVED, ConnectionClose): _C.CLOSE_CROSSED,
    (_C.CLOSE_SENT, _RECEIVED, ConnectionCloseOk): _C.CLOSED,
    (_C.CLOSE_CROSSED, _SENT, ConnectionCloseOk): _C.CLOSE_SENT,
    (_C.CLOSE_CROSSED, _RECEIVED, ConnectionCloseOk): _C.CLOSE_RECEIVED,
    (_C.CLOSE_RECEIVED, _SENT, ConnectionCloseOk): _C.CLOSED,
}

CONNECTION_OVER: Final = frozenset({_C.CLOSE_SENT, _C.CLOSE_CROSSED, _C.CLOSE_RECEIVED, _C.CLOSED})
"""Where what comes is discarded, but for a close and its answer."""

CHANNEL: Final[Mapping[tuple[ChannelState, Direction, type[Method] | None], ChannelState]] = {
    (_H.CLOSED, _SENT, ChannelOpen): _H.OPEN_SENT,
    (_H.CLOSED, _RECEIVED, ChannelOpen): _H.OPEN_RECEIVED,
    (_H.OPEN_SENT, _SENT, None): _H.OPEN_SENT,
    (_H.OPEN_SENT, _SENT, ChannelClose): _H.CLOSE_SENT,
    (_H.OPEN_SENT, _RECEIVED, ChannelOpenOk): _H.OPEN,
    (_H.OPEN_SENT, _RECEIVED, ChannelClose): _H.CLOSE_RECEIVED,
    (_H.OPEN_RECEIVED, _SENT, ChannelOpenOk): _H.OPEN,
    (_H.OPEN_RECEIVED, _SENT, ChannelClose): _H.CLOSE_SENT,
    (_H.OPEN_RECEIVED, _RECEIVED, None): _H.OPEN_RECEIVED,
    (_H.OPEN_RECEIVED, _RECEIVED, ChannelClose): _H.CLOSE_RECEIVED,
    (_H.OPEN, _SENT, None): _H.OPEN,
    (_H.OPEN, _SENT, ChannelClose): _H.CLOSE_SENT,
    (_H.OPEN, _RECEIVED, None): _H.OPEN,
    (_H.OPEN, _RECEIVED, ChannelClose): _H.CLOSE_RECEIVED,
    (_H.CLOSE_SENT, _RECEIVED, ChannelClose): _H.CLOSE_CROSSED,
    (_H.CLOSE_SENT, _RECEIVED, ChannelCloseOk): _H.CLOSED,
    (_H.CLOSE_CROSSED, _SENT, ChannelCloseOk): _H.CLOSE_SENT,
    (_H.CLOSE_CROSSED, _RECEIVED, ChannelCloseOk): _H.CLOSE_RECEIVED,
    (_H.CLOSE_RECEIVED, _SENT, None): _H.CLOSE_RECEIVED,
    (_H.CLOSE_RECEIVED, _SENT, ChannelCloseOk): _H.CLOSED,
}
"""None stands for all other methods, flow among them; a client need not wait for open-ok."""

CHANNEL_CLOSING: Final = frozenset({_H.CLOSE_SENT, _H.CLOSE_CROSSED})
"""Where what comes is discarded, but for a close and its answer."""

_CHANNEL_LIFE = frozenset({ChannelOpen, ChannelOpenOk, ChannelClose, ChannelCloseOk})


def connection_step(
    state: ConnectionState, direction: Direction, method: type[Method]
) -> ConnectionState:
    """Return the state of a connection after a method on channel 0.

    Raises:
        ProtocolError: The peer may not send this now (504).
        LocalProtocolError: This end may not send this now.
    """
    after = CONNECTION.get((state, direction, method))
    if after is not None:
        return after
    explanation = f"unexpected method '{method.NAME}' in connection state {state.name.lower()}"
    raise _refusal(direction, method, explanation)


def channel_step(state: ChannelState, direction: Direction, method: type[Method]) -> ChannelState:
    """Return the state of a channel after a method on it.

    Raises:
        ProtocolError: The peer may not send this now (504).
        LocalProtocolError: This end may not send this now.
    """
    after = CHANNEL.get((state, direction, method if method in _CHANNEL_LIFE else None))
    if after is not None:
        return after
    raise _refusal(direction, method, _explanation_of(state, method))


def _explanation_of(state: ChannelState, method: type[Method]) -> str:
    if state is ChannelState.CLOSED:
        return "expected 'channel.open'"
    if method is ChannelOpen:
        return "second 'channel.open' seen"
    return f"unexpected method '{method.NAME}' in channel state {state.name.lower()}"


def _refusal(
    direction: Direction, method: type[Method], explanation: str
) -> ProtocolError | LocalProtocolError:
    if direction is Direction.SENT:
        return LocalProtocolError(explanation)
    return ProtocolError(ReplyCode.CHANNEL_ERROR, explanation, method.CLASS_ID, method.METHOD_ID)
