"""What clients may ask for: a verb each."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cogwork.gateways.zeromq.calls import Call
from cogwork.gateways.zeromq.errors import Code, Fault, TooLarge
from cogwork.gateways.zeromq.kind import Kind
from cogwork.gateways.zeromq.registration import Registration
from cogwork.gateways.zeromq.served import CREDIT_MAX
from cogwork.gateways.zeromq.translation import error_reply, message_of, too_large_reply
from cogwork.plugin.door import Code as Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.dataplane.message.messages import Message
    from cogwork.gateways.zeromq.account import Account
    from cogwork.gateways.zeromq.frames import Frames
    from cogwork.gateways.zeromq.gateway import ZeromqGateway
    from cogwork.gateways.zeromq.lane import Lane
    from cogwork.gateways.zeromq.registration import Delivery
    from cogwork.gateways.zeromq.session import Session

__all__ = ("Desk",)

CALL_TIMEOUT_S = 30.0
"""A call that says nothing of its time gets as much as most RPC has."""

CAST_TIMEOUT_S = 5.0
"""A cast only needs somebody to take it."""

LOOKUP_TIMEOUT_S = 2.0
"""Another gateway answers at once."""

PARTS, PARTS_MAX = 100, 2**53
"""Parts that a client has room for where it does not say; and the most that JSON counts exactly."""

WINDOW, WINDOW_MOST = 16, 1000
"""Messages that a client has at once and has not answered."""

REGISTRATIONS_MAX = 1000
"""Of one session."""

FAILURES = {
    "release": Outcome.RELEASED,
    "reject": Outcome.REJECTED,
    "modify": Outcome.MODIFIED,
}
"""What a client says of what it has not done: offer it to another, to nobody; it is in doubt."""


RESERVED = "$"
"""What the names of no methods begin with."""


def _refuse_reserved(lane: Lane, frames: Frames) -> None:
    """Refuse what would be a note on a call to whoever serves the address, and not a method.

    Raises:
        Fault: The subject is a reserved one.
    """
    subject = frames.text("subject")
    if lane.kind is not Kind.PUBSUB and subject is not None and subject.startswith(RESERVED):
        text = f"subject: {subject!r:.80}: names that begin with {RESERVED} are no methods"
        raise Fault(Code.NOT_ALLOWED, text)


class Desk:
    """Serves clients."""

    def __init__(self, gateway: ZeromqGateway) -> None:
        """Serve nobody yet.

        Args:
            gateway: Whose clients they are.
        """
        self._gateway = gateway
        self._prefixes = {
            Kind.PEER2PEER: gateway.options.peer2peer_prefix,
            Kind.ROUNDROBIN: gateway.options.roundrobin_prefix,
            Kind.PUBSUB: gateway.options.pubsub_prefix,
        }
        self._verbs: dict[bytes, Callable[[Lane, Session, Frames], None]] = {
            b"CALL": self._call,
            b"CAST": self._cast,
            b"STREAM": self._call,
            b"MORE": self._more,
            b"CANCEL": self._cancel,
            b"REPLY": self._reply,
            b"DONE": self._done,
            b"FAIL": self._fail,
            b"PART": self._part,
            b"END": self._end,
            b"BEAT": self._beat,
            b"REGISTER": self._register,
            b"LEAVE": self._leave,
            b"LOOKUP": self._lookup,
            b"PING": self._ping,
            b"BYE": self._bye,
        }

    def handle(self, lane: Lane, route: bytes, frames: Frames, account: Account) -> None:
        """Do what a message of a user's client asks for.

        Raises:
            Fault: It cannot be done.
        """
        if frames.verb == b"HELLO":
            self._hello(lane, route, frames, account)
            return
        verb = self._verbs.get(frames.verb)
        if verb is None:
            known = ", ".join(each.decode() for each in (b"HELLO", *self._verbs))
            raise Fault(Code.BAD_MESSAGE, f"verb {frames.verb[:16]!r}: one of {known} is expected")
        session = self._gateway.sessions.find(frames.session, account)
        session.heard(lane, route, self._gateway.now_s)
        verb(lane, session, frames)

    # -- sessions

    def _hello(self, lane: Lane, route: bytes, frames: Frames, account: Account) -> None:
        self._refuse_new()
        gateway = self._gateway
        lease_s = frames.seconds("lease_s", gateway.options.lease_s)
        name = frames.text("name", "") if frames.header.get("name") else ""
        session = gateway.sessions.begin(
            account, frames.codec, lease_s=lease_s, name=name or "", now_s=gateway.now_s
        )
        session.heard(lane, route, gateway.now_s)
        welcome: dict[str, object] = {
            "session": session.id.decode(),
            "lease_s": session.lease_s,
            "container": gateway.container_id,
            "endpoints": {kind.value: gateway.lane(kind).endpoint for kind in Kind},
            "message_size_bytes_max": gateway.options.message_size_bytes_max,
        }
        if frames.id is not None:
            welcome["id"] = frames.id
        session.send(lane, b"WELCOME", welcome)

    def _ping(self, lane: Lane, session: Session, frames: Frames) -> None:
        session.send(lane, b"PONG", {} if frames.id is None else {"id": frames.id})

    def _bye(self, lane: Lane, session: Session, frames: Frames) -> None:
        session.send(lane, b"BYE", {} if frames.id is None else {"id": frames.id})
        self._gateway.sessions.end(session)

    def _refuse_new(self) -> None:
        if self._gateway.is_draining:
            raise Fault(Code.STOPPING, "the container is stopping: go to another one")

    def _refuse_to_send(self, session: Session) -> None:
        self._refuse_new()
        session.account.demand_room()

    # -- what clients send

    def _address_of(self, lane: Lane, frames: Frames) -> str:
        """Return the address that is meant: a name of this kind, or any address in full."""
        address = frames.text("address")
        if address is not None:
            return address.removeprefix("/")
        name = frames.text("to")
        if name is None:
            raise Fault(Code.BAD_MESSAGE, f"{frames.verb.decode()} needs `to` in its header")
        return f"{self._prefixes[lane.kind]}/{name}"

    def _call(self, lane: Lane, session: Session, frames: Frames) -> None:
        if lane.kind is Kind.PUBSUB:
            raise Fault(Code.NOT_ALLOWED, "PubSub has no replies: CAST, or call by another socket")
        request = frames.need_id()
        if not session.account.replies.address:
            raise Fault(Code.BUSY, "the gateway is still starting: try again in a moment")
        self._begin(lane, session, frames, request)

    def _cast(self, lane: Lane, session: Session, frames: Frames) -> None:
        request = frames.id
        if request is not None:
            self._begin(lane, session, frames, request)
            return
        self._refuse_to_send(session)
        _refuse_reserved(lane, frames)
        message = message_of(frames, session.account.size_bytes_max)
        message.to = self._address_of(lane, frames)
        frames.seconds("timeout_s", CAST_TIMEOUT_S)
        message.ttl_s = frames.life_s()
        session.account.post(message)

    def _begin(self, lane: Lane, session: Session, frames: Frames, request: int | str) -> None:
        self._refuse_to_send(session)
        gateway, account = self._gateway, session.account
        if session.under_way >= gateway.options.under_way:
            text = f"{session.under_way} calls and casts are under way, which is the limit"
            raise Fault(Code.BUSY, text)
        _refuse_reserved(lane, frames)
        address = self._address_of(lane, frames)
        message = message_of(frames, account.size_bytes_max)
        number = account.calls.next_number()
        message.to = address
        has_reply = frames.verb != b"CAST"
        name = account.calls.new_name() if has_reply else ""
        if has_reply:
            message.reply_to = account.replies.address
            message.correlation_id = name
        timeout_s = frames.seconds("timeout_s", CALL_TIMEOUT_S if has_reply else CAST_TIMEOUT_S)
        deadline_s = gateway.now_s + timeout_s
        life_s = timeout_s if has_reply else frames.life_s()
        call = Call(
            number,
            session,
            lane,
            request,
            address,
            message,
            deadline_s,
            has_reply=has_reply,
            name=name,
            dies_s=None if life_s is None else gateway.now_s + life_s,
        )
        if frames.verb == b"STREAM":
            credit = frames.count("credit", PARTS, CREDIT_MAX)
            account.asked.begin(call, session, timeout_s, credit)
        try:
            account.calls.begin(call)
        except Fault:
            if call.stream is not None:
                call.stream.forget()
            raise

    def _more(self, _lane: Lane, session: Session, frames: Frames) -> None:
        credit = frames.count("credit", PARTS, PARTS_MAX)
        session.account.asked.more(session, frames.need_id(), credit)

    def _cancel(self, _lane: Lane, session: Session, frames: Frames) -> None:
        session.account.asked.cancel(session, frames.need_id())

    # -- what clients receive

    def _register(self, lane: Lane, session: Session, frames: Frames) -> None:
        self._refuse_new()
        request = frames.need_id()
        address = self._address_of(lane, frames)
        key = (lane.kind.value, address)
        if key in session.registrations:
            raise Fault(Code.NOT_ALLOWED, f"{address}: this session has registered there already")
        if len(session.registrations) >= REGISTRATIONS_MAX:
            text = f"{REGISTRATIONS_MAX} registrations of a session are the limit"
            raise Fault(Code.BUSY, text)
        registration = Registration(
            session,
            lane,
            frames.text("to") or address,
            address,
            window=frames.count("window", WINDOW, WINDOW_MOST),
            endpoint=frames.text("endpoint"),
            public_key=frames.text("public_key"),
            id=request,
            streams=session.account.served,
            on_close=session.account.lookups.remove,
        )
        session.registrations[key] = registration
        registration.open(session.account.door)
        if registration.endpoint is not None:
            session.account.lookups.add(registration)

    def _leave(self, lane: Lane, session: Session, frames: Frames) -> None:
        address = self._address_of(lane, frames)
        registration = session.registrations.pop((lane.kind.value, address), None)
        if registration is None:
            raise Fault(Code.NOT_ALLOWED, f"{address}: this session has not registered there")
        registration.close()
        if frames.id is not None:
            session.send(lane, b"DONE", {"id": frames.id, "address": address})

    def _registration_of(self, session: Session, frames: Frames) -> tuple[Registration, int] | None:
        """Find what a client answers; None where that is over, as after a lease."""
        number = frames.need_id()
        if not isinstance(number, int):
            raise Fault(Code.BAD_MESSAGE, "id: the number of the REQUEST is expected")
        for registration in session.registrations.values():
            if registration.take(number) is not None:
                return registration, number
        return None

    def _answer(self, registration: Registration, reply: Message, delivery: Delivery) -> None:
        answers = registration.account.answers
        reply.to = delivery.reply_to
        reply.correlation_id = delivery.correlation_id
        answers.give(registration, partial(answers.post, reply))

    def _tell_too_large(self, registration: Registration, number: int, fault: TooLarge) -> None:
        """End a request whose answer cannot be carried: its caller need not wait."""
        delivery = registration.take(number)
        if delivery is not None and delivery.reply_to is not None:
            self._answer(registration, too_large_reply(fault), delivery)
        registration.finish(number, Outcome.ACCEPTED)

    def _reply(self, _lane: Lane, session: Session, frames: Frames) -> None:
        found = self._registration_of(session, frames)
        if found is None:
            return
        registration, number = found
        delivery = registration.take(number)
        assert delivery is not None
        try:
            if delivery.reply_to is not None:
                size_bytes_max = session.account.answers.size_bytes_max
                reply = message_of(frames, size_bytes_max, delivery.content_type)
                self._answer(registration, reply, delivery)
        except TooLarge as fault:
            self._tell_too_large(registration, number, fault)
            raise
        registration.finish(number, Outcome.ACCEPTED)

    def _done(self, _lane: Lane, session: Session, frames: Frames) -> None:
        found = self._registration_of(session, frames)
        if found is not None:
            found[0].finish(found[1], Outcome.ACCEPTED)

    def _part(self, _lane: Lane, session: Session, frames: Frames) -> None:
        found = self._registration_of(session, frames)
        if found is None:
            return
        registration, number = found
        served, answers = session.account.served, session.account.answers
        stream = served.find(registration, number)
        delivery = registration.take(number)
        kind = delivery.content_type if delivery is not None else None
        try:
            part = message_of(frames, answers.size_bytes_max, kind)
            answers.give(registration, partial(served.part, stream, part))
        except TooLarge as fault:
            self._tell_too_large(registration, number, fault)
            raise

    def _end(self, _lane: Lane, session: Session, frames: Frames) -> None:
        found = self._registration_of(session, frames)
        if found is not None:
            served = session.account.served
            end = partial(served.finish, served.find(*found))
            session.account.answers.give(found[0], end)
            found[0].finish(found[1], Outcome.ACCEPTED)

    def _beat(self, _lane: Lane, session: Session, frames: Frames) -> None:
        found = self._registration_of(session, frames)
        if found is not None:
            served = session.account.served
            served.beat(served.find(*found))

    def _fail(self, _lane: Lane, session: Session, frames: Frames) -> None:
        """A client could not do it: the caller is told, or the message is offered again."""
        code = frames.text("code", "error") or "error"
        found = self._registration_of(session, frames)
        if found is None:
            return
        registration, number = found
        delivery = registration.take(number)
        assert delivery is not None
        outcome = FAILURES.get(code)
        if outcome is None or delivery.is_settled:
            if delivery.reply_to is not None:
                self._answer(registration, error_reply(frames), delivery)
            outcome = Outcome.ACCEPTED
        registration.finish(number, outcome)

    def _lookup(self, lane: Lane, session: Session, frames: Frames) -> None:
        session.account.demand_room()
        request = frames.need_id()
        timeout_s = frames.seconds("timeout_s", LOOKUP_TIMEOUT_S)
        address = self._address_of(lane, frames)
        session.account.lookups.ask(lane, session, request, address, timeout_s)
