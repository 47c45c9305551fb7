"""AMQP over WebSocket as a layer without I/O (AMQP WebSocket Binding 1.0; RFC 6455).

Theory of operation. The client asks for the subprotocol `amqp`; after the handshake both sides send
binary messages. A message's borders mean nothing to AMQP (binding §2.4), so payload is handed on
piece by piece as it arrives: nothing is assembled, and no message is too big. What is sent leaves
as one message a call.

A web page can make its visitor's browser connect anywhere, loopback included, where anonymous
clients may be welcome. Browsers name the page in `Origin`, so a request that has one is served only
if that origin is allowed.
"""

from __future__ import annotations

from enum import Enum, auto
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from wsproto import ConnectionType, WSConnection
from wsproto.connection import ConnectionState
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    Pong,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import RemoteProtocolError

from cogwork.io.stream import Chunk, StreamError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

__all__ = ("SUBPROTOCOL", "WebSocketError", "WebSocketStream")

SUBPROTOCOL = "amqp"

SLICE_BYTES = 16 * 1024
FRAMES_MAX = 1200
"""So many octets have no more frames: one of a client's that carries the smallest frame of AMQP has
14. Those that carry nothing take as long to look at."""

REQUEST_BYTES_MAX = 16 * 1024
"""The longest handshake request: a browser's cookies fit, a flood does not."""

REFUSAL_BYTES_MAX = 300
"""How much of a server's reason for refusing us is quoted."""

_REQUEST_START = b"GET "
_REQUEST_END = b"\r\n\r\n"


class WebSocketError(StreamError):
    """The peer does not speak AMQP over WebSocket, broke its rules, or refused us."""


class _State(Enum):
    CONNECTING = auto()
    OPEN = auto()
    CLOSED = auto()


class WebSocketStream:
    """One WebSocket connection, either role."""

    def __init__(
        self,
        server_side: bool,
        host: str = "localhost",
        path: str = "/",
        origins: Collection[str] = (),
    ) -> None:
        """Start the handshake; a client's request can be taken at once.

        Args:
            server_side: Whether this is the accepting side.
            host: Client only: the server's name, with the port if it is not the usual one.
            path: Client only: the path to ask for.
            origins: Server only: web pages, such as `https://example.org`, that browsers
                may connect for; `*` allows all. A client that is no browser names none.
        """
        role = ConnectionType.SERVER if server_side else ConnectionType.CLIENT
        self._websocket = WSConnection(role)
        self._server_side = server_side
        self._origins = frozenset(origins)
        self._state = _State.CONNECTING
        self._request = bytearray()
        self._payload: list[bytes] = []
        self._waiting = bytearray()
        self._output: list[bytes] = []
        self._pong: Pong | None = None
        self._refused_status = 0
        self._refusal = b""
        self.peer_closed = False
        self.path = path
        if not server_side:
            self._emit(Request(host=host, target=path, subprotocols=[SUBPROTOCOL]))

    @property
    def ready(self) -> bool:
        """Whether the handshake is complete and the stream not closed."""
        return self._state is _State.OPEN

    def feed(self, data: Chunk) -> bytes:
        """Take bytes of the network and return the payload in them.

        Args:
            data: Bytes from the layer below, cut anywhere.

        Returns:
            Payload of binary messages.

        Raises:
            WebSocketError: The handshake failed or a frame was bad.
        """
        if self._state is _State.CONNECTING:
            self._feed_handshake(bytes(data))
        elif self._state is _State.OPEN:
            self._receive(bytes(data))
        payload, self._payload = self._payload, []
        return payload[0] if len(payload) == 1 else b"".join(payload)

    def send(self, data: Chunk) -> None:
        """Wrap `data` into one binary message; before the handshake is complete it waits."""
        if self._state is _State.CONNECTING:
            self._waiting += data
        elif self._state is _State.OPEN and data:
            self._emit(BytesMessage(data=bytes(data)))

    def take_output(self) -> bytes:
        """Return the bytes to be sent."""
        output, self._output = self._output, []
        return output[0] if len(output) == 1 else b"".join(output)

    def ping(self) -> None:
        """Ask the peer for a sign of life; keep proxies from closing an idle connection."""
        if self._state is _State.OPEN:
            self._emit(Ping())

    def close(self, code: int = CloseReason.NORMAL_CLOSURE, reason: str = "") -> None:
        """Say close, once, and end the stream.

        Args:
            code: The status, RFC 6455 §7.4.1.
            reason: For people; the library cuts it to 123 bytes.
        """
        if self._state is _State.OPEN:
            self._emit(CloseConnection(code=code, reason=reason or None))
        self._state = _State.CLOSED

    def _feed_handshake(self, data: bytes) -> None:
        try:
            if self._server_side:
                self._feed_request(data)
            else:
                self._receive(data)
        except RemoteProtocolError as error:
            self._fail_handshake(error)
        except ValueError as error:  # the library decodes header values without a guard
            self._fail_handshake(RemoteProtocolError(f"malformed header: {error}"))
        if self._refused_status:
            self._state = _State.CLOSED
            reason = self._refusal[:REFUSAL_BYTES_MAX].decode("utf-8", "replace").strip()
            raise WebSocketError(f"the server refused: HTTP {self._refused_status} {reason}")

    def _feed_request(self, data: bytes) -> None:
        """Gather the request whole; the library would lose frames that came along with it."""
        searched = max(0, len(self._request) - len(_REQUEST_END))
        self._request += data
        if not _REQUEST_START.startswith(self._request[: len(_REQUEST_START)]):
            raise RemoteProtocolError("expected an HTTP GET request that upgrades to WebSocket")
        end = self._request.find(_REQUEST_END, searched)
        if max(end, len(self._request) if end < 0 else 0) > REQUEST_BYTES_MAX:
            hint = RejectConnection(status_code=HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            raise RemoteProtocolError(f"the request is over {REQUEST_BYTES_MAX} bytes", hint)
        if end >= 0:
            end += len(_REQUEST_END)
            request, frames = bytes(self._request[:end]), bytes(self._request[end:])
            self._request.clear()
            self._receive(request)
            self._receive(frames)

    def _receive(self, data: bytes) -> None:
        for start in range(0, len(data), SLICE_BYTES):
            self._receive_slice(data[start : start + SLICE_BYTES])
            if self._state is _State.CLOSED:
                return
        if self._pong is not None:
            # RFC 6455 §5.5.3: of many pings only the latest needs an answer, so a flood of them
            # makes one pong a read.
            self._emit(self._pong)
            self._pong = None

    def _receive_slice(self, data: bytes) -> None:
        self._websocket.receive_data(data)
        for count, event in enumerate(self._websocket.events(), 1):
            _HANDLERS[type(event)](self, event)
            if self._state is _State.CLOSED:
                return
            if count > FRAMES_MAX:
                self.close(CloseReason.POLICY_VIOLATION, "frames with next to nothing in them")
                raise WebSocketError(
                    f"the peer sent more than {FRAMES_MAX} frames in {SLICE_BYTES} octets"
                )

    def _emit(self, event: Event) -> None:
        self._output.append(self._websocket.send(event))

    def _on_request(self, event: Request) -> None:
        self.path = event.target
        if SUBPROTOCOL not in event.subprotocols:
            offered = ", ".join(map(str, event.subprotocols)) or "none"
            raise RemoteProtocolError(
                f"Sec-WebSocket-Protocol must offer '{SUBPROTOCOL}' (offered: {offered})"
            )
        self._check_origin([value for name, value in event.extra_headers if name == b"origin"])
        self._emit(AcceptConnection(subprotocol=SUBPROTOCOL))
        self._open()

    def _check_origin(self, values: Sequence[bytes]) -> None:
        origins = {value.decode("latin-1") for value in values}
        if "*" not in self._origins and not origins <= self._origins:
            raise RemoteProtocolError(
                f"Origin {', '.join(origins)} is not among those that this listener allows",
                RejectConnection(status_code=HTTPStatus.FORBIDDEN),
            )

    def _on_accepted(self, event: AcceptConnection) -> None:
        if event.subprotocol != SUBPROTOCOL:
            raise RemoteProtocolError(f"the server did not choose the subprotocol '{SUBPROTOCOL}'")
        self._open()

    def _open(self) -> None:
        self._state = _State.OPEN
        waiting, self._waiting = self._waiting, bytearray()
        self.send(waiting)

    def _on_refused(self, event: RejectConnection) -> None:
        self._refused_status = event.status_code

    def _on_refusal(self, event: RejectData) -> None:
        self._refusal += event.data

    def _on_bytes(self, event: BytesMessage) -> None:
        self._payload.append(bytes(event.data))

    def _on_text(self, _event: TextMessage) -> None:
        self.close(CloseReason.UNSUPPORTED_DATA, "AMQP needs binary messages")
        raise WebSocketError("the peer sent a text message; AMQP needs binary messages")

    def _on_ping(self, event: Ping) -> None:
        self._pong = event.response()

    def _on_pong(self, _event: Pong) -> None:
        """A sign of life; that bytes came was enough."""

    def _on_close(self, event: CloseConnection) -> None:
        """Answer the peer's close; the library reports bad frames in the same event."""
        failed = self._websocket.state is ConnectionState.OPEN
        self._emit(event.response())
        self._state = _State.CLOSED
        if failed:
            raise WebSocketError(f"bad WebSocket frame: {event.reason}")
        self.peer_closed = True

    def _fail_handshake(self, error: RemoteProtocolError) -> None:
        self._state = _State.CLOSED
        if self._server_side:
            hint = error.event_hint
            if not isinstance(hint, RejectConnection):
                hint = RejectConnection()
            self._output.append(_refusal(hint, str(error)))
        raise WebSocketError(f"WebSocket handshake failed: {error}") from error


_HANDLERS: dict[type[Event], Callable[[WebSocketStream, Any], None]] = {
    Request: WebSocketStream._on_request,
    AcceptConnection: WebSocketStream._on_accepted,
    RejectConnection: WebSocketStream._on_refused,
    RejectData: WebSocketStream._on_refusal,
    BytesMessage: WebSocketStream._on_bytes,
    TextMessage: WebSocketStream._on_text,
    Ping: WebSocketStream._on_ping,
    Pong: WebSocketStream._on_pong,
    CloseConnection: WebSocketStream._on_close,
}


def _refusal(hint: RejectConnection, reason: str) -> bytes:
    """Write the HTTP response that refuses a handshake and says why, in the body."""
    status = HTTPStatus(hint.status_code)
    body = f"{reason}\n".encode()
    head = [
        f"HTTP/1.1 {status.value} {status.phrase}".encode(),
        b"Content-Type: text/plain; charset=utf-8",
        b"Content-Length: %d" % len(body),
        b"Connection: close",
        *(name + b": " + value for name, value in hint.headers),
    ]
    return b"\r\n".join(head) + b"\r\n\r\n" + body
