"""Traces by OpenTelemetry: one message, whatever way it goes, is one trace."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pika
import pytest
from opentelemetry import propagate, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import cogwork
from cogwork.otel import TraceIds, Tracing

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from opentelemetry.sdk.trace import ReadableSpan

ROOT = Path(__file__).parents[2]

STREAM = '[[stream]]\naddress = "stream/traced"\n'


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with cogwork.testing.container(STREAM) as found:
        yield found


class Traced:
    """An interceptor, and the spans and metrics that it has made."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.interceptor = Tracing(self.provider, MeterProvider([self.reader]))

    @property
    def tracer(self) -> trace.Tracer:
        return self.provider.get_tracer("test")

    def spans(self, name: str) -> list[ReadableSpan]:
        return [each for each in self.exporter.get_finished_spans() if each.name == name]

    def span(self, name: str, kind: str = "") -> ReadableSpan:
        (found,) = [each for each in self.spans(name) if kind in ("", each.kind.name)]
        return found

    def metrics(self) -> dict[str, Any]:
        data = self.reader.get_metrics_data()
        assert data is not None
        (resource,) = data.resource_metrics
        (scope,) = resource.scope_metrics
        return {each.name: each.data.data_points for each in scope.metrics}


def is_child(span: ReadableSpan, parent: ReadableSpan) -> bool:
    """Whether a span has a parent, which may have been elsewhere."""
    found, wanted = span.parent, parent.context
    assert found is not None
    assert wanted is not None
    return (found.trace_id, found.span_id) == (wanted.trace_id, wanted.span_id)


@pytest.fixture
def traced() -> Traced:
    return Traced()


def on_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @wraps(test)
    def run(*arguments: Any, **fixtures: Any) -> None:
        asyncio.run(test(*arguments, **fixtures))

    return run


@on_a_loop
async def test_work_on_an_item_is_a_child_of_what_sent_it(url: str, traced: Traced) -> None:
    async with cogwork.connect(url).use(traced.interceptor) as client:
        with traced.tracer.start_as_current_span("order"):
            await client.publish("queue/traced", 1, message_id="a")
        async with client.consume("queue/traced") as items:
            (item,) = await items.take(1)
            assert str(item.properties["traceparent"]).startswith("00-")
            with traced.tracer.start_as_current_span("work"):
                await item.accept()
    sent, done = traced.span("send queue/traced"), traced.span("process queue/traced")
    assert is_child(sent, traced.span("order"))
    assert is_child(done, sent)
    assert is_child(traced.span("work"), done)
    assert sent.kind is trace.SpanKind.PRODUCER
    assert done.kind is trace.SpanKind.CONSUMER
    assert sent.attributes == {
        "messaging.system": "cogwork",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": "queue/traced",
        "messaging.message.id": "a",
    }


@on_a_loop
async def test_a_batch_is_linked_to_what_sent_its_messages(url: str, traced: Traced) -> None:
    async with cogwork.connect(url).use(traced.interceptor) as client:
        for each in range(2):
            await client.publish("queue/linked", each)
        async with client.publisher("queue/linked") as out:
            await out.send_batch([2, 3])
        async with client.consume("queue/linked") as items:
            assert len(await items.drain()) == 4
    sent = traced.spans("send queue/linked")
    done = traced.span("process queue/linked")
    assert [link.context.span_id for link in done.links] == [each.context.span_id for each in sent]
    assert len(sent) == 3
    assert done.parent is None
    assert done.attributes is not None
    assert done.attributes["messaging.batch.message_count"] == 4


@on_a_loop
async def test_calls_casts_and_what_fails(url: str, traced: Traced) -> None:
    async with cogwork.connect(url).use(traced.interceptor) as client:
        service = client.service("sums")

        @service.method
        def fail() -> None:
            raise ZeroDivisionError("by nothing")

        @service.method
        async def ask() -> int:
            result: int = await client.call("sums", "count")
            return result

        @service.method
        def count() -> int:
            return 1

        async with service:
            assert await client.call("sums", "ask") == 1
            with pytest.raises(cogwork.RemoteError):
                await client.call("sums", "fail")
            await client.cast("sums", "count")
            while len(traced.spans("sums/count")) < 4:
                await asyncio.sleep(0.01)
    asked, ran = traced.span("sums/ask", "CLIENT"), traced.span("sums/ask", "SERVER")
    assert is_child(ran, asked)
    assert is_child(traced.span("sums/count", "CLIENT"), ran)
    cast = traced.span("sums/count", "PRODUCER")
    assert is_child(traced.span("sums/count", "CONSUMER"), cast)
    failed = traced.span("sums/fail", "SERVER")
    assert failed.status.status_code is trace.StatusCode.ERROR
    assert failed.attributes == {
        "rpc.system": "cogwork",
        "rpc.service": "sums",
        "rpc.method": "fail",
        "error.type": "ZeroDivisionError",
    }


@on_a_loop
async def test_records_of_a_stream(url: str, traced: Traced) -> None:
    async with cogwork.connect(url).use(traced.interceptor) as client:
        stream = client.stream("traced")
        await stream.publish(1)
        async for _ in stream.read("first"):
            break
        await stream.close()
        await asyncio.sleep(0)
    sent = traced.span("send stream/traced")
    assert is_child(traced.span("process stream/traced"), sent)


@on_a_loop
async def test_metrics_count_and_measure(url: str, traced: Traced) -> None:
    async with cogwork.connect(url).use(traced.interceptor) as client:
        await client.publish("queue/metrics", 1)
        async with client.consume("queue/metrics") as items:
            await items.take(1)
        with pytest.raises(cogwork.Released):
            await client.publish("nobody/there", 1, timeout_s=0.1)
    found = traced.metrics()
    sent = {
        point.attributes["messaging.destination.name"]: point
        for point in found["messaging.client.sent.messages"]
    }
    assert sent["queue/metrics"].value == 1
    assert sent["nobody/there"].attributes["error.type"] == "Released"
    assert found["messaging.client.consumed.messages"][0].value == 1
    assert found["messaging.process.duration"][0].count == 1
    assert len(found["messaging.client.operation.duration"]) == 2


def _channel(url: str) -> pika.adapters.blocking_connection.BlockingChannel:
    host, _, port = url.removeprefix("amqp://").partition(":")
    connection = pika.BlockingConnection(pika.ConnectionParameters(host, int(port)))
    channel = connection.channel()
    channel.queue_declare("basic", durable=True)
    return channel


@on_a_loop
async def test_headers_of_amqp_0_9_1_carry_the_same_context(url: str, traced: Traced) -> None:
    """As OpenTelemetry's instrumentations of pika and celery do: by the API, into the headers."""
    channel = _channel(url)
    async with cogwork.connect(url).use(traced.interceptor) as client:
        with traced.tracer.start_as_current_span("pika"):
            headers: dict[str, str] = {}
            propagate.inject(headers)
            channel.basic_publish("", "basic", b"there", pika.BasicProperties(headers=headers))
        async with client.consume("queue/basic") as items:
            (item,) = await items.take(1)
            await item.accept()
        await client.publish("queue/basic", b"back")
    _, properties, _ = channel.basic_get("basic", auto_ack=True)
    channel.connection.close()
    found = trace.get_current_span(propagate.extract(properties.headers)).get_span_context()
    assert is_child(traced.span("process queue/basic"), traced.span("pika"))
    sent = traced.span("send queue/basic").context
    assert (found.trace_id, found.span_id) == (sent.trace_id, sent.span_id)


@on_a_loop
async def test_what_is_no_context_is_no_parent(url: str, traced: Traced) -> None:
    async with cogwork.connect(url) as plain:
        for each in ("", "00-nonsense", 7, "00-" + "0" * 32 + "-" + "0" * 16 + "-01", "é" * 9000):
            await plain.publish("queue/hostile", 1, properties={"traceparent": each})
    async with (
        cogwork.connect(url).use(traced.interceptor) as client,
        client.consume("queue/hostile") as items,
    ):
        for _ in range(5):
            (item,) = await items.take(1)
            await item.accept()
    assert [each.parent for each in traced.spans("process queue/hostile")] == [None] * 5


def test_without_asyncio(url: str, traced: Traced) -> None:
    with cogwork.sync.connect(url).use(traced.interceptor) as client:
        with traced.tracer.start_as_current_span("order"):
            client.publish("queue/blocking", 1)
        with client.consume("queue/blocking") as items:
            item = items.receive(5)
            assert item is not None
            with traced.tracer.start_as_current_span("work"):
                items.accept(item)
    sent, done = traced.span("send queue/blocking"), traced.span("process queue/blocking")
    assert is_child(sent, traced.span("order"))
    assert is_child(done, sent)
    assert is_child(traced.span("work"), done)


def test_records_of_a_log_carry_the_ids(traced: Traced) -> None:
    record = logging.LogRecord("x", logging.INFO, "x.py", 1, "text", None, None)
    with traced.tracer.start_as_current_span("work"):
        assert TraceIds().filter(record)
    span = traced.span("work").context
    assert record.trace_id == trace.format_trace_id(span.trace_id)  # type: ignore[attr-defined]  # is added
    assert record.span_id == trace.format_span_id(span.span_id)  # type: ignore[attr-defined]  # is added
    assert TraceIds().filter(record)
    assert record.trace_id == ""  # type: ignore[attr-defined]  # is added


def test_an_order_through_two_containers_is_one_trace(tmp_path: Path) -> None:
    spans = tmp_path / "spans.jsonl"
    command = [sys.executable, str(ROOT / "examples/tracing/order.py"), str(spans)]
    ran = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    assert "'cents': 800" in ran.stdout
    found = [json.loads(line) for line in spans.read_text().splitlines()]
    by_id = {each["context"]["span_id"]: each for each in found}
    assert len({each["context"]["trace_id"] for each in found}) == 1

    def told(each: dict[str, Any]) -> str:
        name = each["name"].partition("done.")[0]
        return f"{each['resource']['attributes']['service.name']} {each['kind'][9:]} {name}"

    parents = {told(each): told(by_id[each["parent_id"]]) for each in found if each["parent_id"]}
    assert parents == {
        "web PRODUCER send queue/orders": "web SERVER GET /orders/{item}",
        "worker CONSUMER process queue/orders": "web PRODUCER send queue/orders",
        "worker CLIENT prices/quote": "worker CONSUMER process queue/orders",
        "prices SERVER prices/quote": "worker CLIENT prices/quote",
        "worker PRODUCER send topic/": "worker CONSUMER process queue/orders",
        "web CONSUMER process topic/": "worker PRODUCER send topic/",
    }
    picture = tmp_path / "trace.svg"
    draw = [sys.executable, str(ROOT / "tools/trace_picture.py"), str(spans), str(picture)]
    subprocess.run(draw, check=True, timeout=30)
    assert picture.read_text().count("<rect") == 1 + 3 + len(found)
