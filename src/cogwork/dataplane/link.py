"""A link as Python sees it: attach and detach, for either role (AMQP 1.0 §2.6).

Theory of operation. `Link` follows the state table and holds what was negotiated. Transfers never
come here: they belong to `end`, the compiled half, which exists from the moment the link's host
accepts it (or, where this side attaches first, from the start) until it is detached.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, cast

from cogwork.amqp.errors import AmqpError, Condition, FrameTooLarge
from cogwork.amqp.extensions import CONSUMER_LOST
from cogwork.amqp.performatives import (
    Attach,
    Detach,
    ReceiverSettleMode,
    Role,
    SenderSettleMode,
)
from cogwork.amqp.states import Event, LinkState, link_step

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.amqp.outcomes import DeliveryState
    from cogwork.amqp.terminus import Coordinator, Source, Target
    from cogwork.amqp.types import Symbol
    from cogwork.dataplane.session import SessionEndpoint
    from cogwork.dataplane.transport.incoming import IncomingLink
    from cogwork.dataplane.transport.outgoing import OutgoingLink

__all__ = ("Ending", "Link")

_CARRIES = frozenset({LinkState.ATTACHED, LinkState.ATTACH_RCVD, LinkState.ATTACH_SENT})


class Ending(Enum):
    """How a link, or its session or connection, ended."""

    LOST = auto()
    """The connection broke, or this side ended it, or the peer did because of an error."""
    DETACHED = auto()
    """The peer detached the link without closing it, so that it may be resumed (§2.6.5)."""
    CLOSED = auto()
    """The peer closed the link (§2.6.6)."""
    SESSION_ENDED = auto()
    """The peer ended the session in order."""
    CONNECTION_CLOSED = auto()
    """The peer closed the connection in order."""


class Link:
    """One end of a link.

    Attributes:
        session: The session it is attached on.
        name: Its name, given by whoever attached first.
        role: This side's role.
        handle: The handle that this side sends with.
        remote_handle: The peer's; None until it attached.
        remote: What the peer said in its attach; None until then.
        end: The compiled half; None before it is accepted and after it was refused.
        context: Whatever the host keeps with the link.
        state: Where in its life it is.
        ending: How it ended; meaningless while it has not.
        end_error: What the peer gave as the reason when it detached; None where it gave none.
        was_left: Whether the peer has detached it without an end to it (AMQP 1.0 §2.6.4): what it
            has of it, it keeps.
    """

    __slots__ = (
        "_answer",
        "context",
        "end",
        "end_error",
        "ending",
        "handle",
        "name",
        "remote",
        "remote_handle",
        "role",
        "session",
        "state",
        "was_left",
    )

    def __init__(self, session: SessionEndpoint, name: str, role: Role, handle: int) -> None:
        self.session = session
        self.name = name
        self.role = role
        self.handle = handle
        self.remote_handle: int | None = None
        self.remote: Attach | None = None
        self.end: IncomingLink | OutgoingLink | None = None
        self.context: object = None
        self.state = LinkState.DETACHED
        self.was_left = False
        self.ending = Ending.LOST
        self.end_error: AmqpError | None = None
        self._answer: Callable[[], None] | None = None

    def attach(
        self,
        *,
        source: Source | None,
        target: Target | Coordinator | None,
        snd_settle_mode: SenderSettleMode = SenderSettleMode.MIXED,
        rcv_settle_mode: ReceiverSettleMode = ReceiverSettleMode.FIRST,
        max_message_size: int | None = None,
        unsettled: dict[bytes, DeliveryState | None] | None = None,
        properties: dict[Symbol, object] | None = None,
        offered_capabilities: tuple[Symbol, ...] = (),
        desired_capabilities: tuple[Symbol, ...] = (),
    ) -> None:
        """Send this side's attach, first or in answer; arguments are the performative's fields.

        Raises:
            FrameTooLarge: The peer takes no frame of that size; it would end the connection.
        """
        attach = Attach(
            name=self.name,
            handle=self.handle,
            role=self.role,
            snd_settle_mode=snd_settle_mode,
            rcv_settle_mode=rcv_settle_mode,
            source=source,
            target=target,
            unsettled=unsettled,
            initial_delivery_count=0 if self.role is Role.SENDER else None,
            max_message_size=max_message_size,
            offered_capabilities=offered_capabilities,
            desired_capabilities=desired_capabilities,
            properties=properties,
        )
        state = link_step(self.state, Event.SEND_START)
        self.session.write(attach)
        self.state = state

    def carry(self, end: IncomingLink | OutgoingLink) -> None:
        """Let transfers and flows of the peer's handle reach `end` from now on."""
        self.end = end
        end.owner = self
        if self.remote is not None:
            self._meet(self.remote)

    def refuse(self, condition: Symbol, description: str) -> None:
        """Answer an attach with one that has no terminus, and detaches (AMQP 1.0 §2.6.3).

        Where not even that fits into a frame of the peer's, for a link's name may be as long as the
        frames that this side takes, the session ends.
        """
        try:
            self.attach(source=None, target=None)
        except FrameTooLarge as error:
            condition = Condition.FRAME_SIZE_TOO_SMALL
            self.session.close(AmqpError(condition=condition, description=str(error)))
            return
        self.detach(AmqpError(condition=condition, description=description))

    def put_off(self, answer: Callable[[], None]) -> None:
        """Keep the answer to the peer's attach until it is known what to say.

        Args:
            answer: Calls `attach`; a detach by either side has it called too.
        """
        self._answer = answer

    @property
    def is_put_off(self) -> bool:
        """Whether the peer's attach is not answered yet."""
        return self._answer is not None

    def answer(self) -> None:
        """Give the answer that was put off, if there is one."""
        answer, self._answer = self._answer, None
        if answer is not None:
            answer()
            if self.remote_handle is not None and self.is_attached and not self.is_put_off:
                self.session.end.take_early_flow(self.remote_handle)

    def on_attach(self, attach: Attach) -> None:
        """Take in the peer's attach."""
        self.state = link_step(self.state, Event.RECEIVE_START)
        self.remote = attach
        self.remote_handle = attach.handle
        self._meet(attach)

    def _meet(self, attach: Attach) -> None:
        self.session.end.map_link(attach.handle, self.end or self)
        if self.role is Role.RECEIVER and self.end is not None and attach.initial_delivery_count:
            cast("IncomingLink", self.end).start_at(attach.initial_delivery_count)

    @property
    def is_lost(self) -> bool:
        """Whether the peer may yet settle what it was sent: it has not ended in order."""
        if self.ending is Ending.LOST:
            return True
        return self.end_error is not None and self.end_error.condition == CONSUMER_LOST

    @property
    def is_attached(self) -> bool:
        """Whether neither side has detached."""
        return self.state in _CARRIES

    def detach(self, error: AmqpError | None = None, *, closed: bool = True) -> None:
        """Detach from this side; without effect on a link that is detached already.

        Args:
            error: Why, for the peer.
            closed: Whether the link ends for good; False leaves it to be resumed.
        """
        if not self.is_attached or self.session.is_over:
            return
        self.answer()
        if not self.is_attached or self.session.is_over:
            return  # the answer was a refusal
        self.state = link_step(self.state, Event.SEND_FAIL if error else Event.SEND_STOP)
        self._stop()
        self.session.end.write_settlements()
        self.session.write(Detach(handle=self.handle, closed=closed, error=error))

    def on_detach(self, detach: Detach) -> None:
        """Take in the peer's detach and answer it."""
        self.was_left = not detach.closed
        self.answer()
        if self.session.is_over:
            return  # the answer did not fit
        was_ours = not self.is_attached
        if not was_ours:
            self.ending = Ending.CLOSED if detach.closed else Ending.DETACHED
            self.end_error = detach.error
        self.state = link_step(self.state, Event.RECEIVE_STOP)
        self._stop()
        if not was_ours:
            self.state = link_step(self.state, Event.SEND_STOP)
            self.session.end.write_settlements()
            self.session.write(Detach(handle=self.handle, closed=detach.closed))
        self.session.forget_link(self)
        self.session.connection.host.on_detached(self, detach.error, closed=detach.closed)

    def on_drained(self, _end: IncomingLink) -> None:
        """The sender used up the credit that it was asked to drain."""
        self.session.connection.host.on_drained(self)

    def lose(self, ending: Ending = Ending.LOST) -> None:
        """End with its session or connection: nothing more is said to the peer."""
        self.ending = ending
        self.state = LinkState.DETACHED
        self._answer = None
        self._stop()

    def _stop(self) -> None:
        """End the compiled half, once: the peer's answer to a detach is no second end."""
        if self.end is not None and not self.end.detached:
            self.session.connection.host.on_stopping(self)
            self.end.detach()
