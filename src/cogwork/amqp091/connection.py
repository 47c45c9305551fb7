"""One end of a connection: octets in, commands and failures out, and the other way round.

It begins where the protocol headers are exchanged (`frames.answer_to_header`), and decides what the
protocol decides: which frame is allowed when, which limits hold, what a failure closes. What a
method does is the caller's to know.

Theory of operation. `receive` yields one event after another, and looks at the next frame only when
it is asked for the next event. So the caller answers an event before it takes the next: the
tune-ok's frame-max holds for the frame behind it, and a channel whose close was sent discards what
else is there for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cogwork.amqp091.assembler import MAX_BODY_OCTETS, Command
from cogwork.amqp091.channel import Channel, check_sender
from cogwork.amqp091.content import write_command
from cogwork.amqp091.errors import LocalProtocolError, ProtocolError, ReplyCode
from cogwork.amqp091.frames import MIN_FRAME_MAX, FrameReader, FrameType
from cogwork.amqp091.method import Role, decode_method
from cogwork.amqp091.methods import (
    ChannelClose,
    ConnectionClose,
    ConnectionTune,
    ConnectionTuneOk,
)
from cogwork.amqp091.states import (
    CONNECTION_OVER,
    ChannelState,
    ConnectionState,
    Direction,
    channel_step,
    connection_step,
)
from cogwork.amqp091.tuning import Limits, limits_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.amqp091.content import Content
    from cogwork.amqp091.frames import Frame
    from cogwork.amqp091.method import Method

__all__ = ("Connection", "Failure", "Received")


class Received(NamedTuple):
    """A command that the peer may send now.

    Attributes:
        channel: 0 for what concerns the connection.
        command: The method, and its content.
    """

    channel: int
    command: Command


class Failure(NamedTuple):
    """What the peer did wrong; to be answered by `Connection.fail`.

    Attributes:
        channel: Where.
        error: What.
    """

    channel: int
    error: ProtocolError


class Connection:
    """The protocol's state of one connection.

    Attributes:
        state: Where in its life it is.
        limits: What was agreed on; None before.
    """

    def __init__(self, role: Role, max_body_octets: int = MAX_BODY_OCTETS) -> None:
        """Begin behind the protocol headers.

        Args:
            role: What this end is.
            max_body_octets: The largest body taken.
        """
        self.state = ConnectionState.HEADER
        self.limits: Limits | None = None
        self._peer = Role.CLIENT if role is Role.SERVER else Role.SERVER
        self._max_body_octets = max_body_octets
        self._reader = FrameReader()
        self._is_readable = True
        self._frame_max = MIN_FRAME_MAX
        self._offer: ConnectionTune | None = None
        self._channels: dict[int, Channel] = {}

    @property
    def channels(self) -> frozenset[int]:
        """The numbers of the channels that are in use."""
        return frozenset(self._channels)

    def is_closed_by_peer(self, number: int) -> bool:
        """Return whether the peer has closed a channel, and waits for the answer."""
        channel = self._channels.get(number)
        return channel is not None and channel.state is ChannelState.CLOSE_RECEIVED

    # -- receiving

    def receive(self, octets: bytes) -> Iterator[Received | Failure]:
        """Take octets in and yield what they say; heartbeats say nothing.

        After a failure that has lost the frames' boundaries, nothing is taken in any more.
        """
        if not self._is_readable:
            return
        try:
            for frame in self._reader.feed(octets):
                event = self._event_of(frame)
                if event is not None:
                    yield event
        except ProtocolError as error:
            self._is_readable = False
            if self.state not in CONNECTION_OVER:
                yield Failure(0, error)

    def _event_of(self, frame: Frame) -> Received | Failure | None:
        try:
            command = self._command_of(frame)
        except ProtocolError as error:
            return Failure(frame.channel, error)
        return Received(frame.channel, command) if command else None

    def _command_of(self, frame: Frame) -> Command | None:
        if self.state in CONNECTION_OVER:
            return self._receive_close(frame)
        if frame.type not in _FRAME_TYPES:
            raise _frame_error(ReplyCode.FRAME_ERROR, "unknown frame type", frame)
        if frame.type == FrameType.HEARTBEAT:
            _check_heartbeat(frame)
            return None
        if frame.channel:
            return self._receive_on_channel(frame)
        if frame.type != FrameType.METHOD:
            raise _frame_error(ReplyCode.UNEXPECTED_FRAME, "unexpected frame", frame)
        return self._receive_method(decode_method(frame.payload))

    def _receive_close(self, frame: Frame) -> Command | None:
        """Discard all but a close and its answer: the peer may not know yet that it is over."""
        if frame.channel or frame.type != FrameType.METHOD:
            return None
        try:
            method = decode_method(frame.payload)
            self.state = connection_step(self.state, Direction.RECEIVED, type(method))
        except ProtocolError:
            return None
        return Command(method, None)

    def _receive_method(self, method: Method) -> Command:
        check_sender(method, self._peer)
        after = connection_step(self.state, Direction.RECEIVED, type(method))
        self._enter(after, method, self._limits_after(method))
        return Command(method, None)

    def _limits_after(self, method: Method) -> Limits | None:
        """Return the limits that hold after a method on channel 0.

        Raises:
            ProtocolError: They are not what was offered.
        """
        if not isinstance(method, ConnectionTuneOk):
            return self.limits
        assert self._offer is not None, "no tune-ok without a tune"
        return limits_of(self._offer, method)

    def _enter(self, state: ConnectionState, method: Method, limits: Limits | None) -> None:
        self.state = state
        if isinstance(method, ConnectionTune):
            self._offer = method
        if limits is not None:
            self.limits = limits
            self._frame_max = self._reader.frame_max = limits.frame_max

    def _receive_on_channel(self, frame: Frame) -> Command | None:
        if self.state is not ConnectionState.RUNNING:
            raise _frame_error(ReplyCode.UNEXPECTED_FRAME, "unexpected frame", frame)
        channel = self._channels.get(frame.channel) or self._new_channel()
        if channel is None:
            raise ProtocolError(ReplyCode.NOT_ALLOWED, self._describe_channels())
        command = channel.receive(frame)
        self._keep(frame.channel, channel)
        return command

    def _new_channel(self) -> Channel | None:
        """Return a channel that is not open yet, or None where no more are allowed."""
        assert self.limits is not None, "a connection runs within limits"
        if len(self._channels) >= self.limits.channels:
            return None
        return Channel(self._peer, self._max_body_octets)

    def _describe_channels(self) -> str:
        opened = len(self._channels)
        return (
            f"number of channels opened ({opened}) has reached the negotiated channel_max "
            f"({opened})"
        )

    def _keep(self, number: int, channel: Channel) -> None:
        """Hold a channel while its number is in use, and no longer."""
        if channel.state is ChannelState.CLOSED:
            self._channels.pop(number, None)
        else:
            self._channels[number] = channel

    # -- sending

    def send(
        self, out: bytearray, channel: int, method: Method, content: Content | None = None
    ) -> None:
        """Append a command's frames to `out`.

        Raises:
            LocalProtocolError: It may not be sent now.
            EncodeError: It has no encoding, or does not fit into the peer's frames.
        """
        if self._peer == method.SENT_BY:
            raise LocalProtocolError(f"{self._peer.name} alone sends '{method.NAME}'")
        if channel:
            self._send_on_channel(out, channel, method, content)
            return
        after = connection_step(self.state, Direction.SENT, type(method))
        try:
            limits = self._limits_after(method)
        except ProtocolError as error:
            raise LocalProtocolError(error.explanation) from None
        write_command(out, 0, method, content, self._frame_max)
        self._enter(after, method, limits)

    def _send_on_channel(
        self, out: bytearray, number: int, method: Method, content: Content | None
    ) -> None:
        if self.state is not ConnectionState.RUNNING:
            raise LocalProtocolError(
                f"'{method.NAME}' on channel {number} in connection state {self.state.name.lower()}"
            )
        channel = self._channels.get(number) or self._new_channel()
        if channel is None:
            raise LocalProtocolError(self._describe_channels())
        after = channel_step(channel.state, Direction.SENT, type(method))
        write_command(out, number, method, content, self._frame_max)
        channel.enter(after)
        self._keep(number, channel)

    def fail(self, out: bytearray, failure: Failure) -> None:
        """Append the close that a failure needs: of its channel, or of the connection.

        Raises:
            LocalProtocolError: What it would close is closed already.
        """
        channel, error = failure
        is_hard = error.is_hard or not channel
        close = ConnectionClose if is_hard else ChannelClose
        method = close(
            reply_code=error.code,
            reply_text=error.reply_text,
            class_id=error.class_id,
            method_id=error.method_id,
        )
        self.send(out, 0 if is_hard else channel, method)


_FRAME_TYPES = frozenset(FrameType)

_SNIPPET_OCTETS = 16


def _check_heartbeat(frame: Frame) -> None:
    if frame.payload:
        raise _frame_error(ReplyCode.FRAME_ERROR, "heartbeat with a payload", frame)
    if frame.channel:
        raise _frame_error(ReplyCode.UNEXPECTED_FRAME, "unexpected frame", frame)


def _frame_error(code: ReplyCode, what: str, frame: Frame) -> ProtocolError:
    snippet = frame.payload[:_SNIPPET_OCTETS]
    shown = "all" if snippet == frame.payload else f"first {_SNIPPET_OCTETS}"
    return ProtocolError(
        code, f"{what}: type {frame.type}, channel {frame.channel}, {shown} octets = {snippet!r}"
    )
