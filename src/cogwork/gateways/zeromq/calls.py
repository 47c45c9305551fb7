"""Calls and casts under way: from a client into the mesh, with their outcomes, replies, deadlines.

Theory of operation. Each has a number, which is the token of its delivery, and a random name, which
is the correlation-id of its reply; replies come to one address of the gateway's own, so no queue is
made for any of them.
One that nobody takes is offered again, with growing pauses, until its deadline. Deadlines are kept
in buckets of a tenth of a second, from which what is over is taken at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cogwork.gateways.zeromq.errors import Code, Fault, TooLarge
from cogwork.plugin.door import Code as Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cogwork.dataplane.message.messages import Message
    from cogwork.gateways.zeromq.asked import AskedStream
    from cogwork.gateways.zeromq.lane import Lane
    from cogwork.gateways.zeromq.session import Session

__all__ = ("Call", "Calls", "Deadlines")

PAUSE_LEAST_S, PAUSE_MOST_S = 0.05, 1.0
"""Between offers to an address that nobody serves."""

LAST_S = 0.2
"""What is released later is not offered again: its deadline would come first."""

GRACE_S = 0.2
"""Within it an address gives back what it held until its time was over: nobody had taken it."""

TENTHS = 10

UNDER_WAY_MAX = 1000
"""To one address: what waits for a slow service there must not use up the door's credit."""

NAME_BYTES = 16
"""Random: nobody guesses what the reply to another one's call has to say."""


@dataclass(slots=True, eq=False)
class Call:
    """One call or cast.

    Attributes:
        number: The token of its delivery.
        session: Whose it is; None for the gateway's own.
        lane: Where its answer goes.
        id: The client's name for it.
        address: Where it goes.
        message: What is sent.
        deadline_s: When it is given up.
        has_reply: Whether there is a reply to it: whether it is a call.
        dies_s: When its message is worth nothing any more; None for never. A call's is its
            deadline; what a cast brings into a store stays there as long as the cast says.
        on_end: Called instead of telling the client, with a reply or None.
        pause_s: Before it is offered again.
        was_released: Whether nobody took it when it was offered last.
        is_overdue: Whether its time is over, and it is heard yet whether anybody had taken it.
        stream: What there is more where its reply comes in parts.
        name: The correlation-id of its reply; empty where there is none.
    """

    number: int
    session: Session | None
    lane: Lane | None
    id: int | str
    address: str
    message: Message
    deadline_s: float
    has_reply: bool
    dies_s: float | None = None
    on_end: Callable[[Message | None], None] | None = None
    pause_s: float = PAUSE_LEAST_S
    was_released: bool = False
    is_overdue: bool = False
    stream: AskedStream | None = None
    name: str = ""

    def tell(self, verb: bytes, header: dict[str, object]) -> None:
        """Tell its client something."""
        assert self.session is not None
        assert self.lane is not None
        self.session.send(self.lane, verb, header)


class Deadlines:
    """Numbers by the tenth of a second in which they are due."""

    def __init__(self) -> None:
        """Start with none."""
        self._due: dict[int, set[int]] = {}

    def add(self, number: int, at_s: float) -> None:
        """Have a number be due at a time."""
        self._due.setdefault(int(at_s * TENTHS), set()).add(number)

    def remove(self, number: int, at_s: float) -> None:
        """Take that back."""
        tenth = int(at_s * TENTHS)
        numbers = self._due.get(tenth)
        if numbers is not None:
            numbers.discard(number)
            if not numbers:
                del self._due[tenth]

    def take(self, now_s: float) -> Iterator[int]:
        """Take out what is due, one by one: where one fails, the others stay due."""
        now = int(now_s * TENTHS)
        for tenth in sorted(tenth for tenth in self._due if tenth < now):
            numbers = self._due.get(tenth, set())
            while numbers:
                yield numbers.pop()
            self._due.pop(tenth, None)


class Calls:
    """What is under way."""

    def __init__(
        self,
        post: Callable[[Message, int], None],
        is_served: Callable[[str], bool],
        now_s: Callable[[], float],
        token: Callable[[int], bytes],
    ) -> None:
        """Start with none.

        Args:
            post: Sends a message, with the token of its delivery.
            is_served: Tells whether there is somebody at an address.
            now_s: The monotonic clock.
            token: Makes secrets.
        """
        self._token = token
        self._named: dict[str, Call] = {}
        self._post = post
        self._is_served = is_served
        self._now_s = now_s
        self._count = 0
        self._open: dict[int, Call] = {}
        self._to: dict[str, int] = {}
        self._deadlines = Deadlines()
        self._pauses = Deadlines()
        self.timed_out = 0

    def __len__(self) -> int:
        """Count them."""
        return len(self._open)

    def next_number(self) -> int:
        """Return a number for the next one."""
        self._count += 1
        return self._count

    def new_name(self) -> str:
        """Return a correlation-id that nobody can guess."""
        return self._token(NAME_BYTES).hex()

    def begin(self, call: Call) -> None:
        """Send it.

        Raises:
            Fault: There is too much under way to its address, or it is too large.
        """
        count = self._to.get(call.address, 0)
        if count >= UNDER_WAY_MAX:
            text = f"{count} calls and casts are under way to {call.address}, which is the limit"
            raise Fault(Code.BUSY, text)
        self._to[call.address] = count + 1
        if call.has_reply:
            self._named[call.name] = call
        self._open[call.number] = call
        self._deadlines.add(call.number, call.deadline_s)
        if call.session is not None:
            call.session.under_way += 1
        try:
            self._offer(call)
        except TooLarge:
            self.end(call)
            raise

    def _offer(self, call: Call) -> None:
        dies_s = call.deadline_s if call.has_reply else call.dies_s
        if dies_s is None:
            call.message.ttl_s = None
        elif call.has_reply or dies_s > self._now_s():
            call.message.ttl_s = max(dies_s - self._now_s(), 0.001)
        else:
            self.expire(call.number)
            return
        self._post(call.message, call.number)

    def end(self, call: Call) -> bool:
        """Take it out; return whether its client is still there."""
        del self._open[call.number]
        self._named.pop(call.name, None)
        if call.stream is not None:
            call.stream.forget()
        count = self._to.pop(call.address) - 1
        if count:
            self._to[call.address] = count
        self._deadlines.remove(call.number, call.deadline_s)
        if call.session is None:
            return False
        call.session.under_way -= 1
        return not call.session.is_over

    # -- what becomes of it

    def on_outcome(self, number: int, code: int, reason: str) -> None:
        """The mesh has taken it, or has not."""
        call = self._open.get(number)
        if call is None:
            return
        if code == Outcome.ACCEPTED:
            if not call.has_reply and self.end(call):
                call.tell(b"DONE", {"id": call.id})
        elif code == Outcome.RELEASED:
            self._release(call)
        elif code == Outcome.REJECTED:
            self.fail(call, Code.REJECTED, f"{call.address}: {reason or 'rejected'}")
        else:
            text = f"{call.address}: whoever had it did not settle it; it may have been handled"
            self.fail(call, Code.IN_DOUBT, text)

    def _release(self, call: Call) -> None:
        """Offer it again after a pause, where there is time for that."""
        call.was_released = True
        if call.on_end is not None or call.is_overdue:
            self._fail_untaken(call)
            return
        left_s = call.deadline_s - self._now_s()
        again_s = self._now_s() + min(call.pause_s, max(left_s - LAST_S, 0.0))
        call.pause_s = min(call.pause_s * 2, PAUSE_MOST_S)
        if left_s > LAST_S:  # else its deadline ends it in a moment
            self._pauses.add(call.number, again_s)

    def expire(self, number: int) -> None:
        """Give up what has lived as long as it may without being taken."""
        call = self._open.get(number)
        if call is not None:
            self._fail_untaken(call)

    def renew(self, call: Call, deadline_s: float) -> None:
        """Have a call end later: something came of it."""
        self._deadlines.remove(call.number, call.deadline_s)
        call.deadline_s = deadline_s
        self._deadlines.add(call.number, deadline_s)

    def fail(self, call: Call, code: Code, text: str) -> None:
        """End it with an error."""
        is_there = self.end(call)
        if call.on_end is not None:
            call.on_end(None)
        elif is_there:
            call.tell(b"ERROR", {"id": call.id, "code": code.value, "text": text})

    def find(self, name: object) -> Call | None:
        """Find the call that a reply's correlation-id names."""
        return self._named.get(name) if isinstance(name, str) else None

    def pass_beat(self, name: object) -> None:
        """Tell a client that its call is under work."""
        call = self.find(name)
        if call is not None and call.session is not None and call.on_end is None:
            call.tell(b"BEAT", {"id": call.id})

    def take(self, name: object) -> Call | None:
        """Take out the call that a reply is for; None where nobody waits for it any more."""
        call = self.find(name)
        if call is None:
            return None
        is_there = self.end(call)
        return call if is_there or call.on_end is not None else None

    def tick(self, now_s: float) -> None:
        """Give up what is over, and offer again what nobody took."""
        for number in self._deadlines.take(now_s):
            call = self._open.get(number)
            if call is not None:
                self._give_up(call)
        for number in self._pauses.take(now_s):
            call = self._open.get(number)
            if call is not None:
                call.was_released = False
                self._offer(call)

    def _give_up(self, call: Call) -> None:
        """End what is over; what its address still holds is released in a moment."""
        if not call.was_released and not call.is_overdue and call.on_end is None:
            call.is_overdue = True
            self.renew(call, self._now_s() + GRACE_S)
            return
        self.timed_out += 1
        if call.was_released:
            self._fail_untaken(call)
        else:
            what = "reply" if call.has_reply else "outcome"
            self.fail(call, Code.TIMEOUT, f"{call.address}: no {what} in time")

    def _fail_untaken(self, call: Call) -> None:
        """Say why nobody took it: those who could had no room, or there is nobody."""
        if self._is_served(call.address):
            text = f"{call.address}: those who serve it had no room for it in time"
            self.fail(call, Code.BUSY, text)
        else:
            self.fail(call, Code.UNREACHABLE, f"{call.address}: nobody was there to take it")
