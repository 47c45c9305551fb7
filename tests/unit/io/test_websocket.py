"""AMQP over WebSocket without I/O: handshakes, frames cut anywhere, refusals that say why."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wsproto.frame_protocol import FrameProtocol, Opcode

from cogwork.io.stream import Chunk, StackedStream
from cogwork.io.websocket import REQUEST_BYTES_MAX, WebSocketError, WebSocketStream


def connected() -> tuple[WebSocketStream, WebSocketStream]:
    server, client = WebSocketStream(server_side=True), WebSocketStream(server_side=False)
    server.feed(client.take_output())
    client.feed(server.take_output())
    return server, client


def request(*headers: str, subprotocol: str | None = "amqp", line: str = "GET / HTTP/1.1") -> bytes:
    lines = [
        line,
        "Host: localhost:8080",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version: 13",
        *([f"Sec-WebSocket-Protocol: {subprotocol}"] if subprotocol else []),
        *headers,
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def client_frame(opcode: Opcode, payload: bytes, fin: bool = True) -> bytes:
    return bytes(FrameProtocol(client=True, extensions=[])._serialize_frame(opcode, payload, fin))


def test_both_ends_get_ready_and_talk() -> None:
    server, client = connected()
    assert server.ready
    assert client.ready
    client.send(b"AMQP\x00\x01\x00\x00")
    assert server.feed(client.take_output()) == b"AMQP\x00\x01\x00\x00"
    server.send(memoryview(b"AMQP\x00\x01\x00\x00"))
    assert client.feed(server.take_output()) == b"AMQP\x00\x01\x00\x00"


def test_what_is_sent_early_leaves_with_the_handshake() -> None:
    server, client = WebSocketStream(server_side=True), WebSocketStream(server_side=False)
    client.send(b"early")
    server.feed(client.take_output())
    client.feed(server.take_output())
    assert server.feed(client.take_output()) == b"early"


@given(
    messages=st.lists(st.binary(min_size=1, max_size=70_000), max_size=4),
    cuts=st.lists(st.integers(1, 5_000), max_size=30),
)
def test_any_cut_of_the_stream_gives_the_same_payload(
    messages: list[bytes], cuts: list[int]
) -> None:
    client = WebSocketStream(server_side=False)
    client.take_output()
    server = WebSocketStream(server_side=True)
    stream, received = request(), b""
    for piece in (stream[at : at + 7] for at in range(0, len(stream), 7)):
        received += server.feed(piece)
    frames = b"".join(client_frame(Opcode.BINARY, message) for message in messages)
    for cut in cuts:
        received += server.feed(frames[:cut])
        frames = frames[cut:]
    received += server.feed(frames)
    assert received == b"".join(messages)


def test_frames_that_come_along_with_the_request_are_not_lost() -> None:
    server = WebSocketStream(server_side=True)
    assert server.feed(request() + client_frame(Opcode.BINARY, b"eager")) == b"eager"


def test_borders_of_messages_mean_nothing() -> None:
    server, _ = connected()
    pieces = [
        client_frame(Opcode.BINARY, b"AM", fin=False),
        client_frame(Opcode.CONTINUATION, b"", fin=False),
        client_frame(Opcode.PING, b"in between"),
        client_frame(Opcode.CONTINUATION, b"QP", fin=True),
    ]
    assert server.feed(b"".join(pieces)) == b"AMQP"


def test_the_path_is_kept() -> None:
    server, client = WebSocketStream(True), WebSocketStream(False, "localhost", "/orders")
    server.feed(client.take_output())
    assert server.path == "/orders"


@pytest.mark.parametrize(
    ("bytes_in", "status", "reason"),
    [
        (request(subprotocol=None), 400, "must offer 'amqp' (offered: none)"),
        (request(subprotocol="mqtt, stomp"), 400, "must offer 'amqp' (offered: mqtt, stomp)"),
        (request().replace(b"Version: 13", b"Version: 8"), 426, "Sec-WebSocket-Version"),
        (request().replace(b"Upgrade: websocket", b"Upgrade: h2c"), 400, "Upgrade: websocket"),
        (request(line="POST / HTTP/1.1"), 400, "expected an HTTP GET request"),
        (b"AMQP\x00\x01\x00\x00", 400, "expected an HTTP GET request"),
        (b"GET \x00 HTTP/1.1\r\n\r\n", 400, "Bad HTTP message"),
        (request().replace(b"localhost:8080", b"\xff\xfe"), 400, "malformed header"),
        (request(subprotocol="amqp\xff"), 400, ""),
        (b"GET /" + b"a" * REQUEST_BYTES_MAX, 431, "over 16384 bytes"),
        (request("Origin: https://evil.example"), 403, "Origin https://evil.example is not among"),
    ],
)
def test_a_refused_request_gets_a_status_and_the_reason(
    bytes_in: bytes, status: int, reason: str
) -> None:
    server = WebSocketStream(server_side=True, origins=["https://good.example"])
    with pytest.raises(WebSocketError, match="handshake failed"):
        server.feed(bytes_in)
    answer = server.take_output().decode()
    assert answer.startswith(f"HTTP/1.1 {status} ")
    assert reason in answer
    assert not server.ready
    assert server.feed(b"more") == b""


@pytest.mark.parametrize("allowed", ["https://good.example", "*"])
def test_an_allowed_origin_is_served(allowed: str) -> None:
    server = WebSocketStream(server_side=True, origins=[allowed])
    server.feed(request("Origin: https://good.example"))
    assert server.ready


def test_a_client_reads_the_servers_reason() -> None:
    client = WebSocketStream(server_side=False)
    server = WebSocketStream(server_side=True)
    with pytest.raises(WebSocketError):
        server.feed(client.take_output().replace(b"Protocol: amqp", b"Protocol: mqtt"))
    with pytest.raises(WebSocketError, match="HTTP 400 Sec-WebSocket-Protocol must offer 'amqp'"):
        client.feed(server.take_output())


def test_a_client_refuses_a_server_without_the_subprotocol() -> None:
    client, server = WebSocketStream(server_side=False), WebSocketStream(server_side=True)
    server.feed(client.take_output())
    with pytest.raises(WebSocketError, match="did not choose the subprotocol 'amqp'"):
        client.feed(server.take_output().replace(b"Sec-WebSocket-Protocol: amqp\r\n", b""))


def test_a_client_told_something_else_than_http_says_so() -> None:
    client = WebSocketStream(server_side=False)
    with pytest.raises(WebSocketError, match="Bad HTTP message"):
        client.feed(b"AMQP\x00\x01\x00\x00\r\n\r\n")


def test_close_is_answered() -> None:
    server, client = connected()
    client.send(b"last words")
    client.close()
    client.close()
    assert server.feed(client.take_output()) == b"last words"
    assert server.peer_closed
    assert not server.ready
    assert server.take_output(), "the answer to the close"
    server.send(b"too late")
    assert server.take_output() == b""


def test_of_many_pings_the_latest_is_answered() -> None:
    server, _ = connected()
    pings = b"".join(client_frame(Opcode.PING, b"%d" % number) for number in range(100))
    server.feed(pings)
    assert server.take_output() == b"\x8a\x0299"


def test_a_ping_is_answered() -> None:
    server, client = connected()
    client.ping()
    server.feed(client.take_output())
    assert client.feed(server.take_output()) == b""


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (client_frame(Opcode.TEXT, b"hello"), "text message; AMQP needs binary"),
        (b"\x82\x05hello", "unmasked"),
        (client_frame(Opcode.PING, b"x", fin=False), "fragment control frame"),
        (client_frame(Opcode.CONTINUATION, b"x"), "unexpected CONTINUATION"),
        (b"\xf2\x80\x00\x00\x00\x00", "Reserved bit"),
        (b"\x82\xff" + b"\xff" * 12, "non-zero MSB"),
    ],
    ids=["text", "unmasked", "fragment", "continuation", "reserved", "length"],
)
def test_a_bad_frame_ends_the_stream_with_a_close(frame: bytes, message: str) -> None:
    server, _ = connected()
    with pytest.raises(WebSocketError, match=message):
        server.feed(frame)
    assert server.take_output()[:1] == b"\x88"
    assert not server.ready


@given(st.binary(max_size=200), st.booleans())
def test_garbage_never_raises_anything_else(garbage: bytes, server_side: bool) -> None:
    server, client = connected()
    stream = server if server_side else client
    try:
        stream.feed(garbage)
    except WebSocketError:
        assert not stream.ready


@given(st.binary(max_size=300), st.integers(0, 250))
def test_a_damaged_request_never_raises_anything_else(noise: bytes, at: int) -> None:
    whole = request()
    server = WebSocketStream(server_side=True)
    try:
        server.feed(whole[:at] + noise + whole[at:])
    except WebSocketError:
        assert server.take_output().startswith((b"HTTP/1.1 4", b"HTTP/1.1 101"))


class Rot13:
    """A lower layer that can be seen at work."""

    def __init__(self) -> None:
        self.ready = True
        self.peer_closed = False
        self.closed = False
        self._output = b""

    def feed(self, data: Chunk) -> bytes:
        return bytes(byte ^ 0x0D for byte in data)

    def send(self, data: Chunk) -> None:
        self._output += self.feed(data)

    def take_output(self) -> bytes:
        output, self._output = self._output, b""
        return output

    def close(self) -> None:
        self.closed = True


def test_layers_stack() -> None:
    server = StackedStream(Rot13(), WebSocketStream(server_side=True))
    client = StackedStream(Rot13(), WebSocketStream(server_side=False))
    first = client.take_output()
    assert b"GET" not in first
    server.feed(first)
    client.feed(server.take_output())
    assert server.ready
    assert client.ready
    client.send(b"through both")
    assert server.feed(client.take_output()) == b"through both"
    client.close()
    server.feed(client.take_output())
    assert server.peer_closed


@pytest.mark.parametrize("opcode", [Opcode.BINARY, Opcode.PING, Opcode.PONG])
def test_frames_with_nothing_in_them_end_the_connection(opcode: Opcode) -> None:
    server, client = connected()
    with pytest.raises(WebSocketError, match="1200 frames in 16384 octets"):
        server.feed(client_frame(opcode, b"") * 3000)
    assert client.feed(server.take_output()) == b""
    assert client.peer_closed


def test_the_smallest_frames_of_amqp_are_taken_however_many_come_together() -> None:
    server, _ = connected()
    idle = b"\x00\x00\x00\x08\x02\x00\x00\x00"
    assert server.feed(client_frame(Opcode.BINARY, idle) * 20_000) == idle * 20_000
