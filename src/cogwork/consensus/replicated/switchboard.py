"""Calls between containers, and of a container to itself: who waits for which answer.

A container's calls are numbered from another place in each of its lives: an answer to a former one,
which may come long after a new start, must not pass for the answer to another call.
"""

from __future__ import annotations

import asyncio
import secrets
from functools import partial
from typing import TYPE_CHECKING, Protocol

from cogwork.consensus.errors import Unavailable
from cogwork.consensus.replicated import calls

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Callable

    from cogwork.consensus.replicated.calls import Answer, Call

__all__ = ("Carrier", "Switchboard")

CALL = b"\x01"
"""The first octet of a parcel with a call or an answer."""

NUMBER_BITS = 62
"""Of the place where numbers begin: they stay integers that MessagePack has."""

FORGET_S = 60.0
"""An answer that has not come for so long never will."""


class Carrier(Protocol):
    """The way to other containers: octets may be dropped, and keep their order mostly."""

    def send(self, to: str, *parts: bytes) -> bool:
        """Sends octets, given in parts; returns False where they are dropped at once."""

    def flush(self) -> None:
        """Has what was sent leave now."""


class Switchboard:
    """Sends calls, has those carried out that come here, and gives answers to those who asked."""

    def __init__(
        self,
        own: str,
        carrier: Carrier,
        carry_out: Callable[[Call, Callable[[Answer], object]], None],
    ) -> None:
        """Waits for nothing.

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
        self._expecting: dict[int, tuple[float, str, Callable[[Answer], None]]] = {}
        self._asking: dict[int, tuple[Future[Answer], str]] = {}

    def next_number(self) -> int:
        """Returns a number that no call of this container has had, in no life of it."""
        self._number += 1
        return self._number

    def expect(self, to: str, call: Call, answered: Callable[[Answer], None], now_s: float) -> bool:
        """Sends a call; returns False where it is dropped. Its answer may come, or never."""
        if to == self._own:
            self._carry_out(call, answered)
            return True
        if not self._send(to, call):
            return False
        self._expecting[call.number] = now_s, to, answered
        return True

    def tick(self, now_s: float) -> None:
        """Forgets whom nobody will answer any more."""
        for number, (sent_s, _, _) in list(self._expecting.items()):
            if now_s - sent_s < FORGET_S:
                break
            del self._expecting[number]

    async def ask(self, to: str, call: Call, timeout_s: float) -> Answer:
        """Sends a call and waits for its answer.

        Raises:
            Unavailable: None came.
        """
        loop = asyncio.get_running_loop()
        future: Future[Answer] = loop.create_future()
        if to == self._own:
            why_none = "the replica here has not come so far"
        else:
            why_none = f"container {to} does not answer"
        timer = loop.call_later(timeout_s, _expire, future, why_none)
        self._asking[call.number] = future, to
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
        """Takes what a container says: an answer, or a call that is to be answered.

        An answer that nobody waits for, or not from there, is passed over.
        """
        if not isinstance(message, calls.Answer):
            self._carry_out(message, partial(self._send, origin))
            return
        _, asked, answered = self._expecting.get(message.number, (0.0, None, None))
        if answered is not None and asked == origin:
            del self._expecting[message.number]
            answered(message)
            return
        future, asked = self._asking.get(message.number, (None, None))
        if future is not None and asked == origin and not future.done():
            future.set_result(message)

    def close(self) -> None:
        """Nobody is answered any more."""
        for future, _ in self._asking.values():
            if not future.done():
                future.set_exception(Unavailable("the container is stopping"))
        self._expecting.clear()


def _expire(future: Future[Answer], why: str) -> None:
    if not future.done():
        future.set_exception(Unavailable(why))
