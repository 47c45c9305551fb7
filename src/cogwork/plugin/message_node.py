"""A base for nodes that work on messages in Python, a batch at a time.

    class Shout(MessageNode):
        def on_messages(self, messages):
            for message in messages:
                yield self.publish(str(message.body).upper())

Messages that come to the node's address are handed to `on_messages`; whoever receives from the
address gets what the node publishes. A message is accepted once its batch has been worked on; one
that raised is rejected with the error's text, and the rest of the batch goes on one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp.errors import AmqpError, Condition, ProtocolError
from cogwork.amqp.outcomes import Rejected
from cogwork.dataplane.addresses.entry import CLOSEST_CODE, MULTICAST_CODE, AddressEntry
from cogwork.dataplane.addresses.port import Port
from cogwork.dataplane.encoding.codec import encode
from cogwork.dataplane.message.messages import Message
from cogwork.plugin.effects import ACCEPTED, Effect, Publish, Report, Send, Settle
from cogwork.plugins import PLUGIN_FAULTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cogwork.dataplane.terminus import Terminus
    from cogwork.plugin.node import NodeContext, Subscription

__all__ = ("MessageNode",)

REJECTED = 0x25
_Arrival = tuple[bytes, int, "Terminus | None", bool]


class MessageNode:
    """Hands messages to `on_messages`, and what it publishes to every receiver.

    Attributes:
        context: What the node was made with.
    """

    serves_prefix = False

    def __init__(self, context: NodeContext) -> None:
        """Open the node's two ends.

        Args:
            context: Its address and options.
        """
        self.context = context
        self._port = Port(context.core, self)
        self._inlet = AddressEntry(
            context.core, context.address, CLOSEST_CODE, None, None, assembles=True
        )
        self._inlet.add_outlet(self._port)
        self._outlet = AddressEntry(context.core, context.address, MULTICAST_CODE)
        self._messages = 0

    # -- for the node's author

    def on_messages(self, messages: Sequence[Message]) -> Iterable[Effect]:  # noqa: ARG002  # a default
        """Work on a batch.

        Args:
            messages: In the order of their arrival.

        Returns:
            What is to be done: `publish`, `send`, `Report`.
        """
        return ()

    def publish(self, body: object) -> Publish:
        """Make the effect that sends `body`, or a whole `Message`, to every receiver."""
        return Publish(self._outlet, _encoded(body))

    def send(self, address: str, body: object) -> Send:
        """Make the effect that sends `body`, or a whole `Message`, to another address."""
        return Send(address, _encoded(body))

    # -- the contract of nodes

    def entry(self, address: str) -> AddressEntry:  # noqa: ARG002  # it has only one
        """Return where the node's messages come in."""
        return self._inlet

    def subscribe(self, subscription: Subscription) -> None:
        """Let a receiver have what the node publishes."""
        self._outlet.add_outlet(subscription.link)

    def unsubscribe(self, subscription: Subscription) -> None:
        """Let a receiver go."""
        self._outlet.remove_outlet(subscription.link)

    def tick(self, now_s: float) -> Iterable[Effect]:  # noqa: ARG002  # a default
        """Let time pass."""
        return ()

    def status(self) -> Mapping[str, object]:
        """Count messages and receivers."""
        return {"messages": self._messages, "receivers": len(self._outlet.outlets)}

    def close(self) -> None:
        """Give up both ends."""
        self._port.close()
        self._inlet.close()
        self._outlet.close()

    # -- what the data plane hands over

    def on_batch(self, port: Port) -> None:
        """Take what arrived, has it worked on, and answer."""
        arrivals, port.arrivals = port.arrivals, []
        port.outcomes.clear()
        port.woken.clear()
        self._messages += len(arrivals)
        decoded = [(arrival, _decoded(arrival)) for arrival in arrivals]
        good = [(arrival, message) for arrival, message in decoded if message is not None]
        for arrival, message in decoded:
            if message is None:
                self.context.emit(_refusal(arrival, "the message is not valid AMQP"))
        if good:
            self._work_on(good)

    def _work_on(self, batch: list[tuple[_Arrival, Message]]) -> None:
        try:
            effects = list(self.on_messages([message for _, message in batch]))
        except PLUGIN_FAULTS as error:  # the author's fault must not stop the container
            self._work_on_each(batch, error)
            return
        self.context.emit(effects)
        self.context.emit(_acceptances(arrival for arrival, _ in batch))

    def _work_on_each(self, batch: list[tuple[_Arrival, Message]], error: BaseException) -> None:
        """After a batch has failed: finds the messages that made it fail."""
        if len(batch) > 1:
            for pair in batch:
                self._work_on([pair])
            return
        self.context.emit([Report(f"{self.context.address}: a message was rejected: {error!r}")])
        self.context.emit(_refusal(batch[0][0], f"{type(error).__name__}: {error}"))


def _encoded(body: object) -> bytes:
    return body.encode() if isinstance(body, Message) else Message(body).encode()


def _decoded(arrival: _Arrival) -> Message | None:
    try:
        return Message.decode(arrival[0])
    except ProtocolError:
        return None


def _acceptances(arrivals: Iterable[_Arrival]) -> Iterable[Effect]:
    for _, token, source, settled in arrivals:
        if not settled and source is not None:
            yield Settle(source, token, ACCEPTED)


def _refusal(arrival: _Arrival, description: str) -> Iterable[Effect]:
    _, token, source, settled = arrival
    if settled or source is None:
        return
    error = AmqpError(condition=Condition.INTERNAL_ERROR, description=description)
    yield Settle(source, token, REJECTED, encode(Rejected(error=error).to_described()))
