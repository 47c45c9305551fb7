"""Puts the frames of a channel together to commands: a method, and its content if it has one.

The specification (§4.2.6) allows nothing between method, content header and bodies of one channel;
frames of other channels may come between. Texts are RabbitMQ's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from cogwork.amqp091.content import Content, ContentHeader, decode_content_header
from cogwork.amqp091.errors import ProtocolError, ReplyCode
from cogwork.amqp091.frames import FrameType
from cogwork.amqp091.method import decode_method

if TYPE_CHECKING:
    from cogwork.amqp091.frames import Frame
    from cogwork.amqp091.method import Method

__all__ = ("MAX_BODY_OCTETS", "Assembler", "Command")

MAX_BODY_OCTETS: Final = 134_217_728
"""How large a body may be: RabbitMQ's `max_message_size`."""


class Command(NamedTuple):
    """A method with all that belongs to it.

    Attributes:
        method: The method.
        content: None if and only if the method carries none.
    """

    method: Method
    content: Content | None


class Assembler:
    """What has come of the next command of one channel."""

    __slots__ = ("_body", "_header", "_max_body_octets", "_method")

    def __init__(self, max_body_octets: int = MAX_BODY_OCTETS) -> None:
        """Begin with nothing.

        Args:
            max_body_octets: The largest body taken.
        """
        self._max_body_octets = max_body_octets
        self._method: Method | None = None
        self._header: ContentHeader | None = None
        self._body = bytearray()

    @property
    def method(self) -> Method | None:
        """The method whose content is coming, or None where a method is expected next."""
        return self._method

    def feed(self, frame: Frame) -> Command | None:
        """Take a frame in; return the command that it completes.

        Raises:
            ProtocolError: It is not what has to come next. What has come of the command is dropped.
        """
        try:
            command = self._take(frame)
        except ProtocolError as error:
            at_fault = self._method
            self.clear()
            if at_fault is None:
                raise
            raise error.of_method(at_fault.CLASS_ID, at_fault.METHOD_ID) from None
        if command is not None:
            self.clear()
        return command

    def clear(self) -> None:
        """Drop what has come of a command."""
        self._method = self._header = None
        self._body = bytearray()

    def _take(self, frame: Frame) -> Command | None:
        if self._method is None:
            return self._take_method(frame)
        if self._header is None:
            return self._take_header(frame, self._method)
        return self._take_body(frame, self._method, self._header)

    def _take_method(self, frame: Frame) -> Command | None:
        if frame.type != FrameType.METHOD:
            raise _unexpected("expected method frame, got non method frame instead")
        method = decode_method(frame.payload)
        if not method.HAS_CONTENT:
            return Command(method, None)
        self._method = method
        return None

    def _take_header(self, frame: Frame, method: Method) -> Command | None:
        expected = f"expected content header for class {method.CLASS_ID}"
        if frame.type != FrameType.HEADER:
            raise _unexpected(f"{expected}, got non content header frame instead")
        header = decode_content_header(frame.payload)
        if header.class_id != method.CLASS_ID:
            raise _unexpected(f"{expected}, got one for class {header.class_id} instead")
        if header.weight:
            raise _unexpected(f"{expected}, got one of weight {header.weight} instead")
        if header.body_octets > self._max_body_octets:
            raise ProtocolError(
                ReplyCode.PRECONDITION_FAILED,
                f"message size {header.body_octets} is larger than configured max size "
                f"{self._max_body_octets}",
            )
        self._header = header
        return self._completed(method, header)

    def _take_body(self, frame: Frame, method: Method, header: ContentHeader) -> Command | None:
        if frame.type != FrameType.BODY:
            raise _unexpected("expected content body, got non content body frame instead")
        left = header.body_octets - len(self._body)
        if len(frame.payload) > left:
            raise ProtocolError(
                ReplyCode.FRAME_ERROR, "content body frame exceeds remaining content size"
            )
        if len(frame.payload) == header.body_octets:  # the usual case copies nothing
            return Command(method, Content(header.property_octets, frame.payload))
        # One buffer, not a list of pieces: these may be of one octet each.
        self._body += frame.payload
        return self._completed(method, header)

    def _completed(self, method: Method, header: ContentHeader) -> Command | None:
        if len(self._body) < header.body_octets:
            return None
        return Command(method, Content(header.property_octets, bytes(self._body)))


def _unexpected(explanation: str) -> ProtocolError:
    return ProtocolError(ReplyCode.UNEXPECTED_FRAME, explanation)
