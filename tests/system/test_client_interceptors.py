"""Interceptors see what a client sends, receives, calls and serves, and when each of it is over."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any

import pytest

import cogwork
from cogwork.client import Delivery, Interceptor, MethodRun, OutgoingCall, Publication

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from cogwork.client import Ending

CURRENT: ContextVar[str] = ContextVar("current", default="nothing")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with cogwork.testing.container('[[stream]]\naddress = "stream/intercepted"\n') as found:
        yield found


def on_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @wraps(test)
    def run(*arguments: Any, **fixtures: Any) -> None:
        asyncio.run(test(*arguments, **fixtures))

    return run


class Recorder(Interceptor):
    """Writes down what begins and ends, and marks what is sent."""

    def __init__(self, name: str = "") -> None:
        self.events: list[str] = []
        self.name = name

    def _note(self, what: str) -> Ending:
        self.events.append(f"{self.name}{what}")

        def ended(error: BaseException | None) -> None:
            failed = "" if error is None else f" {type(error).__name__}"
            self.events.append(f"{self.name}/{what}{failed}")

        return ended

    def publish(self, publication: Publication) -> Ending:
        for message in publication.messages:
            message.properties["mark"] = self.name or "seen"
        return self._note(f"publish {publication.address} {len(publication.messages)}")

    def deliver(self, delivery: Delivery) -> Ending:
        marks = {message.properties.get("mark") for message in delivery.messages}
        ended = self._note(f"deliver {delivery.address} {len(delivery.messages)} {marks}")
        token = CURRENT.set(delivery.address)

        def over(error: BaseException | None) -> None:
            with suppress(ValueError):  # a task that has ended cannot be asked for its context
                CURRENT.reset(token)
            ended(error)

        return over

    def call(self, call: OutgoingCall) -> Ending:
        call.properties["mark"] = "called"
        return self._note(f"{call.kind} {call.topic} {call.method}")

    def method(self, run: MethodRun) -> Ending:
        CURRENT.set(run.method)
        mark = run.request.properties.get("mark")
        return self._note(f"method {run.topic} {run.method} {mark}")


@on_a_loop
async def test_publishing_is_over_with_its_outcome(url: str) -> None:
    seen = Recorder()
    async with cogwork.connect(url).use(seen) as client:
        await client.publish("queue/outcomes", 1)
        async with client.publisher("queue/outcomes") as out:
            await out.send(2)
            post = out.post(3)
            assert seen.events[-1] == "publish queue/outcomes 1"
            await post
            await out.send_batch([4, 5])
        with pytest.raises(cogwork.Released):
            await client.publish("nobody/here", 6, timeout_s=0.2)
        async with client.publisher("queue/outcomes") as out:
            out.post(7, settled=True)
    assert seen.events == [
        *["publish queue/outcomes 1", "/publish queue/outcomes 1"] * 3,
        *["publish queue/outcomes 2", "/publish queue/outcomes 2"],
        *["publish nobody/here 1", "/publish nobody/here 1 Released"],
        *["publish queue/outcomes 1", "/publish queue/outcomes 1"],
    ]


@on_a_loop
async def test_a_failure_that_nobody_awaits_is_still_told_by_flush(url: str) -> None:
    seen = Recorder()
    async with cogwork.connect(url).use(seen) as client, client.publisher(None) as out:
        out.post(cogwork.Message(1, to="nobody/at/all"))
        with pytest.raises(cogwork.ClientError):
            await out.flush()
    assert seen.events[0] == "publish nobody/at/all 1"
    assert seen.events[1].startswith("/publish nobody/at/all 1 ")


@on_a_loop
async def test_a_delivery_is_over_when_more_is_asked_for(url: str) -> None:
    seen = Recorder()
    async with cogwork.connect(url).use(seen) as client:
        await client.publish("queue/deliveries", 1)
        await client.publish("queue/deliveries", 2)
        seen.events.clear()
        async with client.consume("queue/deliveries") as items:
            async for item in items:
                assert CURRENT.get() == "queue/deliveries"
                item.accept_nowait()
                seen.events.append(f"work {item.body}")
                if item.body == 2:
                    break
        assert CURRENT.get() == "nothing"
    one = "deliver queue/deliveries 1 {'seen'}"
    assert seen.events == [one, "work 1", f"/{one}", one, "work 2", f"/{one}"]


@on_a_loop
async def test_what_work_raises_is_told(url: str) -> None:
    seen = Recorder()
    async with cogwork.connect(url).use(seen) as client:
        await client.publish("queue/raising", 1)

        async def work() -> None:
            async with client.consume("queue/raising") as items:
                async for _ in items:
                    raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await work()
    assert seen.events[-1] == "/deliver queue/raising 1 {'seen'} ZeroDivisionError"


@on_a_loop
async def test_batches_drains_browsers_and_subscriptions(url: str) -> None:
    seen = Recorder()
    async with cogwork.connect(url).use(seen) as client:
        async with client.publisher("queue/batches") as out:
            await out.send_batch([1, 2, 3])
        async with client.browse("queue/batches") as copies:
            assert len(await copies.drain()) == 3
        async with client.consume("queue/batches") as items:
            async for batch in items.batches(3):
                await items.accept(batch)
                break
        async with client.subscribe("topic/batches") as messages:
            await client.publish("topic/batches", 4)
            assert [each.body for each in await messages.take()] == [4]
    delivered = [event for event in seen.events if event.startswith("deliver")]
    assert delivered == [
        "deliver queue/batches 3 {'seen'}",
        "deliver queue/batches 3 {'seen'}",
        "deliver topic/batches 1 {'seen'}",
    ]
    assert len([event for event in seen.events if event.startswith("/deliver")]) == 3


@on_a_loop
async def test_tasks_that_share_a_consumer_end_what_they_took(url: str) -> None:
    seen = Recorder()
    async with cogwork.connect(url).use(seen) as client:
        async with client.publisher("queue/shared") as out:
            await out.send_batch([1, 2])
        async with client.consume("queue/shared") as items:
            both = asyncio.Barrier(2)

            async def take() -> None:
                (item,) = await items.take(1)
                await both.wait()
                assert not [event for event in seen.events if event.startswith("/deliver")]
                item.accept_nowait()

            await asyncio.gather(take(), take())
    assert len([event for event in seen.events if event.startswith("/deliver")]) == 2


@on_a_loop
async def test_streams(url: str) -> None:
    seen = Recorder()
    async with cogwork.connect(url).use(seen) as client:
        stream = client.stream("intercepted")
        await stream.append([1, 2])
        await stream.publish(3)
        async for record in stream.read("first"):
            assert record.properties["mark"] == "seen"
            if record.body == 3:
                break
        async for batch in stream.read_batches("first"):
            assert batch[0].properties["mark"] == "seen"
            break
        await stream.close()
    assert seen.events[:4] == [
        *["publish stream/intercepted 2", "/publish stream/intercepted 2"],
        *["publish stream/intercepted 1", "/publish stream/intercepted 1"],
    ]
    begun = [event for event in seen.events if event.startswith("deliver")]
    over = [event for event in seen.events if event.startswith("/deliver")]
    assert len(begun) == len(over) >= 4


@on_a_loop
async def test_calls_and_methods(url: str) -> None:
    seen = Recorder()
    async with cogwork.connect(url).use(seen) as client:
        service = client.service("sums")

        @service.method
        def add(a: int, b: int) -> int:
            assert CURRENT.get() == "add"
            return a + b

        @service.method
        async def fail() -> None:
            assert CURRENT.get() == "fail"
            raise ZeroDivisionError

        @service.method
        async def count(n: int) -> object:
            for each in range(n):
                yield each

        async with service:
            assert await client.call("sums", "add", a=1, b=2) == 3
            with pytest.raises(cogwork.RemoteError):
                await client.call("sums", "fail", idempotency_key="once")
            assert [part async for part in client.call_stream("sums", "count", n=2)] == [0, 1]
            await client.cast("sums", "add", a=1, b=2)
            await client.fanout("sums", "add", a=1, b=2)
            while seen.events.count("/method sums add called") < 3:
                await asyncio.sleep(0.01)
    assert seen.events[:4] == [
        *["call sums add", "method sums add called"],
        *["/method sums add called", "/call sums add"],
    ]
    assert seen.events[4:8] == [
        *["call sums fail", "method sums fail called"],
        *["/method sums fail called ZeroDivisionError", "/call sums fail RemoteError"],
    ]
    assert seen.events[8:10] == ["stream sums count", "method sums count called"]
    assert {"/method sums count called", "/stream sums count"} <= set(seen.events)
    assert {"cast sums add", "/cast sums add", "fanout sums add", "/fanout sums add"} <= set(
        seen.events
    )


@on_a_loop
async def test_requests_and_their_handlers(url: str) -> None:
    seen = Recorder()
    async with (
        cogwork.connect(url).use(seen) as client,
        client.serve("service/double", lambda request: request.body * 2),  # type: ignore[operator]  # a body is any object
    ):
        assert (await client.request("service/double", 21)).body == 42
    assert seen.events == [
        "publish service/double 1",
        "deliver service/double 1 {'seen'}",
        "/deliver service/double 1 {'seen'}",
        "/publish service/double 1",
    ]


@on_a_loop
async def test_the_first_begins_first_and_ends_last(url: str) -> None:
    first, second = Recorder("a:"), Recorder("b:")
    second.events = first.events
    async with cogwork.connect(url).use(first, second) as client:
        await client.publish("queue/order", 1)
    what = "publish queue/order 1"
    assert first.events == [f"a:{what}", f"b:{what}", f"b:/{what}", f"a:/{what}"]


@on_a_loop
async def test_what_a_hook_raises_keeps_the_message_back(url: str) -> None:
    class Refusing(Interceptor):
        def publish(self, publication: Publication) -> None:
            raise PermissionError(publication.address)

    seen = Recorder()
    async with cogwork.connect(url).use(seen, Refusing()) as client:
        with pytest.raises(PermissionError, match="queue/refused"):
            await client.publish("queue/refused", 1)
        async with client.consume("queue/refused") as items:
            assert await items.drain() == []
    assert seen.events[1] == "/publish queue/refused 1 PermissionError"


@on_a_loop
async def test_a_hook_for_deliveries_that_raises_loses_nothing(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Interceptor):
        def deliver(self, delivery: Delivery) -> None:
            raise ZeroDivisionError

    async with cogwork.connect(url).use(Broken()) as client:
        await client.publish("queue/kept", 1)
        async with client.consume("queue/kept") as items:
            (item,) = await items.take(1)
            await item.accept()
    assert "an interceptor failed" in caplog.text


@on_a_loop
async def test_only_interceptors_are_taken(url: str) -> None:
    with pytest.raises(TypeError, match="an Interceptor is expected, not 7"):
        cogwork.connect(url).use(7)  # type: ignore[arg-type]  # what is tested


def test_without_asyncio_hooks_run_in_the_callers_context(url: str) -> None:
    seen = Recorder()
    with cogwork.sync.connect(url).use(seen) as client:
        client.publish("queue/blocking", 1)
        client.publish("queue/blocking", 2)
        with client.consume("queue/blocking") as items:
            for item in items:
                assert CURRENT.get() == "queue/blocking"
                items.accept(item)
                if item.body == 2:
                    break
            assert items.receive(0.01) is None
            assert CURRENT.get() == "nothing"
        threads: list[str] = []
        service = client.service("threads")

        @service.method
        def where() -> str:
            threads.append(threading.current_thread().name)
            return CURRENT.get()

        with service:
            assert client.call("threads", "where") == "where"
        assert client.call is not None
    assert threads[0].startswith("threads")
    one = "deliver queue/blocking 1 {'seen'}"
    assert [event for event in seen.events if "deliver" in event] == [one, f"/{one}"] * 2
