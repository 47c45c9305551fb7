"""The life of connections, sessions and links, as tables (AMQP 1.0 §2.4.6, §2.5.5, §2.6).

The tables are blind to roles: client and server follow the same ones. A transition that is not
listed is an error: of the peer where it concerns something received, of this program otherwise.
Frames that change no state are listed too, as what each state allows.
"""

from __future__ import annotations

from enum import Enum, IntEnum, auto
from typing import TYPE_CHECKING, NoReturn

from cogwork.amqp.errors import Condition, LocalProtocolError, ProtocolError, Scope

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = (
    "CONNECTION",
    "CONNECTION_OVER",
    "LINK",
    "SESSION",
    "SESSION_OVER",
    "ConnectionState",
    "Event",
    "LinkState",
    "SessionState",
    "connection_step",
    "link_step",
    "session_step",
)


class Event(IntEnum):
    """What happens to a connection (header, open, close), session (begin, end) or link.

    The opening performative is START, the closing one STOP, closing with an error FAIL (only the
    sender's own state cares), anything in between FRAME.
    """

    SEND_HEADER = auto()
    RECEIVE_HEADER = auto()
    SEND_START = auto()
    RECEIVE_START = auto()
    SEND_FRAME = auto()
    RECEIVE_FRAME = auto()
    SEND_STOP = auto()
    SEND_FAIL = auto()
    RECEIVE_STOP = auto()


class ConnectionState(IntEnum):
    """§2.4.6, by its names."""

    START = auto()
    HDR_RCVD = auto()
    HDR_SENT = auto()
    HDR_EXCH = auto()
    OPEN_PIPE = auto()
    OC_PIPE = auto()
    OPEN_RCVD = auto()
    OPEN_SENT = auto()
    CLOSE_PIPE = auto()
    OPENED = auto()
    CLOSE_RCVD = auto()
    CLOSE_SENT = auto()
    DISCARDING = auto()
    END = auto()


class SessionState(IntEnum):
    """§2.5.5, by its names."""

    UNMAPPED = auto()
    BEGIN_SENT = auto()
    BEGIN_RCVD = auto()
    MAPPED = auto()
    END_SENT = auto()
    END_RCVD = auto()
    DISCARDING = auto()


class LinkState(IntEnum):
    """§2.6.3 to §2.6.6; the specification draws no table for links."""

    DETACHED = auto()
    ATTACH_SENT = auto()
    ATTACH_RCVD = auto()
    ATTACHED = auto()
    DETACH_PIPE = auto()
    """Detached by us before the peer answered our attach."""
    DETACH_SENT = auto()
    DETACH_RCVD = auto()


_C, _S, _L, _E = ConnectionState, SessionState, LinkState, Event

CONNECTION: Mapping[tuple[ConnectionState, Event], ConnectionState] = {
    (_C.START, _E.SEND_HEADER): _C.HDR_SENT,
    (_C.START, _E.RECEIVE_HEADER): _C.HDR_RCVD,
    (_C.HDR_RCVD, _E.SEND_HEADER): _C.HDR_EXCH,
    (_C.HDR_SENT, _E.RECEIVE_HEADER): _C.HDR_EXCH,
    (_C.HDR_SENT, _E.SEND_START): _C.OPEN_PIPE,
    (_C.OPEN_PIPE, _E.RECEIVE_HEADER): _C.OPEN_SENT,
    (_C.OPEN_PIPE, _E.SEND_FRAME): _C.OPEN_PIPE,
    (_C.OPEN_PIPE, _E.SEND_STOP): _C.OC_PIPE,
    (_C.OPEN_PIPE, _E.SEND_FAIL): _C.OC_PIPE,
    (_C.OC_PIPE, _E.RECEIVE_HEADER): _C.CLOSE_PIPE,
    (_C.HDR_EXCH, _E.SEND_START): _C.OPEN_SENT,
    (_C.HDR_EXCH, _E.RECEIVE_START): _C.OPEN_RCVD,
    (_C.OPEN_RCVD, _E.SEND_START): _C.OPENED,
    (_C.OPEN_RCVD, _E.RECEIVE_FRAME): _C.OPEN_RCVD,
    (_C.OPEN_SENT, _E.RECEIVE_START): _C.OPENED,
    (_C.OPEN_SENT, _E.SEND_FRAME): _C.OPEN_SENT,
    (_C.OPEN_SENT, _E.SEND_STOP): _C.CLOSE_PIPE,
    (_C.OPEN_SENT, _E.SEND_FAIL): _C.CLOSE_PIPE,
    (_C.CLOSE_PIPE, _E.RECEIVE_START): _C.CLOSE_SENT,
    (_C.OPENED, _E.SEND_FRAME): _C.OPENED,
    (_C.OPENED, _E.RECEIVE_FRAME): _C.OPENED,
    (_C.OPENED, _E.SEND_STOP): _C.CLOSE_SENT,
    (_C.OPENED, _E.SEND_FAIL): _C.DISCARDING,
    (_C.OPENED, _E.RECEIVE_STOP): _C.CLOSE_RCVD,
    (_C.CLOSE_RCVD, _E.SEND_FRAME): _C.CLOSE_RCVD,
    (_C.CLOSE_RCVD, _E.SEND_STOP): _C.END,
    (_C.CLOSE_RCVD, _E.SEND_FAIL): _C.END,
    (_C.CLOSE_SENT, _E.RECEIVE_FRAME): _C.CLOSE_SENT,
    (_C.CLOSE_SENT, _E.RECEIVE_STOP): _C.END,
    (_C.DISCARDING, _E.RECEIVE_FRAME): _C.DISCARDING,
    (_C.DISCARDING, _E.RECEIVE_STOP): _C.END,
}

CONNECTION_OVER = frozenset({_C.END, _C.CLOSE_SENT, _C.DISCARDING, _C.CLOSE_PIPE, _C.OC_PIPE})
"""Where nothing may be sent any more."""

SESSION: Mapping[tuple[SessionState, Event], SessionState] = {
    (_S.UNMAPPED, _E.SEND_START): _S.BEGIN_SENT,
    (_S.UNMAPPED, _E.RECEIVE_START): _S.BEGIN_RCVD,
    (_S.BEGIN_SENT, _E.RECEIVE_START): _S.MAPPED,
    (_S.BEGIN_SENT, _E.SEND_FRAME): _S.BEGIN_SENT,
    (_S.BEGIN_RCVD, _E.SEND_START): _S.MAPPED,
    (_S.BEGIN_RCVD, _E.RECEIVE_FRAME): _S.BEGIN_RCVD,
    (_S.MAPPED, _E.SEND_FRAME): _S.MAPPED,
    (_S.MAPPED, _E.RECEIVE_FRAME): _S.MAPPED,
    (_S.MAPPED, _E.SEND_STOP): _S.END_SENT,
    (_S.MAPPED, _E.SEND_FAIL): _S.DISCARDING,
    (_S.MAPPED, _E.RECEIVE_STOP): _S.END_RCVD,
    (_S.END_SENT, _E.RECEIVE_FRAME): _S.END_SENT,
    (_S.END_SENT, _E.RECEIVE_STOP): _S.UNMAPPED,
    (_S.END_RCVD, _E.SEND_FRAME): _S.END_RCVD,
    (_S.END_RCVD, _E.SEND_STOP): _S.UNMAPPED,
    (_S.END_RCVD, _E.SEND_FAIL): _S.UNMAPPED,
    (_S.DISCARDING, _E.RECEIVE_FRAME): _S.DISCARDING,
    (_S.DISCARDING, _E.RECEIVE_STOP): _S.UNMAPPED,
}

SESSION_OVER = frozenset({_S.UNMAPPED, _S.END_SENT, _S.DISCARDING})
"""Where nothing may be sent."""

LINK: Mapping[tuple[LinkState, Event], LinkState] = {
    (_L.DETACHED, _E.SEND_START): _L.ATTACH_SENT,
    (_L.DETACHED, _E.RECEIVE_START): _L.ATTACH_RCVD,
    (_L.ATTACH_SENT, _E.RECEIVE_START): _L.ATTACHED,
    (_L.ATTACH_SENT, _E.SEND_FRAME): _L.ATTACH_SENT,
    (_L.ATTACH_SENT, _E.SEND_STOP): _L.DETACH_PIPE,
    (_L.ATTACH_SENT, _E.SEND_FAIL): _L.DETACH_PIPE,
    (_L.DETACH_PIPE, _E.RECEIVE_START): _L.DETACH_SENT,
    (_L.ATTACH_RCVD, _E.SEND_START): _L.ATTACHED,
    (_L.ATTACH_RCVD, _E.RECEIVE_FRAME): _L.ATTACH_RCVD,
    (_L.ATTACHED, _E.SEND_FRAME): _L.ATTACHED,
    (_L.ATTACHED, _E.RECEIVE_FRAME): _L.ATTACHED,
    (_L.ATTACHED, _E.SEND_STOP): _L.DETACH_SENT,
    (_L.ATTACHED, _E.SEND_FAIL): _L.DETACH_SENT,
    (_L.ATTACHED, _E.RECEIVE_STOP): _L.DETACH_RCVD,
    (_L.DETACH_SENT, _E.RECEIVE_FRAME): _L.DETACH_SENT,
    (_L.DETACH_SENT, _E.RECEIVE_STOP): _L.DETACHED,
    (_L.DETACH_RCVD, _E.SEND_STOP): _L.DETACHED,
    (_L.DETACH_RCVD, _E.SEND_FAIL): _L.DETACHED,
}


def connection_step(state: ConnectionState, event: Event) -> ConnectionState:
    """Return the connection's next state.

    Raises:
        ProtocolError: The peer may not do this now.
        LocalProtocolError: This program may not do this now.
    """
    return CONNECTION.get((state, event)) or _refuse("connection", state, event, Scope.CONNECTION)


def session_step(state: SessionState, event: Event) -> SessionState:
    """Return the session's next state; raise as `connection_step` does."""
    return SESSION.get((state, event)) or _refuse("session", state, event, Scope.CONNECTION)


def link_step(state: LinkState, event: Event) -> LinkState:
    """Return the link's next state; raise as `connection_step` does, for the session."""
    return LINK.get((state, event)) or _refuse("link", state, event, Scope.SESSION)


def _refuse(subject: str, state: Enum, event: Event, scope: Scope) -> NoReturn:
    what = f"{event.name} is not allowed in state {state.name} of a {subject}"
    if event.name.startswith("RECEIVE"):
        raise ProtocolError(Condition.ILLEGAL_STATE, what, scope)
    raise LocalProtocolError(what)
