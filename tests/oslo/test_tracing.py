"""The driver's calls and methods are spans of one trace, where that is asked for."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import oslo_messaging
import pytest
from helpers import client, rpc
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import cogwork
from cogwork.otel.tracing import Tracing

if TYPE_CHECKING:
    from typing import Any

    from opentelemetry.sdk.trace import ReadableSpan


class Endpoint:
    """Its methods know their span."""

    def __init__(self) -> None:
        self.spans: list[int] = []
        self.cast = threading.Event()

    def double(self, _: object, number: int) -> int:
        self.spans.append(trace.get_current_span().get_span_context().span_id)
        return 2 * number

    def note(self, _: object) -> None:
        self.cast.set()

    def fail(self, _: object) -> None:
        raise ZeroDivisionError


def parent_of(span: ReadableSpan) -> int:
    assert span.parent is not None
    return span.parent.span_id


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """What the driver's spans go to; an application sets a global provider once, tests do not."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr("cogwork.otel.tracing.Tracing", lambda: Tracing(tracer_provider=provider))
    return exporter


def test_calls_and_casts_are_traced(spans: InMemorySpanExporter) -> None:
    endpoint = Endpoint()
    with cogwork.testing.container() as url, rpc(url, tracing=True) as transport:
        target = oslo_messaging.Target(topic="sums", server="one")
        server = oslo_messaging.get_rpc_server(transport, target, [endpoint])
        server.start()
        asker: Any = client(transport, "sums")
        assert asker.call({}, "double", number=21) == 42
        with pytest.raises(ZeroDivisionError):
            asker.call({}, "fail")
        asker.cast({}, "note")
        assert endpoint.cast.wait(10)
        server.stop()
        server.wait()
    found = {(each.name, each.kind.name): each for each in spans.get_finished_spans()}
    asked, ran = found["sums/double", "CLIENT"], found["sums/double", "SERVER"]
    assert parent_of(ran) == asked.context.span_id
    assert endpoint.spans == [ran.context.span_id]
    assert found["sums/fail", "SERVER"].status.status_code.name == "ERROR"
    cast = found["sums/note", "PRODUCER"]
    assert parent_of(found["sums/note", "CONSUMER"]) == cast.context.span_id


def test_without_it_nothing_is_traced(spans: InMemorySpanExporter) -> None:
    endpoint = Endpoint()
    with cogwork.testing.container() as url, rpc(url) as transport:
        target = oslo_messaging.Target(topic="sums", server="one")
        server = oslo_messaging.get_rpc_server(transport, target, [endpoint])
        server.start()
        asker: Any = client(transport, "sums")
        assert asker.call({}, "double", number=21) == 42
        server.stop()
        server.wait()
    assert spans.get_finished_spans() == ()
