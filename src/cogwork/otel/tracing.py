"""The interceptor that makes spans and metrics of what a client does.

Spans follow OpenTelemetry's semantic conventions for messaging and RPC, version 1.37. A message
carries the context of the span that sends it; whoever is handed the message works in a span whose
parent that is, on whatever container and by whatever protocol it came. A batch is one span, with a
link to what sent each of its messages.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from opentelemetry import context as contexts
from opentelemetry import metrics, trace
from opentelemetry.trace import Link, SpanKind, Status, StatusCode

from cogwork.client.interception.deliveries import whoever_runs
from cogwork.client.interception.interceptor import Interceptor
from cogwork.otel.instruments import Instruments
from cogwork.otel.propagation import extracted, injected

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextvars import Token

    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, SpanContext, TracerProvider

    from cogwork.client.interception.interceptor import (
        Delivery,
        Ending,
        MethodRun,
        OutgoingCall,
        Publication,
    )
    from cogwork.dataplane.message.messages import Message

__all__ = ("Tracing",)

SYSTEM = "cogwork"
SCOPE = "cogwork"

LINKS_MAX = 128
"""Links of a span: as many as an SDK keeps."""


class Tracing(Interceptor):
    """Makes spans and metrics; `client.use(Tracing())`."""

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        """Take the providers that make spans and metrics.

        Args:
            tracer_provider: Makes spans; None for the one that the application has set.
            meter_provider: Makes metrics; None for the one that the application has set.
        """
        self._tracer = trace.get_tracer(SCOPE, tracer_provider=tracer_provider)
        self._instruments = Instruments(metrics.get_meter(SCOPE, meter_provider=meter_provider))

    # -- messages

    def publish(self, publication: Publication) -> Ending:
        """Make a span for what is sent, and have the messages carry its context."""
        address, messages = publication.address, publication.messages
        attributes = _of_messages("send", address, messages)
        span = self._tracer.start_span(
            f"send {address}".rstrip(), kind=SpanKind.PRODUCER, attributes=attributes
        )
        fields = injected(trace.set_span_in_context(span))
        for message in messages:
            message.properties.update(fields)
        record = partial(self._instruments.sent, len(messages))
        return _Running(span, record, _known("send", address)).end

    def deliver(self, delivery: Delivery) -> Ending:
        """Make a span for the work on what is handed over; it is the current one meanwhile."""
        address, messages = delivery.address, delivery.messages
        known = _known("process", address)
        self._instruments.consumed(len(messages), known)
        parent: Context | None = None
        links: list[Link] = []
        if len(messages) == 1:
            parent = _within(extracted(messages[0]))
        else:
            links = [Link(each) for each in _origins(messages)]
        span = self._tracer.start_span(
            f"process {address}",
            parent,
            kind=SpanKind.CONSUMER,
            attributes=_of_messages("process", address, messages),
            links=links,
        )
        return _Running(span, self._instruments.processed, known).entered(parent).end

    # -- methods

    def call(self, call: OutgoingCall) -> Ending:
        """Make a span for a call, and have its request carry the context."""
        has_reply = call.kind in {"call", "stream"}
        known = _of_rpc(call.topic, call.method)
        span = self._tracer.start_span(
            f"{call.topic}/{call.method}",
            kind=SpanKind.CLIENT if has_reply else SpanKind.PRODUCER,
            attributes=known,
        )
        if call.server is not None:
            span.set_attribute("cogwork.rpc.server", call.server)
        call.properties.update(injected(trace.set_span_in_context(span)))
        return _Running(span, self._instruments.called, known).end

    def method(self, run: MethodRun) -> Ending:
        """Make a span for a method that runs; it is the current one meanwhile."""
        has_reply = run.request.reply_to is not None
        known = _of_rpc(run.topic, run.method)
        parent = _within(extracted(run.request))
        span = self._tracer.start_span(
            f"{run.topic}/{run.method}",
            parent,
            kind=SpanKind.SERVER if has_reply else SpanKind.CONSUMER,
            attributes=known,
        )
        return _Running(span, self._instruments.served, known).entered(parent).end


class _Running:
    """A span, until what it is made for is over."""

    __slots__ = ("_began_s", "_known", "_owner", "_record", "_span", "_token")

    def __init__(
        self,
        span: Span,
        record: Callable[[float, Mapping[str, str | int]], None],
        known: dict[str, str | int],
    ) -> None:
        """Begin now.

        Args:
            span: Has begun.
            record: Takes how long it took, and the attributes of the metric.
            known: Attributes of the metric.
        """
        self._span = span
        self._record = record
        self._known = known
        self._began_s = time.monotonic()
        self._token: Token[Context] | None = None
        self._owner: object = None

    def entered(self, parent: Context | None) -> _Running:
        """Make the span the current one."""
        self._owner = whoever_runs()
        self._token = contexts.attach(trace.set_span_in_context(self._span, parent))
        return self

    def end(self, error: BaseException | None) -> None:
        """End the span, and record what it came to."""
        # Another task that ends it has a context of its own, which is not to be changed.
        if self._token is not None and self._owner is whoever_runs():
            contexts.detach(self._token)
        if error is not None:
            kind = type(error).__qualname__
            self._known = {**self._known, "error.type": kind}
            self._span.set_attribute("error.type", kind)
            self._span.record_exception(error)
            self._span.set_status(Status(StatusCode.ERROR, str(error)))
        self._record(time.monotonic() - self._began_s, self._known)
        self._span.end()


def _within(carried: Context) -> Context | None:
    """Return the context to work in: the message's, or the current one where that has none."""
    if trace.get_current_span(carried).get_span_context().is_valid:
        return carried
    return None


def _origins(messages: Sequence[Message]) -> list[SpanContext]:
    """List the spans that have sent messages, each once, as many as a span takes links."""
    found: dict[tuple[int, int], SpanContext] = {}
    for message in messages:
        origin = trace.get_current_span(extracted(message)).get_span_context()
        if origin.is_valid:
            found.setdefault((origin.trace_id, origin.span_id), origin)
            if len(found) == LINKS_MAX:
                break
    return list(found.values())


def _known(operation: str, address: str) -> dict[str, str | int]:
    """Return what is said of every operation on messages."""
    return {
        "messaging.system": SYSTEM,
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
        "messaging.destination.name": address,
    }


def _of_messages(operation: str, address: str, messages: Sequence[Message]) -> dict[str, str | int]:
    """Return the attributes of a span about messages."""
    attributes = _known(operation, address)
    if len(messages) != 1:
        attributes["messaging.batch.message_count"] = len(messages)
        return attributes
    (message,) = messages
    if message.message_id is not None:
        attributes["messaging.message.id"] = str(message.message_id)
    if message.correlation_id is not None:
        attributes["messaging.message.conversation_id"] = str(message.correlation_id)
    return attributes


def _of_rpc(topic: str, method: str) -> dict[str, str | int]:
    """Return the attributes of a span about a method."""
    return {"rpc.system": SYSTEM, "rpc.service": topic, "rpc.method": method}
