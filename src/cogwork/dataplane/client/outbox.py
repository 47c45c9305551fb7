"""Where a client's messages leave: what waits for credit, what was sent, what became of it.

Theory of operation. An outbox outlives its link: while there is none, or none with credit, what is
posted waits in the backlog, and goes out as soon as the link is ready, within the data plane's own
batch. Each message has a token, by which its outcome finds it. When a link ends, what it never
started is put back to the front of the backlog; what it had sent is in doubt, and is settled so, or
put back too where the outbox may send twice.

A ttl runs from the post on (AMQP 1.0 §3.2.1): a message that did not leave at once leaves with what
is left of it, and one whose time is over is released instead of being sent.

What is posted is a dispatch (`cogwork.dataplane.client.dispatches`), one message or a batch. A batch goes
out in runs, and the outcomes of a run are taken in at once.
"""

from __future__ import annotations

from collections import deque

import cython
from cython.cimports.cogwork.dataplane.client.dispatches import Batch, Dispatch, Post, Shipper
from cython.cimports.cogwork.dataplane.client.in_flight import DispatchesInFlight
from cython.cimports.cogwork.dataplane.encoding.octets import octets_of
from cython.cimports.cogwork.dataplane.message.header import shorten_ttl, ttl_of
from cython.cimports.cogwork.dataplane.message.messages import Message
from cython.cimports.cogwork.dataplane.message.section_writer import data_section
from cython.cimports.cogwork.dataplane.source_hash import COGWORK_SOURCE_HASH
from cython.cimports.cogwork.dataplane.system import clock_s
from cython.cimports.cogwork.dataplane.transport.shipment import (
    ACCEPTED,
    LOST,
    MODIFIED,
    RECEIVED,
    RELEASED,
    RUN_MAX,
    Piece,
    Shipment,
    fill_shipment,
    state_of,
)
from cython.cimports.cpython.bytes import (
    PyBytes_AS_STRING,
    PyBytes_FromStringAndSize,
    PyBytes_GET_SIZE,
)
from cython.cimports.libc.stdint import int64_t, uint8_t, uint32_t

from cogwork.dataplane.client.posting_errors import BacklogFull, MessageTooLarge

__all__ = ("ACCEPTED_CODE", "IN_DOUBT_CODE", "SOURCE_HASH", "Outbox")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

DURABLE_HEADER = cython.declare(bytes, b"\x00\x53\x70\xc0\x02\x01\x41")
"""A header that says nothing but that its message is durable (AMQP 1.0 §3.2.1)."""

ACCEPTED_CODE, IN_DOUBT_CODE = ACCEPTED, LOST

BACKLOG_MAX = cython.declare(int64_t, 100_000)
"""Messages that may wait for credit: whoever posts without ever waiting is stopped here."""

PAUSE_FIRST_S = cython.declare(cython.double, 0.1)
PAUSE_MAX_S = cython.declare(cython.double, 2.0)
"""Before a message in doubt is sent again: each time twice as long, up to this."""

PATIENCE_S = cython.declare(cython.double, 30.0)
"""So long messages in doubt are sent again: well above the ten seconds that a lost container is
waited for."""

READY_BACKLOG = cython.declare(int64_t, 1_000)
"""Below so many waiting messages an outbox calls itself ready: enough to use credit that comes."""


class Outbox(Shipper):
    """One sender's messages, from link to link.

    Attributes:
        link: The compiled end of the link; None while there is none.
        failure: Why it takes no more; None while it does.
        resends: Whether messages in doubt are sent again.
        resend_later: The event loop's method; None has only lost connections answered by sending again.
        is_durable: Whether messages are durable that do not say whether they are.
        size_bytes_max: The largest message that the other end takes; 0 for any.
        backlog_count: Messages that wait for credit.
    """

    def __init__(
        self, flusher: Flusher, create_future: object, explain: object, resends: bool = False
    ) -> None:
        """Start without a link.

        Args:
            flusher: Of the core.
            create_future: Makes what a task waits for.
            explain: Makes an outcome for the application, of its code and its encoded state.
            resends: Whether messages in doubt are sent again.
        """
        self.core = flusher.core
        self.core.register(self)
        self.flusher = flusher
        self.create_future = create_future
        self.explain = explain
        self.resends = resends
        self.ages = True
        self.backlog = deque()
        self.sent = DispatchesInFlight()
        self.next_token = 1
        self.waiters = []
        self.failed = []
        self.again = []
        self.in_doubt = []

    # -- what the application does

    def post(self, body: object, settled: bool = False) -> Post:
        """Send a message, or have it wait for credit.

        Args:
            body: A message, or the body of one.
            settled: Whether to send it settled, so that no outcome comes.

        Raises:
            BacklogFull: Too many messages wait.
            EncodeError: A value has no encoding.
        """
        post: Post = Post.__new__(Post)
        post.data = self.checked(body)
        post.settled = settled
        self.check(1)
        post.first_token = self.next_token
        self.next_token += 1
        self.submit(post)
        return post

    def post_all(self, bodies: object, settled: bool = False) -> Batch:
        """Send messages, or have them wait for credit.

        Args:
            bodies: Messages, or bodies.
            settled: Whether to send them settled, so that no outcomes come.

        Raises:
            BacklogFull: Too many messages wait.
            EncodeError: A value has no encoding; nothing was sent.
        """
        return self.post_each([self.checked(body) for body in bodies], settled)

    def post_each(self, messages, settled):
        batch: Batch = Batch.__new__(Batch)
        batch.messages = messages
        batch.codes = bytearray(len(batch.messages))
        batch.states = {}
        batch.waiting = len(batch.messages)
        batch.settled = settled
        self.check(0)
        batch.first_token = self.next_token
        self.next_token += batch.waiting
        self.submit(batch)
        return batch

    def post_encoded(self, messages: list) -> Batch:
        """Send messages that are encoded; see `post_all`.

        Raises:
            BacklogFull: Too many messages wait.
            MessageTooLarge: One is; nothing was sent.
        """
        return self.post_each([self.fitting(data) for data in messages], False)

    def checked(self, body):
        """Encode a message, and raise where it is too large."""
        if type(body) is bytes:
            if self.is_durable:
                return self.fitting(DURABLE_HEADER + data_section(body))
            return self.fitting(data_section(body))
        message: Message = body if isinstance(body, Message) else Message(body)
        return self.fitting(self.durably(message) if self.is_durable else message.encode())

    def durably(self, message):
        """Encode a message as a durable one, unless it says itself whether it is."""
        if message._says_durable or message._raw is not None:
            return message.encode()
        message._header.durable = True
        try:
            return message.encode()
        finally:
            message._header.durable = False

    def fitting(self, data):
        """Return an encoded message, and raise where it is too large."""
        if self.size_bytes_max and PyBytes_GET_SIZE(data) > self.size_bytes_max:
            raise MessageTooLarge(f"{len(data)} bytes; at most {self.size_bytes_max} are taken")
        return data

    def check(self, count: int64_t) -> None:
        """Raise what keeps messages from being posted."""
        if self.failure is not None:
            raise self.failure
        if self.backlog_count + count > BACKLOG_MAX:
            raise BacklogFull(
                f"{self.backlog_count} messages wait for credit: await ready() between posts"
            )

    def submit(self, dispatch):
        dispatch.outbox = self
        if not self.backlog and self.link is not None and dispatch.advance():
            return self.flusher.later()
        if dispatch.since_s == 0.0:
            dispatch.since_s = clock_s()
        dispatch.queued = True
        self.backlog.append(dispatch)
        self.backlog_count += dispatch.unsent()
        return self.flusher.later()

    @property
    def has_room(self) -> bool:
        """Whether few messages wait."""
        return self.backlog_count < READY_BACKLOG

    @property
    def unsettled_count(self) -> int:
        """Counts what was sent and has no outcome yet."""
        return self.sent.count

    def waiter(self):
        waiter = self.create_future()
        self.waiters.append(waiter)
        return waiter

    async def ready(self) -> None:
        """Wait until few messages wait for credit."""
        while self.backlog_count >= READY_BACKLOG and self.failure is None:
            await self.waiter()

    async def flushed(self) -> None:
        """Wait until nothing is without an outcome.

        Raises:
            CogworkError: The first of the posts, or of the messages of a batch, that failed without
                anybody awaiting them.
        """
        dispatch: Dispatch
        while self.backlog or self.in_doubt or self.is_awaited():
            await self.waiter()
        failed, self.failed = self.failed, []
        for dispatch in failed:
            if not dispatch.is_watched:
                raise dispatch.error()

    def is_awaited(self):
        """Return whether an outcome is still to come that somebody expects."""
        dispatch: Dispatch
        index: cython.Py_ssize_t
        for index in range(self.sent.start, self.sent.end):
            dispatch = self.sent.dispatches[index]
            if dispatch is not None and not dispatch.is_left:
                return True
        return False

    # -- links come and go

    def attach(self, link: OutgoingLink) -> None:
        """Send on `link` from now on."""
        self.link = link
        link.feeder = self

    def stop(self) -> None:
        """The link is about to end: what it now gives back was never sent, or is in doubt."""
        self.stopping = True

    def detach(self) -> None:
        """The link has ended: puts back what is to be sent again, the oldest first."""
        dispatch: Dispatch
        self.stopping = False
        self.link = None
        again, self.again = self.again, []
        again.sort(key=token_of)
        for token, dispatch in reversed(again):
            dispatch.lost(token)
            self.put_back(dispatch)
        self.backlog_count = sum([cython.cast(Dispatch, one).unsent() for one in self.backlog])
        self.release_waiters()

    def withdraw(self, dispatch):
        if not dispatch.queued:
            self.in_doubt.remove(dispatch)
            self.release_waiters()
            return 1
        dispatch.queued = False
        self.backlog.remove(dispatch)
        self.backlog_count -= dispatch.unsent()
        self.release_waiters()
        return 1

    def ids_of(self, dispatch: Dispatch) -> list:
        """List the delivery-ids on the present link of what of a dispatch has no outcome yet."""
        if self.link is None:
            return []
        return self.link.session.sent.ids_of(
            self.link.index, dispatch.first_token, self.size_of(dispatch)
        )

    def size_of(self, dispatch):
        """Count the messages of a dispatch."""
        return len(cython.cast(Batch, dispatch).codes) if isinstance(dispatch, Batch) else 1

    def put_back(self, dispatch):
        if not dispatch.queued:
            if dispatch.since_s == 0.0:
                dispatch.since_s = clock_s()
            dispatch.queued = True
            self.backlog.appendleft(dispatch)
        return 0

    def close(self, failure: object = None) -> None:
        """Take no more; what has no outcome fails with `failure`."""
        dispatch: Dispatch
        self.failure = failure
        unresolved = [*self.sent.clear(), *self.backlog, *self.in_doubt]
        self.backlog.clear()
        self.in_doubt.clear()
        self.backlog_count = 0
        for dispatch in unresolved:
            dispatch.queued = False
            dispatch.fail(failure)
        self.release_waiters()
        self.core.unregister(self)

    # -- what the data plane does

    def pump(self):
        """Send from the backlog for as long as the link takes it."""
        dispatch: Dispatch
        before: int64_t
        if self.pumping or self.link is None:
            return 0
        self.pumping = True
        try:
            while self.backlog:
                dispatch = self.backlog[0]
                before = dispatch.unsent()
                if dispatch.advance() == 0:
                    self.backlog_count -= before - dispatch.unsent()
                    break
                self.backlog_count -= before
                dispatch.queued = False
                self.backlog.popleft()
        finally:
            self.pumping = False
        return self.release_waiters()

    def is_over(self, dispatch, data):
        ttl_ms: int64_t
        if not self.ages:
            return False
        ttl_ms = ttl_of(octets_of(data), PyBytes_GET_SIZE(data))
        return ttl_ms >= 0 and (clock_s() - dispatch.since_s) * 1000.0 >= ttl_ms

    def aged(self, dispatch, data):
        """Return a message with what is left of its ttl."""
        size: cython.Py_ssize_t = PyBytes_GET_SIZE(data)
        ttl_ms: int64_t = ttl_of(octets_of(data), size)
        left_ms: cython.double
        copy: bytes
        if ttl_ms < 0 or not self.ages:
            return data
        left_ms = ttl_ms - (clock_s() - dispatch.since_s) * 1000.0
        copy = PyBytes_FromStringAndSize(PyBytes_AS_STRING(data), size)
        shorten_ttl(
            cython.cast(cython.pointer(uint8_t), PyBytes_AS_STRING(copy)),
            size,
            cython.cast(uint32_t, left_ms) if left_ms > 0.0 else 0,
        )
        return copy

    def ship(self, dispatch, token, data):
        """Write one message; return 0 where the link does not take it now."""
        s: Shipment
        link: OutgoingLink = self.link
        if link is None or not link.is_ready():
            return 0
        if dispatch.since_s != 0.0:
            data = self.aged(dispatch, data)
        elif self.resends:
            dispatch.since_s = clock_s()
        fill_shipment(
            cython.address(s), octets_of(data), cython.cast(uint32_t, PyBytes_GET_SIZE(data))
        )
        s.settled = dispatch.settled
        s.source_index = self.index
        s.source_generation = self.generation
        s.token = token
        if not dispatch.settled:
            self.sent.add(dispatch, token, 1, 1)
        link.take(cython.address(s))
        return 1

    def ship_batch(self, batch):
        """Write messages of a batch, a run at most; return how many the link has taken."""
        s: Shipment
        pieces: Piece[RUN_MAX]
        data: bytes
        kept: list = None
        at: cython.Py_ssize_t = batch.at
        count: uint32_t = 0
        taken: uint32_t
        messages: list = batch.messages  # held, as a batch lets go of them with its last outcome
        size: uint32_t = cython.cast(uint32_t, len(messages))
        link: OutgoingLink = self.link
        if link is None or not link.is_ready():
            return 0
        if batch.since_s == 0.0 and self.resends:
            batch.since_s = clock_s()
        elif batch.since_s != 0.0:
            kept = []
        while count < RUN_MAX and at + count < size and batch.codes[at + count] == 0:
            data = messages[at + count]
            if kept is not None:
                if count and self.is_over(batch, data):
                    break
                data = self.aged(batch, data)
                kept.append(data)
            pieces[count].data = octets_of(data)
            pieces[count].size = cython.cast(uint32_t, PyBytes_GET_SIZE(data))
            pieces[count].token = batch.first_token + at + count
            count += 1
        fill_shipment(cython.address(s), pieces[0].data, pieces[0].size)
        s.settled = batch.settled
        s.source_index = self.index
        s.source_generation = self.generation
        s.token = pieces[0].token
        if not batch.settled:
            self.sent.add(batch, batch.first_token, size, count)
        taken = cython.cast(uint32_t, link.take_run(cython.address(s), pieces, count))
        if taken < count and not batch.settled:
            self.sent.remove(self.sent.find(pieces[count - 1].token), count - taken)
        return taken

    def on_ready(self, link):
        return self.pump()

    def resolve_outcome(self, token, verdict):
        dispatch: Dispatch
        if verdict.code == RECEIVED:
            return 0
        dispatch = self.landed(token)
        if dispatch is None:
            return 1
        if self.stopping and (verdict.code == RELEASED or (verdict.code == LOST and self.resends)):
            self.again.append((token, dispatch))
            if verdict.code == LOST:
                dispatch.mark_in_doubt(token)
            return 1
        if self.resends and verdict.code == MODIFIED and self._may_resend(dispatch, verdict):
            if isinstance(dispatch, Batch):
                dispatch = cython.cast(Batch, dispatch).repeat(token, self.next_token)
                self.next_token += 1
            self._put_off(cython.cast(Post, dispatch))
            return 1
        dispatch.resolved(
            token, verdict.code, None if verdict.code == ACCEPTED else state_of(verdict)
        )
        if self.waiters:
            self.release_waiters()
        return 1

    def _may_resend(self, dispatch, verdict):
        """Return whether the other end is in doubt of a message, and it is to be sent once more."""
        post: Post
        if self.resend_later is None or self.failure is not None:
            return False
        outcome = self.explain(verdict.code, state_of(verdict))
        if not outcome.delivery_failed or outcome.undeliverable_here:
            return False
        if not isinstance(dispatch, Post):
            return True
        post = cython.cast(Post, dispatch)
        return post.in_doubt_since_s == 0.0 or clock_s() - post.in_doubt_since_s < PATIENCE_S

    def _put_off(self, post):
        """Have a message sent again after a pause."""
        post.was_sent = True
        post.is_put_off = True
        if post.in_doubt_since_s == 0.0:
            post.in_doubt_since_s = clock_s()
        post.pause_s = min(post.pause_s * 2, PAUSE_MAX_S) if post.pause_s else PAUSE_FIRST_S
        self.in_doubt.append(post)
        if len(self.in_doubt) == 1:
            self.resend_later(post.pause_s, self.resend)
        return 0

    def resend(self) -> None:
        """Send what is in doubt again; what has no link waits for one."""
        post: Post
        in_doubt, self.in_doubt = self.in_doubt, []
        for post in in_doubt:
            post.is_put_off = False
            self.submit(post)

    def landed(self, token):
        """Return whose message has its outcome now; None where it is not under way."""
        index: cython.Py_ssize_t = self.sent.find(token)
        return None if index < 0 else self.sent.remove(index, 1)

    def resolve_run(self, token, count, verdict):
        if verdict.code != ACCEPTED:
            return Shipper.resolve_run(self, token, count, verdict)
        self.accept_run(token, count)
        return self.release_waiters() if self.waiters else 0

    def accept_run(self, token, count):
        """Take in that messages with consecutive tokens were accepted."""
        dispatch: Dispatch
        index: cython.Py_ssize_t
        part: uint32_t
        while count:
            index = self.sent.find(token)
            part = 1
            if index >= 0:
                part = min(count, self.sent.left(index, token))
                dispatch = self.sent.remove(index, part)
                if part == 1:
                    dispatch.resolved(token, ACCEPTED, None)
                else:
                    cython.cast(Batch, dispatch).accept(token, part)
            token += part
            count -= part
        return 0

    def release_waiters(self):
        """Wake whoever waits for room or for the last outcome; each looks for itself."""
        if self.waiters and self.backlog_count < READY_BACKLOG:
            waiters: list = self.waiters
            self.waiters = []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)
        return 0


def token_of(pair: tuple) -> int:
    """Order what is to be sent again."""
    return pair[0]
