"""One channel: its consumers, what it publishes, and the order of its answers (AMQP 0-9-1 §1.5).

Theory of operation. A method goes to its function by a table (`handlers`). Most are done at once. A
commit waits until all that it has published is answered for. A function that has to wait for
something else returns a coroutine, which runs in a task: for the turn of a source address that
makes too many queues, say, or for another container. What the client sends meanwhile waits behind
it, so that a channel's answers come in the order of its questions, and no other channel waits: but
for a client that sends so much that it is not read for a while. A channel that ends cancels it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Protocol

from cogwork.amqp091.errors import ProtocolError
from cogwork.amqp091.methods import BasicCancel
from cogwork.container.amqp091.declarer import Declarer
from cogwork.container.amqp091.faults import refusal_of
from cogwork.container.amqp091.properties import has_capability
from cogwork.container.amqp091.publishing import Publishing
from cogwork.dataplane.amqp091.channel import BasicChannel
from cogwork.plugin.node import Refused

if TYPE_CHECKING:
    from cogwork.amqp091.content import Content
    from cogwork.amqp091.method import Method
    from cogwork.container.amqp091.declarer import Work
    from cogwork.container.amqp091.owner import ChannelOwner
    from cogwork.container.amqp091.queues import BasicQueues
    from cogwork.container.amqp091.reply_to import ReplyConsumer
    from cogwork.container.connections.clients import ClientContext
    from cogwork.dataplane.amqp091.channel import BasicConsumer

__all__ = ("Channel",)

LATER_MAX = 1_000
"""So many commands wait on a channel; the client is not read while there are more."""


class ChannelConsumer(Protocol):
    """A consumer, as its channel sees it.

    Attributes:
        tag: What the client calls it.
        end: Its compiled half.
    """

    tag: str
    end: BasicConsumer

    @property
    def address(self) -> str:
        """Where it takes from."""

    def leave(self) -> None:
        """Take no more."""


class Channel(Declarer):
    """One open channel.

    Attributes:
        number: Its number.
        end: The compiled half.
        publishing: What it publishes, with confirms and transactions.
        consumers: By tag.
        replies: The one that takes replies; None where there is none.
        prefetch: How many unacknowledged messages each consumer that comes may have; 0 is any.
    """

    def __init__(self, connection: ChannelOwner, number: int) -> None:
        """Begin where the client has opened it."""
        self._connection = connection
        self.number = number
        self.publishing = Publishing(self)
        self.end = BasicChannel(connection.wire, number, self.publishing)
        self.end.is_direct = True
        self.consumers: dict[str, ChannelConsumer] = {}
        self.replies: ReplyConsumer | None = None
        self.prefetch = 0
        self._later: deque[tuple[Method, Content | None]] = deque()
        self._work: asyncio.Task[None] | None = None
        self._is_closed = False

    @property
    def connection(self) -> ChannelOwner:
        """Whose it is."""
        return self._connection

    @property
    def client(self) -> ClientContext:
        """What the container keeps with the connection."""
        return self.connection.client

    @property
    def queues(self) -> BasicQueues:
        """The queues of that, as AMQP 0-9-1 declares them."""
        return self.connection.queues

    @property
    def unacknowledged(self) -> int:
        """Counts what consumers have and have not acknowledged."""
        return self.end.unsettled

    @property
    def delivered(self) -> int:
        """Counts what went to the consumers that stand."""
        return sum(each.end.deliveries for each in self.consumers.values())

    @property
    def is_waiting(self) -> bool:
        """Whether what comes has to wait."""
        return self.publishing.is_committing or self._work is not None

    def put_off(self, method: Method, content: Content | None) -> None:
        """Keep a command until what is waited for is over."""
        self._later.append((method, content))
        if len(self._later) == LATER_MAX:
            self.connection.hold_reading(self.number, True)

    def go_on(self) -> None:
        """Take what has come while something was waited for."""
        while self._later and not self.is_waiting:
            self.connection.take_later(self.number, *self._later.popleft())
        if len(self._later) < LATER_MAX:
            self.connection.hold_reading(self.number, False)
        self.connection.note_idle()

    def wait_for(self, work: Work, method: Method) -> None:
        """Have what is to be done for a method done, and all that comes meanwhile after it.

        Args:
            work: What is to be done; it may raise `ProtocolError` and `Refused`.
            method: The method.
        """
        self.end.is_direct = False
        self._work = asyncio.get_running_loop().create_task(work)
        self._work.add_done_callback(partial(self._end_work, method))

    def _end_work(self, method: Method, work: asyncio.Task[None]) -> None:
        error = None if work.cancelled() else work.exception()
        self._work = None
        if self._is_closed:
            return
        if isinstance(error, Refused):
            error = refusal_of(error)
        if isinstance(error, ProtocolError):
            self.fail(error.of_method(method.CLASS_ID, method.METHOD_ID))
        elif error is not None:
            self.connection.on_fault(error)
        else:
            self.end.is_direct = not self.publishing.is_transactional
            self.go_on()
        self.connection.flush()

    def reply(self, method: Method, content: Content | None = None) -> None:
        """Send a method on this channel."""
        self.connection.send(self.number, method, content)

    def fail(self, error: ProtocolError) -> None:
        """Close the channel for something that is not the answer to a method."""
        self.connection.fail_channel(self.number, error)

    def end_consumers(self) -> None:
        """Let every consumer go."""
        for consumer in list(self.consumers.values()):
            consumer.leave()

    def close(self) -> None:
        """Give up what the channel holds; what is unacknowledged goes back, marked."""
        self._is_closed, self.end.is_direct = True, False
        self._later.clear()
        self.connection.hold_reading(self.number, False)
        if self._work is not None:
            self._work.cancel()
        self.publishing.close()
        self.end_consumers()
        self.end.close()

    def cancel(self, consumer: ChannelConsumer) -> None:
        """Tell the client that a consumer has ended whose queue has gone (RabbitMQ)."""
        consumer.leave()
        if has_capability(self.connection.client_properties, "consumer_cancel_notify"):
            self.reply(BasicCancel(consumer_tag=consumer.tag, nowait=True))

    # -- permissions

    def permit_anew(self) -> None:
        """Ask anew what the client may publish; close the channel if a consumer may not take."""
        self.end.forget_allowed()
        try:
            for consumer in self.consumers.values():
                if consumer is not self.replies:
                    self.demand("receive", consumer.address)
        except ProtocolError as error:
            self.fail(error)
