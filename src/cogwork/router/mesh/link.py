"""One connection to a neighbour: what has been heard on it.

Hearing a neighbour is not enough to use the link: it must hear us, too, on this connection (the
two-way check of OSPF, RFC 2328 §10.5). Its hello says whose hello it heard last: our incarnation.
"""

from __future__ import annotations

from enum import Enum, auto
from math import inf
from typing import TYPE_CHECKING

from cogwork.router.mesh.bounds import (
    OFFENCES_BURST,
    OFFENCES_PER_S,
    TOKENS_BURST,
    TOKENS_PER_S,
)
from cogwork.router.mesh.meter import Meter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.router.mesh.messages import Figures, Hello
    from cogwork.router.mesh.own import Own

__all__ = ("LINK", "Event", "Link", "State")


class State(Enum):
    """How far a link has come."""

    DOWN = auto()
    """No connection."""
    WAITING = auto()
    """Connected; nothing heard."""
    HEARD = auto()
    """The neighbour's hellos arrive; it has not yet said that it hears ours."""
    TWO_WAY = auto()
    REFUSED = auto()
    """It may not be used; the connection is being closed."""


class Event(Enum):
    """What happens to a link."""

    CONNECTED = auto()
    HELLO = auto()
    """A hello that does not say that ours were heard."""
    HELLO_BACK = auto()
    """A hello that does."""
    REFUSE = auto()
    CLOSED = auto()


_S, _E = State, Event

LINK: Mapping[tuple[State, Event], State] = {
    (_S.DOWN, _E.CONNECTED): _S.WAITING,
    (_S.WAITING, _E.HELLO): _S.HEARD,
    (_S.WAITING, _E.HELLO_BACK): _S.TWO_WAY,
    (_S.WAITING, _E.REFUSE): _S.REFUSED,
    (_S.WAITING, _E.CLOSED): _S.DOWN,
    (_S.HEARD, _E.HELLO): _S.HEARD,
    (_S.HEARD, _E.HELLO_BACK): _S.TWO_WAY,
    (_S.HEARD, _E.REFUSE): _S.REFUSED,
    (_S.HEARD, _E.CLOSED): _S.DOWN,
    (_S.TWO_WAY, _E.HELLO): _S.HEARD,
    (_S.TWO_WAY, _E.HELLO_BACK): _S.TWO_WAY,
    (_S.TWO_WAY, _E.REFUSE): _S.REFUSED,
    (_S.TWO_WAY, _E.CLOSED): _S.DOWN,
    (_S.REFUSED, _E.CLOSED): _S.DOWN,
}


class Link:
    """A connection, seen from one end.

    Attributes:
        number: How the container calls it.
        is_dialled: Whether this end dialled.
        connection: The number that the dialler gave; both ends know it after a hello.
        cost: As configured here; 0 for no opinion.
        peer_cost: As configured at the other end.
        state: How far it has come.
        peer: The neighbour's id; empty until it is heard.
        incarnation: The neighbour's; 0 until it is heard.
        figures: What the neighbour says of itself.
        interval_s: Between the neighbour's hellos.
        heard_s: When something came last.
        two_way_s: When the link became two-way.
        hello_due_s: When our next hello goes out.
        digest: What the neighbour's last hello said of what it knows.
        meter: What the neighbour may still send.
        offences: How often it may still offer what is beyond the bounds.
    """

    __slots__ = (
        "connection",
        "cost",
        "digest",
        "figures",
        "heard_s",
        "hello_due_s",
        "incarnation",
        "interval_s",
        "is_dialled",
        "meter",
        "number",
        "offences",
        "peer",
        "peer_cost",
        "state",
        "two_way_s",
    )

    def __init__(
        self, number: int, *, is_dialled: bool, cost: int, interval_s: float, now_s: float
    ) -> None:
        self.number = number
        self.is_dialled = is_dialled
        self.connection = number if is_dialled else 0
        self.cost = cost
        self.peer_cost = 0
        self.state = State.DOWN
        self.peer = ""
        self.incarnation = 0
        self.figures: Figures | None = None
        self.interval_s = interval_s
        self.heard_s = now_s
        self.two_way_s = inf
        self.hello_due_s = now_s
        self.digest = 0
        self.meter = Meter(TOKENS_PER_S, TOKENS_BURST, now_s)
        self.offences = Meter(OFFENCES_PER_S, OFFENCES_BURST, now_s)

    @property
    def effective_cost(self) -> int:
        """The cost that is advertised: this end's, else the other end's, else 1."""
        return self.cost or self.peer_cost or 1

    def step(self, event: Event) -> None:
        """Go on to the next state; what the table does not list must not happen."""
        self.state = LINK[self.state, event]

    def hear(self, hello: Hello, own: Own, now_s: float) -> None:
        """Take in an admitted hello."""
        before = self.state
        self.heard_s = now_s
        self.step(Event.HELLO_BACK if own.was(hello.heard) else Event.HELLO)
        self.peer = hello.id
        self.incarnation = hello.incarnation
        self.figures = hello.figures
        self.peer_cost = hello.cost
        self.interval_s = hello.interval_ms / 1000
        self.digest = hello.digest
        if not self.is_dialled:
            self.connection = hello.connection
        if self.state is State.TWO_WAY and before is not State.TWO_WAY:
            self.two_way_s = now_s

    def is_proven_after(self, other: Link) -> bool:
        """Return whether this link works, and can be relied on in place of another to the same end.

        Something must have come on it after the other had become two-way: a broken connection never
        proves itself. And it must have been two-way for a while, so that it is so at the other end,
        too, which would have no link otherwise.
        """
        return self.heard_s > max(other.two_way_s, self.two_way_s + self.interval_s / 2)

    def rank(self, own_id: str) -> tuple[str, int]:
        """Order the links to one neighbour, the same at both ends: the lowest is kept.

        The container with the smaller id is the one that dials; of two connections that the same
        one dialled the later is kept, as the earlier may be broken without its other end knowing.
        """
        return (own_id if self.is_dialled else self.peer, -self.connection)
