"""The gateway: three sockets on one side, a door into the container on the other.

Theory of operation. A batch of messages from a socket is worked through verb by verb; what it
posts, settles and grants goes through the door once, at its end, and what that brings back, perhaps
to the same client, is handed on at once. Nothing blocks: a client that takes nothing has its
messages wait within bounds. A door without credit has the sockets read nothing, for a moment: what
it waits for may be what a client has to say. Then all is read, and what is new refused, until there
is credit. What clients answer goes by a door of its own, and never waits for what they are asked.
"""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING

import zmq

from cogwork.amqp.errors import CogworkError
from cogwork.gateways.zeromq.answers import Answers
from cogwork.gateways.zeromq.asked import AskedStreams
from cogwork.gateways.zeromq.calls import Calls
from cogwork.gateways.zeromq.codec import codec_of
from cogwork.gateways.zeromq.curve import Gatekeeper, keys_of
from cogwork.gateways.zeromq.desk import Desk
from cogwork.gateways.zeromq.errors import Code, Fault
from cogwork.gateways.zeromq.frames import MAGIC, parse
from cogwork.gateways.zeromq.kind import Kind
from cogwork.gateways.zeromq.lane import Lane
from cogwork.gateways.zeromq.lookups import Lookups
from cogwork.gateways.zeromq.options import options_of
from cogwork.gateways.zeromq.outlet import Outlet
from cogwork.gateways.zeromq.replies import Replies
from cogwork.gateways.zeromq.served import ServedStreams
from cogwork.gateways.zeromq.sessions import Sessions
from cogwork.spi.gateway import GatewayListenError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.dataplane.message.messages import Message
    from cogwork.spi.door import Door, Sender
    from cogwork.spi.gateway import GatewayContext, Watch

__all__ = ("ZeromqGateway",)

PATIENCE_S = 0.1
"""So long the sockets are not read where the mesh takes nothing."""

log = logging.getLogger("cogwork")


class ZeromqGateway:
    """Peer2Peer, RoundRobin and PubSub for programs that speak ZeroMQ."""

    def __init__(self, context: GatewayContext) -> None:
        """Reads the options; does not listen yet.

        Args:
            context: What the container gives.

        Raises:
            GatewayOptionError: An option is wrong.
        """
        self._context = context
        self.options = options_of(context.options)
        self._keys = keys_of(self.options)
        self.sessions = Sessions(context.token, self.options.lease_s, self.options.sessions)
        self.calls = Calls(self.post, self._is_served, context.now_s, context.token)
        self.answers = Answers(self._open, self._flush_soon, self._on_room_for_answers)
        post, say = self.answers.post, self.answers.say
        self.asked = AskedStreams(self.calls, post, say, context.now_s)
        self.served = ServedStreams(post, say, lambda: self.replies.address, context.now_s)
        self.replies = Replies(self.calls, self.asked, self.served)
        self.lookups = Lookups(self)
        self._desk = Desk(self)
        self._lanes: dict[Kind, Lane] = {}
        self._zmq: zmq.Context[zmq.Socket[bytes]] | None = None
        self._gatekeeper: Gatekeeper | None = None
        self._watch: Watch | None = None
        self._requests = Outlet(context.now_s, self.calls.expire)
        self._is_flush_due = False
        self._paused_s: float | None = None
        self.faults = 0
        self.refused_keys = 0
        self.is_draining = False

    # -- life

    def start(self, watch: Watch) -> None:
        """Opens the sockets.

        Raises:
            GatewayListenError: One of them cannot be bound.
        """
        self._zmq = zmq.Context()
        self._zmq.max_sockets = 16
        self._watch = watch
        self._open_door()
        self.answers.open()
        if self._keys is not None:
            self._gatekeeper = Gatekeeper(self._zmq, self._keys, self._on_refused)
            self._gatekeeper.start(watch)
        for kind in Kind:
            endpoint = self.options.endpoints[kind]
            try:
                self._lanes[kind] = Lane(self._zmq, kind, endpoint, self.options, self._keys)
            except zmq.ZMQError as error:
                text = f"gateway.zeromq.{kind}: {endpoint}: {error}"
                raise GatewayListenError(text) from error
        for lane in self._lanes.values():
            lane.start(watch, self._on_message, self.flush)

    def _open(self, sender: Sender) -> Door:
        return self._context.open_door(sender, self.options.user)

    def _open_door(self) -> None:
        self._requests.door = self._open(self)
        self.replies.open(self.door)

    def _on_refused(self) -> None:
        self.refused_keys += 1

    def tick(self, now_s: float) -> None:
        """Lets time pass: leases, deadlines, clients that were slow."""
        self.sessions.tick(now_s)
        self.asked.tick(now_s)
        self.served.tick(now_s)
        self.calls.tick(now_s)
        if self._paused_s is not None and now_s - self._paused_s >= PATIENCE_S:
            self._resume()
        for lane in self._lanes.values():
            lane.look_again()
        self.flush()

    def drain(self) -> None:
        """Takes on nothing new."""
        self.is_draining = True

    @property
    def is_drained(self) -> bool:
        """Whether nothing is under way."""
        is_waiting = self._requests or self.answers
        return not self.calls and not is_waiting and not self.sessions.outstanding

    def close(self) -> None:
        """Closes everything."""
        self.is_draining = True
        for session in self.sessions:
            self.sessions.end(session)
        for lane in self._lanes.values():
            lane.close()
        self._lanes.clear()
        if self._gatekeeper is not None:
            self._gatekeeper.close()
            self._gatekeeper = None
        if self._zmq is not None:
            self._zmq.destroy(linger=0)
            self._zmq = None
        self._requests.close()
        self.answers.close()

    @property
    def endpoints(self) -> list[str]:
        """Where it listens."""
        return [lane.endpoint for lane in self._lanes.values()]

    def status(self) -> Mapping[str, object]:
        """Returns figures."""
        registrations = [
            (kind, address) for session in self.sessions for kind, address in session.registrations
        ]
        return {
            "kinds": {kind.value: lane.endpoint for kind, lane in self._lanes.items()},
            "curve": self._keys is not None,
            "sessions": len(self.sessions),
            "sessions_begun": self.sessions.begun,
            "sessions_expired": self.sessions.expired,
            "registrations": len(registrations),
            "queues": len(set(registrations)),
            "under_way": len(self.calls),
            "streams": len(self.asked) + len(self.served),
            "outstanding": self.sessions.outstanding,
            "timed_out": self.calls.timed_out,
            "received": sum(lane.received for lane in self._lanes.values()),
            "sent": sum(lane.sent for lane in self._lanes.values()),
            "dropped": self.sessions.dropped + sum(each.dropped for each in self.sessions),
            "faults": self.faults,
            "refused_keys": self.refused_keys,
        }

    # -- what comes from clients

    def _on_message(self, lane: Lane, parts: list[bytes]) -> None:
        route = parts[0]
        try:
            frames = parse(parts[1:])
            self._desk.handle(lane, route, frames)
        except Fault as fault:
            self._blame(lane, route, parts, fault)
        except CogworkError as error:  # a value that AMQP cannot hold
            self._blame(lane, route, parts, Fault(Code.BAD_MESSAGE, str(error)))
        except Exception:  # whatever it is, what others have sent is still to be read
            log.exception("gateway zeromq: cannot handle a client's message")
            self._blame(lane, route, parts, Fault(Code.FAILED, "a fault in the container"))

    def _blame(self, lane: Lane, route: bytes, parts: list[bytes], fault: Fault) -> None:
        """Tells a client what was wrong with its message; it goes on."""
        self.faults += 1
        delimiter: list[bytes] = []
        if len(parts) > 2 and not parts[1]:  # of a REQ socket, which reads nothing without it
            delimiter.append(b"")
            parts = [route, *parts[2:]]
        head = parts[4] if len(parts) > 4 else b""
        codec = codec_of(head)
        header: dict[str, object] = {"code": fault.code.value, "text": fault.text}
        with contextlib.suppress(Fault):
            if (request := parse(parts[1:]).id) is not None:
                header["id"] = request
        session = parts[3] if len(parts) > 3 else b""
        answer = [MAGIC, b"ERROR", session[:64], codec.encode_header(header)]
        lane.send([route, *delimiter, *answer])

    def flush(self) -> None:
        """Ends a batch."""
        self.answers.flush()  # first: a request is settled after its answer has gone
        self._requests.flush()

    def _flush_soon(self) -> None:
        """Flushes in the next turn: one door may have something to send as another is at work."""
        if not self._is_flush_due and self._watch is not None:
            self._is_flush_due = True
            self._watch.call_soon(self._flush_due)

    def _flush_due(self) -> None:
        self._is_flush_due = False
        self.flush()

    def lane(self, kind: Kind) -> Lane:
        """Returns a kind's socket."""
        return self._lanes[kind]

    @property
    def door(self) -> Door:
        """The way into the container."""
        assert self._requests.door is not None
        return self._requests.door

    @property
    def now_s(self) -> float:
        """The monotonic clock."""
        return self._context.now_s()

    @property
    def container_id(self) -> str:
        """Whose gateway it is."""
        return self._context.container_id

    # -- what goes into the mesh

    def post(self, message: Message, token: int = 0) -> None:
        """Sends a message, or has it wait for credit.

        Args:
            message: With its address in `to`.
            token: Of its delivery; 0 wants no outcome.

        Raises:
            TooLarge: The mesh takes nothing of this size.
        """
        was_waiting = bool(self._requests)
        self._requests.post(message, token)
        if self._requests and not was_waiting:
            self._paused_s = self.now_s
            for lane in self._lanes.values():
                lane.pause()

    @property
    def size_bytes_max(self) -> int:
        """How large a message into the mesh may be; 0 for any size, and until that is known."""
        return self._requests.size_bytes_max

    def _is_served(self, address: str) -> bool:
        door = self._requests.door
        return door is not None and door.is_served(address)

    def demand_room(self) -> None:
        """Refuses what is new while something waits for credit.

        Raises:
            Fault: That is so.
        """
        if self._requests or self.answers:
            raise Fault(Code.BUSY, "the mesh takes nothing at present: try again in a moment")

    def _resume(self) -> None:
        self._paused_s = None
        for lane in self._lanes.values():
            lane.resume()

    def on_credit(self) -> None:
        """Sends what waited, and reads again."""
        if self._requests.go_on():
            self._resume()

    def on_closed(self) -> None:
        """Somebody has closed the connection: clients have been told, and may register again.

        What waited for credit goes by the next one.
        """
        if self._zmq is not None:
            self._open_door()
            self._requests.go_on()  # there is no credit yet: so the door knows it is waited for

    def _on_room_for_answers(self) -> None:
        self.asked.say_more()

    def on_outcome(self, token: int, code: int, reason: str) -> None:
        """A message has its outcome."""
        self.calls.on_outcome(token, code, reason)
