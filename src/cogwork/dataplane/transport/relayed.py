"""A session that two other containers hold with each other by way of this one (AMQP 1.0 §2.5).

Theory of operation. A relayed session has two sides, one on each connection. Begin and end are
passed from one side to the other here, with their channels put right; every other frame passes
below, from `Splice` to `Splice`. Where one connection is lost, the other side is ended in its name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp.errors import AmqpError, Condition
from cogwork.amqp.performatives import Begin, End
from cogwork.dataplane.transport.splice import Splice

if TYPE_CHECKING:
    from cogwork.amqp.performatives import Performative
    from cogwork.amqp.types import Symbol
    from cogwork.dataplane.connection import Connection

__all__ = ("RelayedSession", "relay")

_NOTHING = Begin(next_outgoing_id=0, incoming_window=0, outgoing_window=0)


class RelayedSession:
    """One side.

    Attributes:
        connection: The connection it runs on.
        channel: The channel that this side sends on.
        remote_channel: The peer's; None until it began.
        end: The compiled half.
        other: The other side.
    """

    __slots__ = (
        "_has_begun",
        "_has_ended",
        "_peer_ended",
        "channel",
        "connection",
        "end",
        "other",
        "remote_channel",
    )

    def __init__(self, connection: Connection, channel: int) -> None:
        self.connection = connection
        self.channel = channel
        self.remote_channel: int | None = None
        self.end = Splice(connection.wire, channel)
        self.end.owner = self
        self.other: RelayedSession | None = None
        self._has_begun = False
        self._has_ended = False
        self._peer_ended = False

    def join(self, other: RelayedSession) -> None:
        """Make this and another the two sides of one session."""
        self.other = other
        other.other = self
        self.end.join(other.end)

    @property
    def messages_in(self) -> int:
        """Counts the messages that came from this side's peer and were passed on."""
        return self.end.messages

    @property
    def messages_out(self) -> int:
        """Counts the messages that were passed on to this side's peer."""
        return 0 if self.end.other is None else self.end.other.messages

    def begin(self, like: Begin, properties: dict[Symbol, object] | None = None) -> None:
        """Send this side's begin, first or in answer, as the other side's peer said it."""
        if self._has_begun or self._has_ended:
            return
        self._has_begun = True
        self.write(
            Begin(
                remote_channel=self.remote_channel,
                next_outgoing_id=like.next_outgoing_id,
                incoming_window=like.incoming_window,
                outgoing_window=like.outgoing_window,
                handle_max=like.handle_max,
                properties=properties,
            )
        )

    def write(self, performative: Performative) -> None:
        """Send a performative on this side's channel."""
        self.connection.write(self.channel, performative)

    def on_begin(self, channel: int, begin: Begin) -> None:
        """Take in the begin of this side's peer; an answer is passed to who asked."""
        self.remote_channel = channel
        self.connection.wire.relays = True
        self.connection.wire.map_session(channel, self.end)
        if begin.remote_channel is not None and self.other is not None:
            self.other.begin(begin, begin.properties)

    def on_performative(self, performative: Performative) -> None:
        """Take in an end; pass on what `Splice` did not know by its first octets."""
        if not isinstance(performative, End):
            if self.other is not None and not self._has_ended:
                self.other.write(performative)
            return
        self._peer_ended = True
        self.end.end()
        if self.other is not None:
            self.other.finish(performative.error)
        self.finish(None)
        self.connection.forget_session(self)

    def finish(self, error: AmqpError | None) -> None:
        """End this side, once; a peer that began is owed an answer to that first."""
        if self._has_ended:
            return
        self.begin(_NOTHING)
        self._has_ended = True
        self.write(End(error=error))
        if self._peer_ended:
            self.connection.forget_session(self)

    def close(self, error: AmqpError | None = None) -> None:
        """End both sides."""
        self.end.end()
        self.finish(error)
        if self.other is not None:
            self.other.end.end()
            self.other.finish(error)

    def lose(self) -> None:
        """End with its connection: the other side is told."""
        self._has_ended = self._peer_ended = True
        self.end.end()
        other, self.other = self.other, None
        if other is not None:
            other.end.end()
            other.finish(
                AmqpError(
                    condition=Condition.CONNECTION_FORCED,
                    description="a container on the way cannot be reached any more",
                )
            )


def relay(
    inward: RelayedSession, begin: Begin, outward: RelayedSession, properties: dict[Symbol, object]
) -> None:
    """Pass a session on: from the side where it began to the one that leads on.

    Args:
        inward: Where the begin came, which was given to it.
        begin: That begin.
        outward: On the connection to the next container.
        properties: What the begin says there.
    """
    inward.join(outward)
    outward.begin(begin, properties)
