"""What an interceptor is: hooks around what a client does, and what each of them is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.dataplane.message.messages import Message

__all__ = ("Delivery", "Ending", "Interceptor", "MethodRun", "OutgoingCall", "Publication")

Ending = Callable[[BaseException | None], object]
"""Called once, when what a hook was called for is over: with what went wrong, or None."""


@dataclass(frozen=True, slots=True)
class Publication:
    """Messages that are about to be sent.

    Attributes:
        address: Where to; empty where each message names its own in `to`.
        messages: One, or a batch; what is set in them is sent.
        settled: Whether no outcome is asked for.
    """

    address: str
    messages: Sequence[Message]
    settled: bool = False


@dataclass(frozen=True, slots=True)
class Delivery:
    """Messages that are handed to the application.

    Attributes:
        address: Where they came from: what the receiver was opened for.
        messages: One, or a batch; in a batch of a stream they are made when they are looked at.
    """

    address: str
    messages: Sequence[Message]


@dataclass(frozen=True, slots=True)
class OutgoingCall:
    """A method that is about to be called.

    Attributes:
        kind: `call`, or `stream` where the reply comes in parts; `cast` and `fanout` wait for none.
        topic: What is asked.
        method: What is to be run.
        server: The one server that is meant; None for any.
        properties: Application-properties of the request; what is set here is sent.
    """

    kind: Literal["call", "stream", "cast", "fanout"]
    topic: str
    method: str
    server: str | None
    properties: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MethodRun:
    """A method of a service that is about to run.

    Attributes:
        topic: Of the service.
        server: The name of the service among those of its topic.
        method: What is run.
        request: What asks for it.
    """

    topic: str
    server: str
    method: str
    request: Message


class Interceptor:
    """Hooks around what a client does; `Client.use` takes it. Override those that you need.

    A hook is called before the thing happens, in the context (`contextvars`) of whoever asks for
    it. What it returns is called when it is over. What `publish`, `call` and `method` raise is
    raised to the application, and the thing does not happen; what `deliver` and endings raise is
    logged. The ending of a delivery runs in the context of its taker, unless that has ended.
    """

    def publish(self, publication: Publication) -> Ending | None:
        """Messages are about to be sent; it is over when their outcomes are known."""
        del publication
        return None

    def deliver(self, delivery: Delivery) -> Ending | None:
        """Messages are handed over; it is over when their taker asks for more, or leaves."""
        del delivery
        return None

    def call(self, call: OutgoingCall) -> Ending | None:
        """A method is about to be called; it is over when the caller has the reply, or an error."""
        del call
        return None

    def method(self, run: MethodRun) -> Ending | None:
        """A method of a service is about to run; it is over when it has returned or raised."""
        del run
        return None
