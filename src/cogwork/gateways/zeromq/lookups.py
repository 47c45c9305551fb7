"""Look-ups: where a service itself listens, so that a client can talk to it without a hop.

Theory of operation. Whoever registers with an endpoint can be looked up. The gateway then receives
from a second address, made of the service's, and answers what comes there with what it knows: so a
look-up finds services at every gateway of the mesh by plain routing, and nobody keeps a directory.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from cogwork.amqp.errors import CogworkError
from cogwork.dataplane.message.messages import Message
from cogwork.gateways.zeromq.calls import Call
from cogwork.gateways.zeromq.errors import Code, Fault
from cogwork.gateways.zeromq.values import plain, written
from cogwork.plugin.door import Code as Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.gateways.zeromq.account import Account
    from cogwork.gateways.zeromq.lane import Lane
    from cogwork.gateways.zeromq.registration import Registration
    from cogwork.gateways.zeromq.session import Session
    from cogwork.plugin.door import Arrival, Inlet

__all__ = ("Lookups",)

PREFIX = "unicast/_zeromq"
"""What the second address starts with; the service's follows."""

WINDOW = 100


class Lookups:
    """What one user's clients can be looked up by, and what they look up."""

    def __init__(self, account: Account) -> None:
        """Initialize it; it knows nobody.

        Args:
            account: Whose clients they are.
        """
        self._account = account
        self._known: dict[str, _Answers] = {}

    def add(self, registration: Registration) -> None:
        """Let a registration be found."""
        answers = self._known.get(registration.address)
        if answers is None:
            answers = _Answers(self._account, registration.address)
            self._known[registration.address] = answers
            answers.open()
        answers.registrations.append(registration)

    def remove(self, registration: Registration) -> None:
        """Let a registration be found no more."""
        answers = self._known.get(registration.address)
        if answers is None or registration not in answers.registrations:
            return
        answers.registrations.remove(registration)
        if not answers.registrations:
            del self._known[registration.address]
            answers.close()

    def ask(
        self, lane: Lane, session: Session, request: int | str, address: str, timeout_s: float
    ) -> None:
        """Look up who serves an address; the session is told."""
        account = self._account
        if not account.replies.address:
            raise Fault(Code.BUSY, "the gateway is still starting: try again in a moment")
        known = self._known.get(address)
        if known is not None:
            _tell(session, lane, request, address, known.endpoints)
            return
        number = account.calls.next_number()
        message = Message.value(None, to=f"{PREFIX}/{address}")
        message.reply_to = account.replies.address
        message.correlation_id = name = account.calls.new_name()

        def on_end(reply: Message | None) -> None:
            if not session.is_over:
                _tell(session, lane, request, address, _endpoints_in(reply))

        account.calls.begin(
            Call(
                number,
                session,
                lane,
                request,
                address,
                message,
                account.now_s + timeout_s,
                has_reply=True,
                name=name,
                on_end=on_end,
            )
        )


def _endpoints_in(reply: Message | None) -> object:
    """Read an answer; one that cannot be is as good as none."""
    try:
        return None if reply is None else written(reply.body, plain, escapes=False)
    except (CogworkError, ValueError, TypeError, RecursionError):
        return None


def _tell(
    session: Session, lane: Lane, request: int | str, address: str, endpoints: object
) -> None:
    if not isinstance(endpoints, list) or not endpoints:
        text = f"{address}: nobody who serves it has told where it listens"
        header: dict[str, object] = {"code": Code.UNREACHABLE.value, "text": text}
        session.send(lane, b"ERROR", {"id": request, **header})
        return
    session.send(lane, b"FOUND", {"id": request, "endpoints": endpoints})


class _Answers:
    """Answers look-ups of one address."""

    def __init__(self, account: Account, address: str) -> None:
        self.registrations: list[Registration] = []
        self._account = account
        self._address = address
        self._inlet: Inlet | None = None

    @property
    def endpoints(self) -> list[dict[str, object]]:
        """Where those listen who have told."""
        return [
            {"endpoint": each.endpoint, "public_key": each.public_key}
            for each in self.registrations
        ]

    def open(self) -> None:
        self._inlet = self._account.door.attach(f"{PREFIX}/{self._address}", self, WINDOW)

    def close(self) -> None:
        if self._inlet is not None:
            self._inlet.close()

    def on_attached(self, address: str) -> None:
        """Nobody waits for that."""

    def on_closed(self, _reason: str) -> None:
        self._inlet = None

    def on_arrivals(self, arrivals: Sequence[Arrival]) -> None:
        inlet = self._inlet
        if inlet is None:
            return
        for arrival in arrivals:
            with contextlib.suppress(CogworkError, UnicodeDecodeError):
                self._answer(Message.decode(arrival.message))
            if not arrival.is_settled:
                inlet.settle(arrival.token, Outcome.ACCEPTED)
        inlet.grant(WINDOW)

    def _answer(self, message: Message) -> None:
        if message.reply_to is None:
            return
        reply = Message.value(self.endpoints, to=message.reply_to)
        reply.correlation_id = message.correlation_id
        self._account.answers.say(reply)  # or else it is looked up again
