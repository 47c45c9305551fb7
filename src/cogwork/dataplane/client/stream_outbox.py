"""A client's messages on their way into a stream: each once, in order, whatever happens between.

Theory of operation. Each message gets the producer's id and its own sequence, by which the stream
drops what comes twice. So what a lost connection left in doubt is sent again; and what the stream
could not take is held, with all that follows it, until everything under way has been answered: then
it is sent again in order, after a pause.

A stream that does not know the sequence (it has forgotten the producer, or one of its messages was
rejected for good) gets what is left under a new id. What was in doubt then stays so.

What waits for credit while nothing is under way is given back when that has taken too long; it was
never sent, and its sequences are used again.

A producer whose id was given, so that another process can go on as the same one, keeps it: where
it would have to take a new one everything that has no outcome fails instead.
"""

from __future__ import annotations

import cython
from cython.cimports.cogwork.dataplane.client.dispatches import Batch, Dispatch, Post, Shipper
from cython.cimports.cogwork.dataplane.client.outbox import Outbox
from cython.cimports.cogwork.dataplane.encoding.octets import octets_of, store_u32, store_u64
from cython.cimports.cogwork.dataplane.message.section_writer import data_head_size, put_data_head
from cython.cimports.cogwork.dataplane.source_hash import COGWORK_SOURCE_HASH
from cython.cimports.cogwork.dataplane.stream.records import FINE, Record, read_record, write_pairs
from cython.cimports.cogwork.dataplane.transport.shipment import (
    ACCEPTED,
    LOST,
    MODIFIED,
    RECEIVED,
    REJECTED,
    RELEASED,
    state_of,
)
from cython.cimports.cpython.bytes import (
    PyBytes_AS_STRING,
    PyBytes_FromStringAndSize,
    PyBytes_GET_SIZE,
)
from cython.cimports.libc.stdint import int64_t, uint8_t, uint32_t, uint64_t
from cython.cimports.libc.string import memcpy

from cogwork.amqp import codec
from cogwork.amqp.errors import AmqpError, Condition, EncodeError
from cogwork.amqp.outcomes import Modified, Rejected

__all__ = ("SOURCE_HASH", "StreamOutbox")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

PAUSE_FIRST_S = cython.declare(cython.double, 0.05)
PAUSE_LONGEST_S = cython.declare(cython.double, 1.0)

PATIENCE_S = cython.declare(cython.double, 60.0)
"""How long a message is sent again that the stream does not take, before its sender is told."""

IN_DOUBT = cython.declare(bytes, codec.encode(Modified(delivery_failed=True).to_described()))

OUT_OF_SEQUENCE = cython.declare(bytes, b"cogwork:out-of-sequence")

WATCH_LONGEST_S = cython.declare(cython.double, 3600.0)
"""So often it is looked at the least."""

STAMP_SIZE = cython.declare(int64_t, 43)
"""Both keys, the sequence, and the constructor of the id."""


class StreamOutbox(Outbox):
    """One producer's messages, from link to link.

    Attributes:
        producer: Its id.
        sequence: The next message's.
        is_paused: Whether it waits before it sends again.
        patience_s: How long a message is tried, or waits for credit, before its sender is told.
    """

    def __init__(
        self,
        flusher: object,
        create_future: object,
        explain: object,
        new_producer: object,
        call_later: object,
        producer: bytes | None = None,
    ) -> None:
        """Start without a link.

        Args:
            flusher: Of the core.
            create_future: Makes what a task waits for.
            explain: Makes an outcome for the application, of its code and its encoded state.
            new_producer: Makes an id that nobody has.
            call_later: The event loop's method.
            producer: An id that is kept whatever happens; None for a new one.
        """
        Outbox.__init__(self, flusher, create_future, explain, True)
        self.ages = False  # a producer's sequence has no gaps
        self.new_producer = new_producer
        self.call_later = call_later
        self.is_kept = producer is not None
        self.producer = new_producer() if producer is None else producer
        self.patience_s = PATIENCE_S
        self.pause_s = PAUSE_FIRST_S
        self.in_doubt = set()

    # -- what the application does

    def append_one(self, body: object) -> Post:
        """Send a message; see `Outbox.post`. What raises has not used a sequence."""
        before: uint64_t = self.sequence
        try:
            return self.post(body, False)
        except BaseException:
            self.sequence = before
            raise

    def append_all(self, bodies: object) -> Batch:
        """Send messages; see `Outbox.post_all`."""
        before: uint64_t = self.sequence
        try:
            return self.post_all(bodies, False)
        except BaseException:
            self.sequence = before
            raise

    def append_encoded(self, messages: list) -> Batch:
        """Send messages that are encoded; see `Outbox.post_encoded`."""
        before: uint64_t = self.sequence
        try:
            return self.post_each(
                [self.fitting(self.stamped(data, False)) for data in messages], False
            )
        except BaseException:
            self.sequence = before
            raise

    def checked(self, body):
        if type(body) is bytes:
            return self.fitting(self.stamped(body, True))
        return self.fitting(self.stamped(Outbox.checked(self, body), False))

    def stamped(self, data, is_plain):
        """Return a message with the producer's id and the next sequence.

        What is plain is no message but the body of one: its octets are copied once.
        """
        r: Record
        size: int64_t
        total: int64_t
        head_size: int64_t = 0
        producer_size: int64_t = PyBytes_GET_SIZE(self.producer)
        made: bytes
        p: cython.pointer(uint8_t)
        if is_plain:
            r.data = octets_of(data)
            r.head_end = r.rest = r.kept_size = 0
            r.kept = 0
            head_size = data_head_size(cython.cast(uint32_t, PyBytes_GET_SIZE(data)))
        elif read_record(octets_of(data), PyBytes_GET_SIZE(data), cython.address(r)) != FINE:
            raise EncodeError("the annotations x-opt-producer and x-opt-sequence are the stream's")
        size = STAMP_SIZE + producer_size + r.kept_size
        total = 12 + size + r.head_end + head_size + PyBytes_GET_SIZE(data) - r.rest
        made = PyBytes_FromStringAndSize(cython.NULL, total)
        p = cython.cast(cython.pointer(uint8_t), PyBytes_AS_STRING(made))
        memcpy(p, r.data, r.head_end)
        p += r.head_end
        memcpy(p, b"\x00\x53\x72\xd1", 4)
        store_u32(p + 4, cython.cast(uint32_t, size + 4))
        store_u32(p + 8, 4 + 2 * r.kept)
        p += 12
        memcpy(p, b"\xa3\x0ex-opt-producer\xa0", 17)
        p[17] = cython.cast(uint8_t, producer_size)
        memcpy(p + 18, octets_of(self.producer), producer_size)
        p += 18 + producer_size
        memcpy(p, b"\xa3\x0ex-opt-sequence\x80", 17)
        store_u64(p + 17, self.sequence)
        p += 25
        if r.kept:
            p = write_pairs(p, cython.address(r))
        if is_plain:
            p = put_data_head(p, cython.cast(uint32_t, PyBytes_GET_SIZE(data)))
        memcpy(p, r.data + r.rest, PyBytes_GET_SIZE(data) - r.rest)
        self.sequence += 1
        return made

    async def flushed(self) -> None:
        """Wait until nothing is without an outcome.

        Raises:
            CogworkError: The first of the posts that failed without anybody awaiting them.
        """
        while self.backlog or self.sent.count or self.again:
            waiter = self.create_future()
            self.waiters.append(waiter)
            await waiter
        await Outbox.flushed(self)

    # -- what the data plane does

    def withdraw(self, dispatch):
        """Take nothing back: the stream would wait for the sequence that is missing."""
        return 0

    def ship(self, dispatch, token, data):
        if self.is_paused or Outbox.ship(self, dispatch, token, data) == 0:
            return 0
        self.served_s = self.core.now
        return 1

    def ship_batch(self, batch):
        taken: cython.Py_ssize_t = 0 if self.is_paused else Outbox.ship_batch(self, batch)
        if taken:
            self.served_s = self.core.now
        return taken

    def submit(self, dispatch):
        Outbox.submit(self, dispatch)
        if dispatch.queued and not self.is_watching:
            self.served_s = self.core.now
            self.watch_backlog()
        return 0

    def resolve_run(self, token, count, verdict):
        self.served_s = self.core.now
        if verdict.code != ACCEPTED or self.in_doubt:
            return Shipper.resolve_run(self, token, count, verdict)
        self.is_failing = False
        self.pause_s = PAUSE_FIRST_S
        self.accept_run(token, count)
        return self.look_further()

    def resolve_outcome(self, token, verdict):
        dispatch: Dispatch
        if verdict.code == RECEIVED:
            return 0
        dispatch = self.landed(token)
        if dispatch is None:
            return 1
        self.served_s = self.core.now
        if self.stopping and (verdict.code == RELEASED or verdict.code == LOST):
            if verdict.code == LOST:
                self.in_doubt.add(token)
            self.again.append((token, dispatch))
            return 1
        if verdict.code == ACCEPTED:
            self.is_failing = False
            self.pause_s = PAUSE_FIRST_S
            self.in_doubt.discard(token)
            dispatch.resolved(token, ACCEPTED, None)
        elif verdict.code == RELEASED or verdict.code == MODIFIED:
            if verdict.code == MODIFIED:
                self.in_doubt.add(token)
            self.hold(token, dispatch)
        elif verdict.code == REJECTED and OUT_OF_SEQUENCE in (state_of(verdict) or b""):
            if not self.again:
                self.renews = True
                self.note_reason(verdict.code, state_of(verdict))
            self.hold(token, dispatch)
        else:
            self.renews = True
            self.is_paused = True
            self.note_reason(verdict.code, state_of(verdict))
            dispatch.resolved(token, verdict.code, state_of(verdict))
        self.look_further()
        return 1

    def look_further(self):
        """Go on after outcomes: send again where all are there, and wake who waits."""
        if self.is_paused and not self.sent.count:
            self.call_later(self.pause_s if self.again else 0.0, self.go_on)
        elif self.waiters:
            self.release_waiters()
        return 0

    def hold(self, token, dispatch):
        """Keep what was not taken, and all that is to follow it, until it is sent again."""
        self.again.append((token, dispatch))
        self.is_paused = True
        if not self.is_failing:
            self.is_failing = True
            self.failing_since_s = self.core.now
        return 0

    def go_on(self) -> None:
        """Send again what was held, in order."""
        if not self.is_paused or self.failure is not None:
            return
        self.is_paused = False
        self.pause_s = min(self.pause_s * 2, PAUSE_LONGEST_S)
        if self.is_failing and self.core.now - self.failing_since_s > self.patience_s:
            self.give_up()
        self.put_all_back()
        if self.renews:
            self.renews = False
            self.renew()
        self.pump()
        self.watch_backlog()
        self.flusher.later()

    def attach(self, link: object) -> None:
        """Send on `link` from now on, which has time to get credit."""
        Outbox.attach(self, link)
        self.served_s = self.core.now
        self.watch_backlog()

    def give_up(self) -> None:
        """Tell those that wait longest that the stream does not take their messages."""
        dispatch: Dispatch
        again, self.again = self.again, []
        self.is_failing = False
        self.renews = True
        self.note_reason(RELEASED, None)
        for token, dispatch in again:
            self.tell(dispatch, token, None)

    def tell(self, dispatch, token, state):
        """Tell the sender that a message is not in the stream, unless it may be."""
        if token not in self.in_doubt:
            return dispatch.resolved(token, RELEASED, state)
        self.in_doubt.discard(token)
        return dispatch.resolved(token, MODIFIED, IN_DOUBT)

    # -- without credit

    def watch_backlog(self):
        """See that what waits for credit does not for ever."""
        return 0 if self.is_watching or not self.backlog else self.watch(self.patience_s)

    def watch(self, after_s):
        """Look later whether what waits for credit has been waiting for too long."""
        self.is_watching = True
        self.call_later(min(max(after_s, PAUSE_FIRST_S), WATCH_LONGEST_S), self.look_at_credit)
        return 0

    def look_at_credit(self) -> None:
        """Give back what has waited for too long while nothing was under way."""
        left_s: cython.double
        self.is_watching = False
        if not self.backlog or self.failure is not None:
            return
        if self.link is None or self.is_paused or self.sent.count:
            self.served_s = self.core.now  # something else is waited for
            self.watch(self.patience_s)
            return
        left_s = self.served_s + self.patience_s - self.core.now
        if left_s > 0:
            self.watch(left_s)
        else:
            self.starve()

    def starve(self):
        """Give back all that waits for credit."""
        dispatch: Dispatch
        unsent: list = list(self.backlog)
        text: str = f"it was not sent: the stream has given no credit for {self.patience_s:g} s"
        error = AmqpError(condition=Condition.RESOURCE_LIMIT_EXCEEDED, description=text)
        state: bytes = codec.encode(Rejected(error=error).to_described())
        self.backlog.clear()
        if self.in_doubt:  # some of it was sent before the link was lost
            self.note_reason(MODIFIED, IN_DOUBT)
            self.renew()
        else:
            self.sequence -= self.backlog_count
        self.backlog_count = 0
        for dispatch in unsent:
            self.give_back(dispatch, state)
        return self.release_waiters()

    def give_back(self, dispatch, state):
        """Give back what has no outcome of messages that were given together."""
        index: cython.Py_ssize_t
        post: Post
        batch: Batch
        dispatch.queued = False
        if isinstance(dispatch, Post):
            post = dispatch
            return self.tell(post, post.first_token, state)
        batch = dispatch
        for index in range(len(batch.messages)):
            if batch.codes[index] == 0:
                self.tell(batch, batch.first_token + index, state)
        return 0

    def put_all_back(self) -> None:
        """Put what is to be sent again before all else."""
        dispatch: Dispatch
        again, self.again = self.again, []
        again.sort(key=first_of)
        for token, dispatch in reversed(again):
            dispatch.lost(token)
            self.put_back(dispatch)
        self.backlog_count = sum([cython.cast(Dispatch, one).unsent() for one in self.backlog])

    def detach(self) -> None:
        """The link has ended; the next one starts with what is to be sent again."""
        self.is_paused = False
        Outbox.detach(self)
        if self.renews:
            self.renews = False
            self.renew()

    def renew(self):
        """Take a new id, and numbers all that was not sent anew."""
        dispatch: Dispatch
        if self.is_kept:
            return self.give_in()
        self.producer = self.new_producer()
        self.sequence = 0
        for dispatch in list(self.backlog):
            self.restamp(dispatch)
        self.backlog_count = sum([cython.cast(Dispatch, one).unsent() for one in self.backlog])
        return 0

    def note_reason(self, code, state):
        """Remember why a producer that is kept cannot go on."""
        if self.is_kept and self.reason is None:
            self.reason = self.explain(code, state).error()
        return 0

    def give_in(self):
        """Fail all that has no outcome, and take nothing more."""
        dispatch: Dispatch
        unresolved: list = [*self.sent.clear(), *self.backlog]
        self.failure = self.reason
        self.backlog.clear()
        self.backlog_count = 0
        for dispatch in unresolved:
            dispatch.fail(self.failure)
        return self.release_waiters()

    def restamp(self, dispatch):
        """Numbers what was given together; of what is in doubt nobody will ever know."""
        index: cython.Py_ssize_t
        post: Post
        batch: Batch
        if isinstance(dispatch, Post):
            post = dispatch
            if post.first_token in self.in_doubt:
                self.backlog.remove(post)
                post.queued = False
                return self.tell(post, post.first_token, None)
            post.data = self.stamped(post.data, False)
            return 0
        batch = dispatch
        for index in range(len(batch.codes)):
            if batch.codes[index] != 0:
                continue
            if batch.first_token + index in self.in_doubt:
                self.tell(batch, batch.first_token + index, None)
                continue
            batch.messages[index] = self.stamped(batch.messages[index], False)
        return 0


def first_of(pair: tuple) -> int:
    """Order what is to be sent again."""
    return pair[0]
