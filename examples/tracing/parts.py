"""Three programs that work on an order: a web application, a worker, and a service of prices.

Each has a client of its own, and makes its spans with a provider of its own, as in a process of its
own. The worker is at another container than the two others.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

from opentelemetry import trace
from opentelemetry.propagate import extract
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

import cogwork
from cogwork.otel import Tracing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from typing import TextIO

    from opentelemetry.sdk.trace import ReadableSpan
    from starlette.requests import Request

__all__ = ("prices", "web", "worker")

ANSWER_S = 10.0


def provider(service: str, spans: TextIO) -> TracerProvider:
    """Make what makes the spans of a program, each a line of JSON in a file."""
    made = TracerProvider(resource=Resource.create({"service.name": service}))
    exporter = ConsoleSpanExporter(service, spans, formatter=_line)
    made.add_span_processor(SimpleSpanProcessor(exporter))
    return made


def _line(span: ReadableSpan) -> str:
    return f"{span.to_json(indent=None)}\n"


def web(url: str, spans: TextIO) -> Starlette:
    """Make an application that takes an order, and answers once it is done."""
    traces = provider("web", spans)
    tracer = traces.get_tracer("web")

    async def order(request: Request) -> JSONResponse:
        answer = f"topic/done.{uuid4()}"
        with tracer.start_as_current_span(
            "GET /orders/{item}", extract(request.headers), kind=trace.SpanKind.SERVER
        ):
            client: cogwork.Client = request.app.state.client
            async with client.subscribe(answer) as done:
                body = {"item": request.path_params["item"], "count": 3}
                await client.publish("queue/orders", body, reply_to=answer)
                async with asyncio.timeout(ANSWER_S):
                    (message,) = await done.take(1)
            return JSONResponse(message.body)

    @asynccontextmanager
    async def connected(app: Starlette) -> AsyncIterator[None]:
        async with cogwork.connect(url).use(Tracing(traces)) as client:
            app.state.client = client
            yield

    return Starlette(routes=[Route("/orders/{item}", order)], lifespan=connected)


async def worker(url: str, spans: TextIO, ready: asyncio.Event) -> None:
    """Take orders, ask what they cost, and answer."""
    async with (
        cogwork.connect(url).use(Tracing(provider("worker", spans))) as client,
        client.consume("queue/orders") as orders,
    ):
        ready.set()
        async for order in orders:
            price = await client.call("prices", "quote", item=order.body["item"])
            await client.publish(order.reply_to, {**order.body, "cents": price})
            await order.accept()


async def prices(url: str, spans: TextIO, ready: asyncio.Event) -> None:
    """Serve the prices of items."""
    async with cogwork.connect(url).use(Tracing(provider("prices", spans))) as client:
        service = client.service("prices")

        @service.method
        async def quote(item: str) -> int:
            await asyncio.sleep(0.002)  # a look into a table
            return 100 * len(item)

        async with service:
            ready.set()
            await service.wait()
