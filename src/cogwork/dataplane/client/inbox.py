"""Where a client's messages arrive: they wait here, decoded, for whoever iterates.

Theory of operation. An inbox outlives its link. Arrivals are made into messages while the read
batch is scanned, and `async for` takes them one by one without suspending while there are some.
Credit counts what waits: it is topped up when half of the window has been handed over, and that
flow is sent at once, so that the sender goes on while the application works.

A plain inbox accepts an unsettled message when it arrives: it then is with its subscriber.
`cogwork.dataplane.client.items` has the inbox of those who settle themselves.
"""

from __future__ import annotations

import cython
from cython.cimports.cogwork.dataplane.addresses.port import Port
from cython.cimports.cogwork.dataplane.encoding.octets import bytes_from, octets_of
from cython.cimports.cogwork.dataplane.message.messages import Message, message_from
from cython.cimports.cogwork.dataplane.source_hash import COGWORK_SOURCE_HASH
from cython.cimports.cogwork.dataplane.transport.shipment import (
    ACCEPTED,
    REJECTED,
    Verdict,
    fill_verdict,
)
from cython.cimports.libc.stdint import uint32_t

from cogwork.amqp.errors import ProtocolError

__all__ = ("SOURCE_HASH", "Inbox")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

TURN_MESSAGES = cython.declare(uint32_t, 256)
"""Messages handed over before other tasks get their turn, and the socket is read again."""

WAIT = cython.declare(cython.Py_ssize_t, 0)
TURN_FIRST = cython.declare(cython.Py_ssize_t, -1)
"""What `Inbox.permit` says where nothing may be handed over yet."""

WAITERS_MAX = cython.declare(cython.Py_ssize_t, 16)
"""With so many it is looked which of them wait no more."""

UNDECODABLE_STATE = b"\x00\x53\x25\xc0\x1a\x01\x00\x53\x1d\xc0\x14\x01\xa3\x11amqp:decode-error"
"""Rejected, for bytes that are no message: whoever is to look at them is elsewhere."""


class Turn:
    """Awaiting it lets the event loop go round once."""

    def __await__(self):
        yield


TURN = cython.declare(object, Turn())


class Inbox:
    """One receiver's messages, from link to link.

    Whoever wants no iteration sets `listener`: it is called within the data plane's own batch, so
    that what it sends leaves with that batch, and takes what is there by `take_now`.

    Attributes:
        link: The compiled end of the link; None while there is none.
        listener: Called after each batch in which something arrived; None where one iterates.
        window: Messages that may be on their way, waiting or held.
        held: Messages that were handed over and are to be settled by the application.
        undecodable: Counts what was no message and was rejected.
        failure: Why nothing comes any more; None where it just ended, or has not.
    """

    def __init__(self, flusher: Flusher, create_future: object, window: int) -> None:
        """Start without a link.

        Args:
            flusher: Of the core.
            create_future: Makes what a task waits for.
            window: Messages that may be on their way, waiting or held; at least 1.
        """
        self.core = flusher.core
        self.core.register(self)
        self.wakeup = Port(self.core, self)
        self.arrivals = []
        self.flusher = flusher
        self.create_future = create_future
        self.window = window
        self.ready = []
        self.waiters = []
        self.waiters_max = WAITERS_MAX

    @property
    def waiting(self) -> int:
        """Counts what has arrived and was not handed over."""
        return self.count_waiting()

    def count_waiting(self):
        return cython.cast(uint32_t, len(self.ready) - self.at + len(self.arrivals))

    # -- what the data plane does

    def take(self, s):
        try:
            message = self.admit(s)
        except (ProtocolError, UnicodeDecodeError):
            self.undecodable += 1
            if not s.settled:
                self.reply(cython.cast(uint32_t, s.token), REJECTED, UNDECODABLE_STATE)
            return self.top_up()
        if message is None:
            return 0
        self.arrivals.append(message)
        if self.waiters or self.listener is not None or self.draining is not None:
            self.wakeup.mark_dirty()
        return 0

    def admit(self, s):
        """Make a message of an arrival; None where there is nothing to hand over."""
        message: Message = message_from(self.payload(s))
        if not s.settled:
            self.reply(cython.cast(uint32_t, s.token), ACCEPTED, None)
        return message

    def payload(self, s):
        joined: bytes = None if self.link is None else self.link.joined
        if joined is not None and octets_of(joined) == s.data and len(joined) == s.size:
            return joined
        return bytes_from(s.data, s.size)

    def reply(self, delivery_id, code, state):
        verdict: Verdict
        fill_verdict(cython.address(verdict), code, state)
        self.link.resolve_outcome(delivery_id, cython.address(verdict))
        return 0

    def on_batch(self, port: object) -> None:
        """Wake whoever waits for what arrived."""
        self.wake()
        if self.listener is not None and self.arrivals:
            self.listener()

    def wake(self):
        if self.draining is not None and self.link is not None and self.link.credit == 0:
            if not self.is_stopped:  # without credit from the start: only the sender can tell
                self.drained()
        waiters: list = self.waiters
        if waiters:
            self.waiters = []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)
        return 0

    def top_up(self):
        """Give credit again once half of the window is used up."""
        used: uint32_t
        if self.link is None or self.is_over or self.is_stopped or self.draining is not None:
            return 0
        used = self.count_waiting() + self.held
        if used + self.link.credit <= self.window // 2:
            self.link.grant(self.window - used)
            return 1
        return 0

    # -- handing over to a listener

    def take_now(self) -> list:
        """Hand over what has arrived, which counts as held until `let_go`."""
        batch: list = self.arrivals
        self.arrivals = []
        self.held += cython.cast(uint32_t, len(batch))
        return batch

    def let_go(self, count: cython.int) -> None:
        """Is done with messages of `take_now`: there is room for as many more."""
        self.held -= cython.cast(uint32_t, count)
        if self.top_up():
            self.flusher.later()

    # -- handing over

    def refill(self):
        """Take up what arrived since; return whether something waits."""
        if self.at < len(self.ready):
            return True
        if not self.arrivals:
            return False
        self.ready = self.arrivals
        self.arrivals = []
        self.at = 0
        return True

    def next_waiting(self):
        """Hand over one message; there must be one."""
        message = self.ready[self.at]
        self.ready[self.at] = None
        self.at += 1
        self.hand(message)
        if self.top_up():
            self.flusher.now()
        return message

    def hand(self, message):
        """Note that the application has a message."""
        return 0

    def __aiter__(self):
        return self

    async def __anext__(self):
        count: cython.Py_ssize_t
        while True:
            if not self.refill():
                if self.has_ended():
                    raise StopAsyncIteration
                self.rest()
                await self.arrival()
            elif self.handed_in_turn >= TURN_MESSAGES:
                self.rest()
                self.handed_in_turn = 0
                await TURN
            else:
                count = self.permit(1)
                if count > 0:
                    self.handed_in_turn += 1
                    return self.next_waiting()
                await self.permission(count)

    def permit(self, limit):
        """Return how many messages may be handed over now, of at most `limit`; one waits at least.

        None: `WAIT` until `wake` is called, or `TURN_FIRST`, let the event loop read its sockets.
        """
        return limit

    def rest(self):
        """Note that the application waits for this inbox, and not the other way round."""
        return 0

    async def permission(self, reason: cython.Py_ssize_t) -> None:
        """Wait as long as `permit` has asked for; what waited may have gone then."""
        self.handed_in_turn = 0
        if reason == TURN_FIRST:
            await TURN  # asyncio resumes this before it calls the readers that it has found
            await TURN
        elif self.refill():
            await self.arrival()

    def has_ended(self):
        """Return whether nothing more will come; raise where the link ended for good."""
        if self.failure is not None:
            raise self.failure
        return self.is_over

    def arrival(self):
        """Make what is set when something has arrived, or the inbox was closed."""
        waiter = self.create_future()
        if len(self.waiters) >= self.waiters_max:  # those who gave up, where nothing comes
            self.waiters = [each for each in self.waiters if not each.done()]
            self.waiters_max = max(
                WAITERS_MAX, 2 * cython.cast(cython.Py_ssize_t, len(self.waiters))
            )
        self.waiters.append(waiter)
        self.handed_in_turn = 0
        return waiter

    async def take_batch(self, count_max: int) -> object:
        """Hand over what waits, at least one message; none once the inbox is closed.

        Args:
            count_max: How many at most.

        Raises:
            CogworkError: The link ended for good.
        """
        count: cython.Py_ssize_t = 0
        while count <= 0:
            if not self.refill():
                if self.has_ended():
                    return self.pick(0)
                self.rest()
                await self.arrival()
            elif count_max < 1:
                return self.pick(0)
            elif self.handed_in_turn >= TURN_MESSAGES:
                self.rest()
                self.handed_in_turn = 0
                await TURN
            else:
                count = self.permit(count_max)
                if count <= 0:
                    await self.permission(count)
        batch = self.pick(count)
        self.handed_in_turn += cython.cast(uint32_t, len(batch))
        if self.top_up():
            self.flusher.now()
        return batch

    def pick(self, limit):
        """Hand over what waits, so many at most."""
        count: cython.Py_ssize_t
        batch: list = []
        while len(batch) < limit and self.refill():
            count = min(limit - len(batch), len(self.ready) - self.at)
            if self.at == 0 and count == len(self.ready) and not batch:
                batch = self.ready
                self.ready = []
            else:
                batch.extend(self.ready[self.at : self.at + count])
                self.at += count
        for message in batch:
            self.hand(message)
        return batch

    async def drain(self) -> object:
        """Hand over what the sender has at once, as much as the window takes; perhaps nothing.

        A link that is lost says nothing of what there is: the next one is asked.

        Raises:
            CogworkError: The link ended for good.
        """
        link: IncomingLink
        used: uint32_t
        while True:
            while self.link is None and not self.is_over and not self.count_waiting():
                await self.arrival()
            link = self.link
            used = self.count_waiting() + self.held
            if link is not None and self.draining is None and used < self.window:
                await self.exhausted(self.window - used)
            if self.refill():
                return await self.take_batch(self.window)
            if self.failure is not None:
                raise self.failure
            if self.link is link:
                break
        self.top_up()
        self.flusher.later()
        return self.pick(0)

    async def stop(self) -> None:
        """Take no more, and wait until all that was under way has arrived."""
        self.is_stopped = True
        if self.link is not None and self.draining is None:
            await self.exhausted(0)

    async def exhausted(self, credit: uint32_t) -> None:
        """Wait until the sender has used up this credit, with messages or without."""
        self.draining = self.create_future()
        self.link.grant(credit, True)
        self.flusher.now()
        try:
            await self.draining
        except BaseException:
            self.draining = None
            self.drained()  # the answer may have come just now
            raise
        self.draining = None

    def drained(self) -> None:
        """Nothing more will come of what a drain asked for; who has left it may go on otherwise."""
        if self.draining is None:
            if self.top_up():
                self.flusher.later()
        elif not self.draining.done():
            self.draining.set_result(None)

    # -- links come and go

    def attach(self, link: IncomingLink) -> None:
        """Receive on `link` from now on; `start` gives it credit."""
        self.link = link

    def start(self) -> None:
        """Give the link its first credit, once the peer has answered the attach."""
        self.top_up()
        self.wake()
        self.flusher.later()

    def detach(self) -> None:
        """The link has ended."""
        self.link = None
        self.drained()

    def close(self, failure: object = None) -> None:
        """End the iteration once what waits was handed over; a failure ends it at once, as a rule.

        Args:
            failure: What iterating raises from now on.
        """
        self.failure = failure
        self.is_over = True
        if failure is not None:
            self.drop_waiting()
        self.drained()
        self.wake()
        if self.wakeup.open:
            self.wakeup.close()
            self.core.unregister(self)

    def drop_waiting(self):
        """Forget what was not handed over."""
        self.ready = []
        self.arrivals = []
        self.at = 0
        return 0
