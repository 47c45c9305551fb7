"""What every program of these examples needs of docs/zeromq.md, with pyzmq and nothing else.

A `Session` is one socket to one of the gateway's three, and the identity that goes with it. It
writes JSON; MessagePack would do as well.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import zmq

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ("ENDPOINTS", "Frames", "GatewayError", "Keys", "Session")

ENDPOINTS = {
    "peer2peer": "tcp://127.0.0.1:5681",
    "roundrobin": "tcp://127.0.0.1:5682",
    "pubsub": "tcp://127.0.0.1:5683",
}
"""Where `cogwork serve --gateway zeromq` listens."""


class Frames(NamedTuple):
    """A message from the gateway."""

    verb: str
    header: dict[str, Any]
    body: Any


class Keys(NamedTuple):
    """CURVE: the gateway's public key, and one's own pair."""

    server: bytes
    public: bytes
    secret: bytes


class GatewayError(Exception):
    """The gateway, or whoever was asked, says that something did not work."""

    def __init__(self, header: dict[str, Any]) -> None:
        super().__init__(f"{header.get('code')}: {header.get('text')}")
        self.header = header
        self.code = header.get("code")


class Session:
    """One DEALER, with a session of the gateway's."""

    def __init__(
        self, endpoint: str, name: str = "", session: str = "", keys: Keys | None = None
    ) -> None:
        """Connect, and says HELLO unless there is a session already.

        Args:
            endpoint: One of the gateway's.
            name: What `cogwork status` may call it.
            session: The id of a session that another socket of this process has.
            keys: For CURVE.
        """
        self.socket = zmq.Context.instance().socket(zmq.DEALER)
        self.socket.linger = 1000
        if keys is not None:
            self.socket.curve_serverkey = keys.server
            self.socket.curve_publickey, self.socket.curve_secretkey = keys.public, keys.secret
        self.socket.connect(endpoint)
        self.id = session
        self.welcome: dict[str, Any] = {}
        self._number = 0
        self._set_aside: list[Frames] = []
        if not session:
            self.welcome = self.ask("HELLO", {"name": name} if name else {}).header
            self.id = self.welcome["session"]

    def send(self, verb: str, header: dict[str, Any], *body: Any) -> None:
        """Send a message; a body is any value that JSON has."""
        frames = [b"COG1", verb.encode(), self.id.encode(), json.dumps(header).encode()]
        self.socket.send_multipart([*frames, *(json.dumps(each).encode() for each in body)])

    def receive(self, timeout_s: float = 10.0) -> Frames:
        """Return the next message."""
        if self._set_aside:
            return self._set_aside.pop(0)
        return self._next(timeout_s)

    def _next(self, timeout_s: float) -> Frames:
        if not self.socket.poll(int(timeout_s * 1000)):
            raise TimeoutError(f"nothing within {timeout_s:g} s")
        frames = self.socket.recv_multipart()
        body = frames[4] if len(frames) > 4 else None
        header = json.loads(frames[3])
        is_value = body is not None and "raw" not in header
        return Frames(frames[1].decode(), header, json.loads(body or b"") if is_value else body)

    def ask(self, verb: str, header: dict[str, Any], *body: Any, timeout_s: float = 30.0) -> Frames:
        """Send a message that is answered, and wait for that; other messages are set aside."""
        self._number += 1
        self.send(verb, {"id": self._number, **header}, *body)
        while True:
            frames = self._next(timeout_s)
            if frames.header.get("id") != self._number or frames.verb in ("REQUEST", "BEAT"):
                self._set_aside.append(frames)
            elif frames.verb == "ERROR":
                raise GatewayError(frames.header)
            else:
                return frames

    def call(self, to: str, body: Any, *, timeout_s: float = 5.0, **header: Any) -> Any:  # noqa: ANN401  # JSON
        """Call a service and return its result."""
        header = {"to": to, "timeout_s": timeout_s, **header}
        return self.ask("CALL", header, body, timeout_s=timeout_s + 5.0).body

    def stream(
        self,
        to: str,
        body: Any,  # noqa: ANN401  # JSON
        *,
        credit: int = 100,
        timeout_s: float = 5.0,
        **header: Any,
    ) -> Iterator[Any]:
        """Call a service that replies in parts, and yield them; leaving cancels its work."""
        self._number += 1
        number, taken, room, is_over = self._number, 0, credit, False
        header = {"id": number, "to": to, "credit": credit, "timeout_s": timeout_s, **header}
        self.send("STREAM", header, body)
        try:
            while not is_over:
                frames = self._next(timeout_s + 5.0)
                if frames.header.get("id") != number or frames.verb == "REQUEST":
                    self._set_aside.append(frames)
                    continue
                is_over = frames.verb in ("END", "ERROR", "RESULT")
                if frames.verb == "ERROR":
                    raise GatewayError(frames.header)
                if frames.verb in ("PART", "RESULT"):
                    yield frames.body
                    taken += 1
                if not is_over and 2 * (room - taken) <= credit:
                    room = taken + credit
                    self.send("MORE", {"id": number, "credit": room})
        finally:
            if not is_over:
                self.send("CANCEL", {"id": number})

    def cast(self, to: str, body: Any, **header: Any) -> None:  # noqa: ANN401  # JSON
        """Send to an address, and wait until somebody there has it."""
        self.ask("CAST", {"to": to, **header}, body)

    def register(self, to: str, **header: Any) -> str:
        """Receive from an address from now on; return it in full."""
        address: str = self.ask("REGISTER", {"to": to, **header}).header["address"]
        return address

    def serve_one(self, handle: Callable[[Frames], Any], timeout_s: float = 10.0) -> Frames:
        """Answer the next request with what `handle` makes of it."""
        request = self.receive(timeout_s)
        if request.verb != "REQUEST":
            return request
        answer = {"id": request.header["id"]}
        try:
            result = handle(request)
        except Exception as error:
            self.send("FAIL", {**answer, "type": type(error).__name__, "text": str(error)})
        else:
            self.send("REPLY" if request.header["reply"] else "DONE", answer, result)
        return request

    def close(self, *, says_bye: bool = True) -> None:
        """End the session, or just this socket."""
        if says_bye:
            self.send("BYE", {})
        self.socket.close()
