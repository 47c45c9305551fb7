"""One channel: its state, and the command that is coming (AMQP 0-9-1 §1.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp091.assembler import Assembler
from cogwork.amqp091.errors import ProtocolError, ReplyCode
from cogwork.amqp091.frames import FrameType
from cogwork.amqp091.method import method_ids
from cogwork.amqp091.methods import ChannelClose, ChannelCloseOk, ConnectionStart
from cogwork.amqp091.states import CHANNEL_CLOSING, ChannelState, Direction, channel_step

if TYPE_CHECKING:
    from cogwork.amqp091.assembler import Command
    from cogwork.amqp091.frames import Frame
    from cogwork.amqp091.method import Method, Role

__all__ = ("Channel", "check_sender")

_CLOSES = {
    (ChannelClose.CLASS_ID, ChannelClose.METHOD_ID),
    (ChannelCloseOk.CLASS_ID, ChannelCloseOk.METHOD_ID),
}


def check_sender(method: Method, peer: Role) -> None:
    """Check that a method comes from an end that may send it.

    Raises:
        ProtocolError: It does not (503).
    """
    if not method.SENT_BY & peer:
        raise ProtocolError(
            ReplyCode.COMMAND_INVALID,
            f"unexpected method '{method.NAME}' from {peer.name}",
            method.CLASS_ID,
            method.METHOD_ID,
        )


class Channel:
    """One channel of a connection.

    Attributes:
        state: Where in its life it is.
    """

    __slots__ = ("_assembler", "_peer", "state")

    def __init__(self, peer: Role, max_body_octets: int) -> None:
        """Begin closed.

        Args:
            peer: Who is at the other end.
            max_body_octets: The largest body taken.
        """
        self.state = ChannelState.CLOSED
        self._peer = peer
        self._assembler = Assembler(max_body_octets)

    def receive(self, frame: Frame) -> Command | None:
        """Take a frame in; return the command that it completes.

        Whether a method may come is decided by its own frame, before its content comes.

        Raises:
            ProtocolError: The peer may not send this now.
        """
        if self.state in CHANNEL_CLOSING and not _is_close(frame):
            return None
        command = self._assembler.feed(frame)
        method = command.method if command else self._assembler.method
        if frame.type == FrameType.METHOD and method is not None:
            self._check(method)
            self.state = channel_step(self.state, Direction.RECEIVED, type(method))
        return command

    def _check(self, method: Method) -> None:
        if method.CLASS_ID == ConnectionStart.CLASS_ID:
            raise ProtocolError(
                ReplyCode.COMMAND_INVALID,
                f"unexpected method '{method.NAME}' on a channel other than 0",
                method.CLASS_ID,
                method.METHOD_ID,
            )
        check_sender(method, self._peer)

    def enter(self, state: ChannelState) -> None:
        """Take the state that something sent leads to (`states.channel_step`)."""
        self.state = state
        if state in CHANNEL_CLOSING:
            self._assembler.clear()


def _is_close(frame: Frame) -> bool:
    """Return whether a frame is a close or its answer, without looking further into it."""
    try:
        return frame.type == FrameType.METHOD and method_ids(frame.payload) in _CLOSES
    except ProtocolError:
        return False
