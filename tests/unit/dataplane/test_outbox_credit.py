"""What a stream's outbox says of messages that get no credit, or only doubtful answers."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
from peers import Peer

from cogwork.amqp.outcomes import Modified, Released
from cogwork.client.errors import ClientError, InDoubt
from cogwork.client.errors import Released as NotTaken
from cogwork.client.publishing.outcome import Outcome, outcome_of
from cogwork.dataplane.client.flusher import Flusher
from cogwork.dataplane.client.stream_outbox import StreamOutbox
from cogwork.dataplane.core import Core
from cogwork.dataplane.message.messages import Message
from cogwork.dataplane.transport.outgoing import OutgoingLink

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.dataplane.client.dispatches import Batch, Post

STREAM = "stream/orders"
NEVER = 3600.0


class Sender:
    """An outbox on a link that gets the credit a test gives it; time passes when a test says so."""

    def __init__(self, patience_s: float) -> None:
        ids = itertools.count()
        self.core = Core()
        self.later: list[Callable[[], object]] = []
        self.outbox: StreamOutbox[Outcome] = StreamOutbox(
            Flusher(self.core, lambda run: run()),
            pytest.fail,
            lambda code, state: outcome_of(STREAM, code, state),
            lambda: b"producer %d" % next(ids),
            lambda _delay_s, work: self.later.append(work),
        )
        self.outbox.patience_s = patience_s
        self.attach()

    def attach(self) -> None:
        self.peer = Peer(self.core)
        self.link = OutgoingLink(self.peer.session, 0)
        self.peer.session.map_link(0, self.link)
        self.outbox.attach(self.link)

    def lose(self) -> None:
        self.outbox.stop()
        self.link.detach()
        self.outbox.detach()
        self.peer.session.end()
        self.peer.wire.stop()
        self.attach()

    def wait(self) -> None:
        """Let time pass."""
        self.core.tick()
        later, self.later = self.later, []
        for work in later:
            work()

    def sent(self) -> list[tuple[object, Any, Any]]:
        """Return body, producer and sequence of what has arrived."""
        self.arrived = self.peer.take()
        messages = [Message.decode(each.message) for each in self.arrived]
        return [
            (each.body, each.annotations["x-opt-producer"], each.annotations["x-opt-sequence"])
            for each in messages
        ]


def error_of(post: Post) -> ClientError:
    assert post.is_done
    error = post.error()
    assert isinstance(error, ClientError)
    return error


def outcomes_of(batch: Batch[Outcome]) -> list[ClientError | None]:
    with pytest.raises(StopIteration) as done:
        next(batch.__await__())
    return [each.error() for each in done.value.value]


def test_what_gets_no_credit_is_given_back_with_the_reason() -> None:
    sender = Sender(0.0)
    post = sender.outbox.append_one(b"one")
    batch = sender.outbox.append_all([b"two", b"three"])
    assert not post.is_done
    sender.wait()
    for error in (error_of(post), *outcomes_of(batch)):
        assert isinstance(error, NotTaken)
        assert "it was not sent: the stream has given no credit for 0 s" in str(error)
    assert sender.outbox.backlog_count == 0
    sender.peer.flow(sender.link, 10)
    sender.outbox.append_one(b"four")
    assert sender.sent() == [(b"four", b"producer 0", 0)], "their sequences are used again"


def test_what_comes_behind_others_that_are_answered_is_not_given_back() -> None:
    sender = Sender(0.0)
    sender.peer.flow(sender.link, 1)
    first, second = sender.outbox.append_one(b"one"), sender.outbox.append_one(b"two")
    sender.outbox.patience_s = NEVER
    sender.wait()
    assert [each[0] for each in sender.sent()] == [b"one"]
    sender.outbox.patience_s = 0.0
    sender.wait()
    assert not second.is_done, "the first one is under way"
    sender.outbox.patience_s = NEVER
    sender.peer.settle(sender.arrived[0])
    assert first.is_done
    sender.wait()
    assert not second.is_done, "it has waited since then only"
    sender.outbox.patience_s = 0.0
    sender.wait()
    assert isinstance(error_of(second), NotTaken)
    sender.peer.flow(sender.link, 1)
    sender.outbox.append_one(b"three")
    assert sender.sent() == [(b"three", b"producer 0", 1)]


def test_what_was_sent_before_the_link_was_lost_is_in_doubt() -> None:
    sender = Sender(NEVER)
    sender.peer.flow(sender.link, 1)
    first, second = sender.outbox.append_one(b"one"), sender.outbox.append_one(b"two")
    sender.lose()
    sender.outbox.patience_s = 0.0
    sender.wait()
    assert isinstance(error_of(first), InDoubt)
    assert isinstance(error_of(second), NotTaken)
    sender.peer.flow(sender.link, 1)
    sender.outbox.append_one(b"three")
    assert sender.sent() == [(b"three", b"producer 1", 0)], "nobody knows where the other one is"


def test_what_the_stream_may_have_is_never_said_not_to_be_there() -> None:
    sender = Sender(NEVER)
    sender.peer.flow(sender.link, 10)
    post = sender.outbox.append_one(b"one")
    sender.sent()
    sender.peer.settle(sender.arrived[0], Modified(delivery_failed=True))
    sender.wait()
    assert [each[0] for each in sender.sent()] == [b"one"], "it is tried again"
    sender.outbox.patience_s = -1.0
    sender.peer.settle(sender.arrived[0], Released())
    sender.wait()
    assert isinstance(error_of(post), InDoubt)
    assert "may have the message, or may not" in str(error_of(post))
