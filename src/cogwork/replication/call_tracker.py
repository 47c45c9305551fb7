"""Calls between containers, and of a container to itself: who waits for which answer.

A container's calls are numbered from another place in each of its lives: an answer to a former one,
which may come long after a new start, must not pass for the answer to another call.
"""

from __future__ import annotations

import asyncio
import secrets
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from cogwork.plugin.engine.errors import Malformed, Unavailable
from cogwork.replication import calls
from cogwork.replication.calls import Refused

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Callable

    from cogwork.replication.calls import Answer, Call

__all__ = ("CallTracker", "Carrier")

A = TypeVar("A", bound="Answer")

CALL = b"\x01"
"""The first octet of a datagram with a call or an answer."""

NUMBER_BITS = 62
"""Of the place where numbers begin: they stay integers that MessagePack has."""

FORGET_S = 60.0
"""An answer that has not come for so long never will."""


class Carrier(Protocol):
    """The way to other containers: octets may be dropped, and keep their order mostly."""

    def send(self, to: str, *parts: bytes) -> bool:
        """Send octets, given in parts; return False where they are dropped at once."""

    def flush(self) -> None:
        """Have what was sent leave now."""


class _Expected(NamedTuple):
    """A call that was sent to another container: its answer may come, or never."""

    sent_s: float
    to: str
    call: Call
    kind: type[Any]
    answered: Callable[[Any], None]


class _Asked(NamedTuple):
    """A call whose answer somebody awaits."""

    to: str
    call: Call
    kind: type[Any]
    future: Future[Any]


class CallTracker:
    """Sends calls, has those carried out that come here, and gives answers to those who asked."""

    def __init__(
        self,
        own: str,
        carrier: Carrier,
        carry_out: Callable[[Call, Callable[[Answer], object]], None],
    ) -> None:
        """Wait for nothing.

        Args:
            own: The container's id.
            carrier: The way to other containers.
            carry_out: Does what a call wants here, and calls what it is given with the answer, now
                or later.
        """
        self._own = own
        self._carrier = carrier
        self._carry_out = carry_out
        self._number = secrets.randbits(NUMBER_BITS)
        self._expecting: dict[int, _Expected] = {}
        self._asking: dict[int, _Asked] = {}

    def next_number(self) -> int:
        """Return a number that no call of this container has had, in no life of it."""
        self._number += 1
        return self._number

    def expect(
        self,
        to: str,
        call: Call,
        kind: type[A],
        answered: Callable[[A | Refused], None],
        now_s: float,
    ) -> bool:
        """Send a call.

        Args:
            to: The container that is to carry it out.
            call: What it is to do.
            kind: What answers that.
            answered: Called with the answer, which may come, or never.
            now_s: The time.

        Returns:
            False where it is dropped.
        """
        if to == self._own:
            self._carry_out(call, lambda answer: answered(_demand_kind(answer, call, kind)))
            return True
        if not self._send(to, call):
            return False
        self._expecting[call.number] = _Expected(now_s, to, call, kind, answered)
        return True

    def tick(self, now_s: float) -> None:
        """Forget whom nobody will answer any more."""
        for number, each in list(self._expecting.items()):
            if now_s - each.sent_s < FORGET_S:
                break
            del self._expecting[number]

    async def ask(self, to: str, call: Call, kind: type[A], timeout_s: float) -> A | Refused:
        """Send a call and wait for its answer.

        Args:
            to: The container that is to carry it out.
            call: What it is to do.
            kind: What answers that.
            timeout_s: So long it is waited.

        Raises:
            Unavailable: None came, or the answer to something else.
        """
        loop = asyncio.get_running_loop()
        future: Future[A | Refused] = loop.create_future()
        if to == self._own:
            why_none = "the replica here has not come so far"
        else:
            why_none = f"container {to} does not answer"
        timer = loop.call_later(timeout_s, _expire, future, why_none)
        self._asking[call.number] = _Asked(to, call, kind, future)
        try:
            if to == self._own:
                self._carry_out(call, partial(self.take, to))
            elif not self._send(to, call):
                raise Unavailable(f"there is no way to container {to}")
            return await future
        finally:
            timer.cancel()
            self._asking.pop(call.number, None)

    def _send(self, to: str, message: Call | Answer) -> bool:
        return self._carrier.send(to, CALL, calls.encode(message))

    def take(self, origin: str, message: Call | Answer) -> None:
        """Take what a container says: an answer, or a call that is to be answered.

        An answer that nobody waits for, or not from there, is passed over.

        Raises:
            Malformed: It is the answer to something else.
        """
        if not isinstance(message, calls.Answer):
            self._carry_out(message, partial(self._send, origin))
            return
        expected = self._expecting.get(message.number)
        if expected is not None and expected.to == origin:
            del self._expecting[message.number]
            expected.answered(_demand_kind(message, expected.call, expected.kind))
            return
        asked = self._asking.get(message.number)
        if asked is not None and asked.to == origin and not asked.future.done():
            _settle(asked, message)

    def lost(self, container: str) -> None:
        """Have nobody wait for a container any more to which the connection has broken."""
        for asked in self._asking.values():
            if asked.to == container and not asked.future.done():
                why = f"the connection to container {container} has broken"
                asked.future.set_exception(Unavailable(why))

    def close(self) -> None:
        """Nobody is answered any more."""
        for asked in self._asking.values():
            if not asked.future.done():
                asked.future.set_exception(Unavailable("the container is stopping"))
        self._expecting.clear()


def _settle(asked: _Asked, answer: Answer) -> None:
    """Give an answer to who awaits it; one to something else is as good as none.

    Raises:
        Malformed: It is that.
    """
    try:
        asked.future.set_result(_demand_kind(answer, asked.call, asked.kind))
    except Malformed as error:
        asked.future.set_exception(Unavailable(f"container {asked.to}: {error}"))
        raise


def _demand_kind(answer: Answer, call: Call, kind: type[A]) -> A | Refused:
    """Return an answer that is one to its call.

    Raises:
        Malformed: It is the answer to something else.
    """
    if isinstance(answer, (kind, Refused)):
        return answer
    raise Malformed(f"an answer to {type(call).__name__}", f"it is {type(answer).__name__}")


def _expire(future: Future[Any], why: str) -> None:
    if not future.done():
        future.set_exception(Unavailable(why))
