"""Where a client's messages leave: what waits for credit, what was sent, what became of it.

Theory of operation. An outbox outlives its link: while there is none, or none with credit, what is
posted waits in the backlog, and goes out as soon as the link is ready, within the data plane's own
batch. Each message has a token, by which its outcome finds it. When a link ends, what it never
started is put back to the front of the backlog; what it had sent is in doubt, and is settled so, or
put back too where the outbox may send twice.

A post is awaitable and makes a future only when it is awaited before its outcome is there; a batch
makes one future for all its messages.
"""

from __future__ import annotations

from collections import deque

import cython
from cython.cimports.cogwork.dataplane.messages import Message
from cython.cimports.cogwork.dataplane.octets import octets_of
from cython.cimports.cogwork.dataplane.section_writer import data_section
from cython.cimports.cogwork.dataplane.shipment import (
    ACCEPTED,
    LOST,
    RECEIVED,
    RELEASED,
    Shipment,
    fill_shipment,
    state_of,
)
from cython.cimports.cogwork.dataplane.source_hash import COGWORK_SOURCE_HASH
from cython.cimports.cpython.bytes import PyBytes_GET_SIZE
from cython.cimports.libc.stdint import int64_t, uint32_t

from cogwork.dataplane.posting_errors import BacklogFull, MessageTooLarge

__all__ = ("ACCEPTED_CODE", "IN_DOUBT_CODE", "SOURCE_HASH", "Batch", "Outbox", "Post")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

ACCEPTED_CODE, IN_DOUBT_CODE = ACCEPTED, LOST

BACKLOG_MAX = cython.declare(int64_t, 100_000)
"""Messages that may wait for credit: whoever posts without ever waiting is stopped here."""

READY_BACKLOG = cython.declare(int64_t, 1_000)
"""Below so many waiting messages an outbox calls itself ready: enough to use credit that comes."""

FAILURES_KEPT = cython.declare(cython.Py_ssize_t, 1_000)
"""Posts that failed and that nobody awaited yet, kept to be reported by `flushed`."""


class Dispatch:
    """Something that was given to an outbox."""

    def advance(self):
        """Sends as much as the link takes; returns 1 once nothing is left to be sent."""
        return 1

    def resolved(self, token, code, state):
        return 0

    def lost(self, token):
        """Makes a message that was sent one that is to be sent."""
        return 0

    def fail(self, failure):
        """Gives up: no outcome will come any more."""
        return 0

    def unsent(self):
        return 0

    def wake(self):
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)
        return 0


class Post(Dispatch):
    """One message on its way. Awaiting it returns once it is accepted, and raises otherwise.

    Attributes:
        code: The outcome's descriptor code; 0 while there is none. A message that is sent settled
            counts as accepted once it was written.
        queued: Whether it waits for credit.
        failure: Why there will be no outcome; None else.
        on_error: Called with the exception where the message is not accepted.
        on_done: Called with the post once its outcome is known, in the place of `on_error`.
    """

    def advance(self):
        if self.outbox.ship(self, self.first_token, self.data) == 0:
            return 0
        if self.settled:
            self.resolved(self.first_token, ACCEPTED, None)
        return 1

    def resolved(self, token, code, state):
        self.code = code
        self.state = state
        self.data = None
        if self.on_done is not None:
            self.on_done(self)
        elif code != ACCEPTED:
            if self.on_error is not None:
                self.on_error(self.error())
            elif not self.is_watched and len(self.outbox.failed) < FAILURES_KEPT:
                self.outbox.failed.append(self)
        return self.wake()

    def fail(self, failure):
        self.failure = failure
        return self.resolved(self.first_token, LOST, None)

    def unsent(self):
        return 1

    def withdraw(self) -> bool:
        """Takes back a message that waits for credit, and releases it; returns whether it did."""
        if not self.queued:
            return False
        self.outbox.withdraw(self)
        self.code = RELEASED
        self.data = None
        self.wake()
        return True

    def error(self) -> object:
        """Returns the exception that awaiting raises; None where the message was accepted."""
        if self.failure is not None:
            return self.failure
        if self.code == ACCEPTED:
            return None
        return self.outbox.explain(self.code, self.state).error()

    @property
    def is_done(self) -> bool:
        """Whether its outcome is known."""
        return self.code != 0

    def __await__(self):
        self.is_watched = True
        while self.code == 0:
            if self.waiter is None or self.waiter.done():
                self.waiter = self.outbox.create_future()
            yield from self.waiter
        error = self.error()
        if error is not None:
            raise error


class Batch(Dispatch):
    """Several messages on their way. Awaiting it returns the list of their outcomes."""

    def __len__(self) -> int:
        return len(self.messages)

    def advance(self):
        count: cython.Py_ssize_t = len(self.messages)
        while self.at < count:
            if self.codes[self.at] == 0:
                if (
                    self.outbox.ship(
                        self, self.first_token + self.at, cython.cast(bytes, self.messages[self.at])
                    )
                    == 0
                ):
                    return 0
                if self.settled:
                    self.codes[self.at] = ACCEPTED
                    self.waiting -= 1
            self.at += 1
        if self.waiting == 0:
            self.wake()
        return 1

    def resolved(self, token, code, state):
        index: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, token - self.first_token)
        if self.codes[index] != 0:
            return 0
        self.codes[index] = code
        if state is not None:
            self.states[index] = state
        self.waiting -= 1
        return self.wake() if self.waiting == 0 else 0

    def lost(self, token):
        index: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, token - self.first_token)
        self.at = min(self.at, index)
        return 0

    def fail(self, failure):
        self.failure = failure
        return self.wake()

    def unsent(self):
        return len(self.messages) - self.at

    def __await__(self):
        while self.waiting > 0 and self.failure is None:
            if self.waiter is None or self.waiter.done():
                self.waiter = self.outbox.create_future()
            yield from self.waiter
        if self.failure is not None:
            raise self.failure
        return self.outcomes()

    def outcomes(self) -> list:
        """Lists the outcomes in the order of the messages; all must be known."""
        explain = self.outbox.explain
        accepted = explain(ACCEPTED, None)
        found: list = [accepted] * len(self.messages)
        index: cython.Py_ssize_t
        for index in range(len(self.messages)):
            if self.codes[index] != ACCEPTED:
                found[index] = explain(self.codes[index], self.states.get(index))
        return found


class Outbox:
    """One sender's messages, from link to link.

    Attributes:
        link: The compiled end of the link; None while there is none.
        failure: Why it takes no more; None while it does.
        resends: Whether messages in doubt are sent again.
        size_bytes_max: The largest message that the other end takes; 0 for any.
        backlog_count: Messages that wait for credit.
    """

    def __init__(
        self, flusher: Flusher, create_future: object, explain: object, resends: bool = False
    ) -> None:
        """Starts without a link.

        Args:
            flusher: Of the core.
            create_future: The event loop's method.
            explain: Makes an outcome for the application, of its code and its encoded state.
            resends: Whether messages in doubt are sent again.
        """
        self.core = flusher.core
        self.core.register(self)
        self.flusher = flusher
        self.create_future = create_future
        self.explain = explain
        self.resends = resends
        self.backlog = deque()
        self.sent = {}
        self.next_token = 1
        self.waiters = []
        self.failed = []
        self.again = []

    # -- what the application does

    def post(self, body: object, settled: bool = False) -> Post:
        """Sends a message, or has it wait for credit.

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
        """Sends messages, or has them wait for credit.

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
        """Sends messages that are encoded; see `post_all`.

        Raises:
            BacklogFull: Too many messages wait.
            MessageTooLarge: One is; nothing was sent.
        """
        return self.post_each([self.fitting(data) for data in messages], False)

    def checked(self, body):
        """Encodes a message, and raises where it is too large."""
        if type(body) is bytes:
            return self.fitting(data_section(body))
        return self.fitting((body if isinstance(body, Message) else Message(body)).encode())

    def fitting(self, data):
        """Returns an encoded message, and raises where it is too large."""
        if self.size_bytes_max and PyBytes_GET_SIZE(data) > self.size_bytes_max:
            raise MessageTooLarge(f"{len(data)} bytes; at most {self.size_bytes_max} are taken")
        return data

    def check(self, count: int64_t) -> None:
        """Raises what keeps messages from being posted."""
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
        return len(self.sent)

    def waiter(self):
        waiter = self.create_future()
        self.waiters.append(waiter)
        return waiter

    async def ready(self) -> None:
        """Waits until few messages wait for credit."""
        while self.backlog_count >= READY_BACKLOG and self.failure is None:
            await self.waiter()

    async def flushed(self) -> None:
        """Waits until nothing is without an outcome.

        Raises:
            CogworkError: The first of the posts that failed without anybody awaiting them.
        """
        while self.backlog or self.sent:
            await self.waiter()
        failed, self.failed = self.failed, []
        for post in failed:
            if not cython.cast(Post, post).is_watched:
                raise post.error()

    # -- links come and go

    def attach(self, link: OutgoingLink) -> None:
        """Sends on `link` from now on."""
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
        dispatch.queued = False
        self.backlog.remove(dispatch)
        self.backlog_count -= dispatch.unsent()
        return self.release_waiters()

    def put_back(self, dispatch):
        if not dispatch.queued:
            dispatch.queued = True
            self.backlog.appendleft(dispatch)
        return 0

    def close(self, failure: object = None) -> None:
        """Takes no more; what has no outcome fails with `failure`."""
        dispatch: Dispatch
        self.failure = failure
        unresolved = [*self.sent.values(), *self.backlog]
        self.sent.clear()
        self.backlog.clear()
        self.backlog_count = 0
        for dispatch in unresolved:
            dispatch.queued = False
            dispatch.fail(failure)
        self.release_waiters()
        self.core.unregister(self)

    # -- what the data plane does

    def pump(self):
        """Sends from the backlog for as long as the link takes it."""
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

    def ship(self, dispatch, token, data):
        """Writes one message; returns 0 where the link does not take it now."""
        s: Shipment
        link: OutgoingLink = self.link
        if link is None or not link.is_ready():
            return 0
        fill_shipment(
            cython.address(s), octets_of(data), cython.cast(uint32_t, PyBytes_GET_SIZE(data))
        )
        s.settled = dispatch.settled
        s.source_index = self.index
        s.source_generation = self.generation
        s.token = token
        if not dispatch.settled:
            self.sent[token] = dispatch
        link.take(cython.address(s))
        return 1

    def on_ready(self, link):
        return self.pump()

    def resolve_outcome(self, token, verdict):
        dispatch: Dispatch
        if verdict.code == RECEIVED:
            return 0
        dispatch = self.sent.pop(token, None)
        if dispatch is None:
            return 1
        if self.stopping and (verdict.code == RELEASED or (verdict.code == LOST and self.resends)):
            self.again.append((token, dispatch))
            return 1
        dispatch.resolved(
            token, verdict.code, None if verdict.code == ACCEPTED else state_of(verdict)
        )
        if self.waiters:
            self.release_waiters()
        return 1

    def release_waiters(self):
        """Wakes whoever waits for room or for the last outcome; each looks for itself."""
        if self.waiters and self.backlog_count < READY_BACKLOG:
            waiters: list = self.waiters
            self.waiters = []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)
        return 0


def token_of(pair: tuple) -> int:
    """Orders what is to be sent again."""
    return pair[0]
