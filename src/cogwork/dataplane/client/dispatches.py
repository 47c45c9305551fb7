"""What was given to an outbox to be sent: one message, or several, and what became of them.

Theory of operation. A post is awaitable and makes a future only when it is awaited before its
outcome is there; a batch makes one future for all its messages. Outcomes come in runs, and a batch
takes those of a run at once.
"""

from __future__ import annotations

from functools import partial

import cython
from cython.cimports.cogwork.dataplane.source_hash import COGWORK_SOURCE_HASH
from cython.cimports.cogwork.dataplane.transport.shipment import ACCEPTED, LOST, RELEASED
from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING
from cython.cimports.libc.string import memset

__all__ = ("SOURCE_HASH", "Batch", "Post")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

FAILURES_KEPT = cython.declare(cython.Py_ssize_t, 1_000)
"""Posts and batches that failed and that nobody awaited yet, kept to be reported by `flushed`."""


class Shipper(Terminus):
    """What sends them: an outbox, as they see it."""

    def ship(self, dispatch, token, data):
        """Write one message; return 0 where the link does not take it now."""
        return 0

    def ship_batch(self, batch):
        """Write messages of a batch; return how many the link has taken."""
        return 0

    def withdraw(self, dispatch):
        """Take back what waits for credit; return whether it may be left out."""
        return 0

    def release_waiters(self):
        """Wake who waits for outcomes."""
        return 0

    def is_over(self, dispatch, data):
        """Return whether the ttl of a message that waits is over."""
        return False


class Dispatch:
    """Something that was given to an outbox.

    Attributes:
        on_end: Called with it once its outcome is known; None where nobody asks.
    """

    def advance(self):
        """Send as much as the link takes; return 1 once nothing is left to be sent."""
        return 1

    def resolved(self, token, code, state):
        return 0

    def lost(self, token):
        """Make a message that was sent one that is to be sent."""
        return 0

    def mark_in_doubt(self, token):
        """Take note that a message that is to be sent again may have arrived."""
        return 0

    def fail(self, failure):
        """Give up: no outcome will come any more."""
        return 0

    def unsent(self):
        return 0

    def error(self) -> object:
        """Return the exception that tells of its first failure; None where all was accepted."""
        return None

    def note_failure(self):
        """Keep a failure for `flushed`, as long as nobody awaits it."""
        if not self.is_watched and len(self.outbox.failed) < FAILURES_KEPT:
            self.outbox.failed.append(self)
        return 0

    def wake(self):
        if self.on_end is not None:
            self.on_end(self)
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)
        return 0


class Post(Dispatch):
    """One message on its way. Awaiting it returns once it is accepted, and raises otherwise.

    Attributes:
        code: The outcome's descriptor code; 0 while there is none. A message that is sent settled
            counts as accepted once it was written.
        queued: Whether it waits for credit.
        was_sent: Whether it was sent before, over a connection that broke: it may have arrived.
        expired: Whether its ttl was over before it could be sent, so that it is not sent any more.
        failure: Why there will be no outcome; None else.
        on_error: Called with the exception where the message is not accepted.
        on_done: Called with the post once its outcome is known, in the place of `on_error`.
    """

    def advance(self):
        if self.since_s != 0.0 and self.outbox.is_over(self, self.data):
            self.expired = True
            self.resolved(self.first_token, LOST if self.was_sent else RELEASED, None)
            return 1
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
            else:
                self.note_failure()
        return self.wake()

    def mark_in_doubt(self, token):
        self.was_sent = True
        return 0

    def fail(self, failure):
        self.failure = failure
        return self.resolved(self.first_token, LOST, None)

    def unsent(self):
        return 1

    def withdraw(self) -> bool:
        """Take back a message that waits for credit, and release it; return whether it did.

        What a stream counts is not taken back. One that was sent before is in doubt.
        """
        if self.expired:
            return not self.was_sent
        if not (self.queued or self.is_put_off) or not self.outbox.withdraw(self):
            return False
        self.is_put_off = False
        self.code = LOST if self.was_sent else RELEASED
        self.data = None
        self.wake()
        return True

    def leave(self) -> None:
        """Expect no outcome any more: `flushed` waits no longer for it."""
        self.is_watched = self.is_left = True
        self.outbox.release_waiters()

    def error(self) -> object:
        """Return the exception that awaiting raises; None where the message was accepted."""
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
        return len(self.codes)

    @property
    def is_done(self) -> bool:
        """Whether all outcomes are known."""
        return self.waiting == 0 or self.failure is not None

    def advance(self):
        count: cython.Py_ssize_t = len(self.codes)
        taken: cython.Py_ssize_t
        while self.at < count:
            if self.codes[self.at] != 0:
                self.at += 1
                continue
            if self.since_s != 0.0 and self.outbox.is_over(self, self.messages[self.at]):
                self.expire(self.first_token + self.at)
                self.at += 1
                continue
            taken = self.outbox.ship_batch(self)
            if taken == 0:
                return 0
            if self.settled:
                self.accept(self.first_token + self.at, taken)
            self.at += taken
        return 1

    def resolved(self, token, code, state):
        index: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, token - self.first_token)
        if self.codes[index] != 0:
            return 0
        self.codes[index] = code
        if state is not None:
            self.states[index] = state
        self.waiting -= 1
        return self.finished() if self.waiting == 0 else 0

    def expire(self, token):
        """Give up a message whose ttl was over before it could be sent."""
        was_sent: cython.bint = (
            self.in_doubt is not None and token - self.first_token in self.in_doubt
        )
        return self.resolved(token, LOST if was_sent else RELEASED, None)

    def accept(self, token, count):
        """Take the outcome of messages that follow each other and have none yet."""
        memset(PyByteArray_AS_STRING(self.codes) + (token - self.first_token), ACCEPTED, count)
        self.waiting -= count
        return self.finished() if self.waiting == 0 else 0

    def finished(self):
        """All outcomes are there: what was sent is needed no more."""
        self.messages = None
        if self.codes.count(ACCEPTED) != len(self.codes):
            self.note_failure()
        return self.wake()

    def lost(self, token):
        index: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, token - self.first_token)
        self.at = min(self.at, index)
        return 0

    def mark_in_doubt(self, token):
        if self.in_doubt is None:
            self.in_doubt = set()
        self.in_doubt.add(token - self.first_token)
        return 0

    def repeat(self, token, as_token):
        """Make a post of one message that is sent again, alone; its outcome counts for the batch."""
        post: Post = Post.__new__(Post)
        post.outbox = self.outbox
        post.data = self.messages[token - self.first_token]
        post.first_token = as_token
        post.since_s = self.since_s
        post.on_done = partial(self.on_repeated, token)
        if self.repeated is None:
            self.repeated = set()
        self.repeated.add(post)
        return post

    def on_repeated(self, token: int, post: Post) -> None:
        """Take the outcome of a message that was sent again."""
        self.repeated.discard(post)
        if self.messages is not None:
            self.resolved(token, post.code, post.state)

    def fail(self, failure):
        self.failure = failure
        self.note_failure()
        return self.wake()

    def unsent(self):
        return len(self.codes) - self.at

    def error(self) -> object:
        """Return the exception that tells of its first failure; None where all was accepted."""
        if self.failure is not None:
            return self.failure
        errors = (outcome.error() for outcome in self.outcomes())
        return next((error for error in errors if error is not None), None)

    def __await__(self):
        self.is_watched = True
        while self.waiting > 0 and self.failure is None:
            if self.waiter is None or self.waiter.done():
                self.waiter = self.outbox.create_future()
            yield from self.waiter
        if self.failure is not None:
            raise self.failure
        return self.outcomes()

    def leave(self, unsent: object, unanswered: object) -> list:
        """Take back what waits for credit, and expect no outcome of what was sent.

        Args:
            unsent: The outcome of what is taken back; what a stream counts is not.
            unanswered: The outcome of all else that has none, and of what was sent before over a
                connection that broke.

        Returns:
            The outcomes in the order of the messages.
        """
        index: cython.Py_ssize_t
        is_in_doubt: cython.bint
        is_back: cython.bint = self.queued and self.outbox.withdraw(self)
        found: list = []
        post: Post
        self.is_watched = True
        for post in list(self.repeated or ()):
            post.withdraw()
        for index in range(len(self.codes)):
            if self.codes[index] != 0:
                found.append(self.outbox.explain(self.codes[index], self.states.get(index)))
            elif is_back and index >= self.at:
                is_in_doubt = self.in_doubt is not None and index in self.in_doubt
                self.codes[index] = LOST if is_in_doubt else RELEASED
                self.waiting -= 1
                found.append(unanswered if is_in_doubt else unsent)
            else:
                found.append(unanswered)
        if is_back and self.waiting == 0:
            self.finished()
        self.is_left = True
        self.outbox.release_waiters()
        return found

    def outcomes(self) -> list:
        """List the outcomes in the order of the messages; all must be known."""
        explain = self.outbox.explain
        accepted = explain(ACCEPTED, None)
        found: list = [accepted] * len(self.codes)
        index: cython.Py_ssize_t
        if self.codes.count(ACCEPTED) == len(found):
            return found
        for index in range(len(self.codes)):
            if self.codes[index] != ACCEPTED:
                found[index] = explain(self.codes[index], self.states.get(index))
        return found
