"""Calls where something is wrong: each tells what, as soon as it is known."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest
from call_ends import caller_of

import cogwork
from cogwork.testing import container

from .proxy import FaultyProxy
from .stories import eventually, story

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

HOSTILE = (
    ("application/json", b"[" * 100_000),
    ("application/json", b'{"n": "\xff"}'),
    ("application/json", b'["no map"]'),
    ("application/msgpack", b"\x91" * 100_000),
    ("application/msgpack", b"\xdf\xff\xff\xff\xff"),
    ("application/x-protobuf", b"\xff" * 100),
    ("application/x-python-pickle", b"cos\nsystem\n(S'true'\ntR."),
    (None, b"bytes"),
    (None, [1, 2]),
)


class Stop(BaseException):
    """Is no `Exception`, as what libraries end their own threads with."""


@story
async def test_nobody_there_is_told_at_the_deadline(url: str) -> None:
    async with cogwork.connect(url) as client:
        began_s = time.monotonic()
        for server in (None, "host-9"):
            with pytest.raises(cogwork.Unreachable, match=r"rpc/nowhere.* within 0\.2 s"):
                await client.call("nowhere", "x", server=server, timeout_s=0.2)
        with pytest.raises(cogwork.Unreachable, match="nowhere"):
            await client.cast("nowhere", "x", timeout_s=0.2)
        with pytest.raises(cogwork.Unreachable, match="nowhere"):
            await client.cast("nowhere", "x", settled=False, timeout_s=0.2)
        with pytest.raises(cogwork.Unreachable, match="nowhere"):
            await anext(client.call_stream("nowhere", "x", timeout_s=0.2))
        assert time.monotonic() - began_s < 5
        assert not caller_of(client).routed.replies.calls  # type: ignore[union-attr]  # it called


@story
async def test_a_call_waits_for_a_server_that_comes_before_the_deadline(url: str) -> None:
    ran: list[str] = []
    async with cogwork.connect(url) as client, cogwork.connect(url) as server:
        with pytest.raises(cogwork.Unreachable):
            await client.call("later", "note", timeout_s=0.1, text="withdrawn")
        waiting = asyncio.create_task(client.call("later", "note", timeout_s=20, text="kept"))
        left = asyncio.create_task(client.call("later", "note", timeout_s=20, text="left"))
        await asyncio.sleep(0.05)
        left.cancel()
        service = server.service("later")

        @service.method
        def note(text: str) -> None:
            ran.append(text)

        async with service:
            assert await waiting is None
        assert ran == ["kept"]


@story
async def test_what_a_method_raises_comes_with_type_text_and_traceback(url: str) -> None:
    async with cogwork.connect(url) as client:
        service = client.service("raising")

        @service.method
        async def look(key: str) -> object:
            empty: dict[str, object] = {}
            return empty[key]

        @service.method
        async def begin(n: int) -> AsyncIterator[int]:
            yield n
            raise OSError("in the middle")

        @service.method
        def odd() -> object:
            return {"a": [object()]}

        async with service:
            with pytest.raises(cogwork.RemoteError) as raised:
                await client.call("raising", "look", key="k")
            assert (raised.value.type, raised.value.message) == ("builtins.KeyError", "'k'")
            assert "return empty[key]" in raised.value.traceback_text
            parts = client.call_stream("raising", "begin", n=1)
            assert await anext(parts) == 1
            with pytest.raises(cogwork.RemoteError, match="OSError: in the middle"):
                await anext(parts)
            with pytest.raises(cogwork.RemoteError, match=r"Unserialisable: a\[0\]"):
                await client.call("raising", "odd")


@story
async def test_what_would_end_the_process_fails_the_call_and_the_service_goes_on(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "cogwork.client.rpc")
    async with cogwork.connect(url) as client:
        service = client.service("leaving", concurrency=1)

        @service.method
        def plain() -> None:
            raise SystemExit("plain")

        @service.method
        async def task() -> None:
            raise SystemExit("task")

        @service.method
        async def parts() -> AsyncIterator[int]:
            yield 1
            raise SystemExit("parts")

        @service.method
        def cancelled() -> None:
            raise asyncio.CancelledError("cancelled")

        @service.method
        async def stopped() -> None:
            raise Stop("stopped")

        async with service:
            for name in ("plain", "task", "cancelled", "stopped"):
                with pytest.raises(cogwork.RemoteError, match=f"(Exit|Error|Stop): {name}"):
                    await client.call("leaving", name, timeout_s=10)
            taking = client.call_stream("leaving", "parts", timeout_s=10)
            assert await anext(taking) == 1
            with pytest.raises(cogwork.RemoteError, match="SystemExit: parts"):
                await anext(taking)
            assert service.running == 0
    failed = [each.getMessage() for each in caplog.records if "a method failed" in each.message]
    assert len(failed) == 5


@story
async def test_wrong_requests_are_refused_each_for_its_reason(url: str) -> None:
    async with cogwork.connect(url) as client:
        service = client.service("strict")

        @service.method
        def add(a: int, b: int = 0) -> int:
            return a + b

        @service.method
        async def count() -> AsyncIterator[int]:
            yield 1

        async with service:
            with pytest.raises(cogwork.NoSuchMethod, match="no method 'sub': it has add, count"):
                await client.call("strict", "sub", a=1)
            with pytest.raises(cogwork.BadArguments, match="add: a: Expected `int`, got `str`"):
                await client.call("strict", "add", a="1")
            with pytest.raises(cogwork.BadArguments, match="lacks a"):
                await client.call("strict", "add")
            with pytest.raises(cogwork.BadArguments, match="call_stream"):
                await client.call("strict", "count")
            with pytest.raises(cogwork.BadReply, match="Expected `str`, got `int`"):
                await client.call("strict", "add", a=1, result=str)
            with pytest.raises(ValueError, match="timeout"):
                await client.call("strict", "add", timeout_s=0, a=1)
            with pytest.raises(ValueError, match="topic"):
                await client.call("strict/add", "add", a=1)


@story
async def test_an_option_without_its_unit_is_no_argument(url: str) -> None:
    wrong = r"^{0}=1: the option of the call is {0}_s, .* arguments={{'{0}': \.\.\.}}$"
    async with cogwork.connect(url) as client:
        with pytest.raises(TypeError, match=wrong.format("timeout")):
            await client.call("nowhere", "x", timeout=1)
        with pytest.raises(TypeError, match=wrong.format("heartbeat")):
            await client.call("nowhere", "x", heartbeat=1)
        with pytest.raises(TypeError, match=wrong.format("timeout")):
            client.call_stream("nowhere", "x", timeout=1)
        for option in ("timeout", "ttl"):
            meant: dict[str, Any] = {option: 1}
            with pytest.raises(TypeError, match=wrong.format(option)):
                await client.cast("nowhere", "x", **meant)
            with pytest.raises(TypeError, match=wrong.format(option)):
                await client.fanout("nowhere", "x", **meant)
        service = client.service("sleepers", server="one")

        @service.method
        def sleep(timeout: float, ttl: float) -> float:
            return timeout + ttl

        async with service:
            given = {"timeout": 2}
            assert await client.call("sleepers", "sleep", timeout_s=5, ttl=1, arguments=given) == 3
        begin_s = asyncio.get_running_loop().time()
        with pytest.raises(cogwork.Unreachable):
            await client.call("nowhere", "x", timeout_s=0.2)
        assert asyncio.get_running_loop().time() - begin_s < 5


@story
async def test_unserialisable_arguments_are_refused_before_anything_is_sent(url: str) -> None:
    seen: list[object] = []
    async with cogwork.connect(url) as client:
        service = client.service("never")
        service.method(lambda **given: seen.append(given), name="take")
        async with service:
            for codec in ("amqp", "json", "msgpack", "protobuf"):
                bad = {"vm": {"disks": [1, {"owner": object()}]}}
                calls = (client.call, client.cast, client.fanout)
                for call in calls:
                    with pytest.raises(cogwork.Unserialisable, match=r"vm\.disks\[1\]\.owner"):
                        await call("never", "take", codec=codec, arguments=bad)
            with pytest.raises(cogwork.Unserialisable, match=r"n: .*out of range"):
                await client.call("never", "take", n=2**70)
            assert await client.call("never", "take") is None
        assert seen == [{}]


@story
async def test_a_deadline_ends_the_work_and_so_does_leaving(url: str) -> None:
    ended: list[str] = []
    async with cogwork.connect(url) as client, cogwork.connect(url) as caller:
        service = client.service("slow", server="one")

        @service.method
        async def sleep(name: str) -> None:
            try:
                await asyncio.sleep(30)
            finally:
                ended.append(name)

        async with service:
            with pytest.raises(cogwork.CallTimeout, match=r"no reply within 0\.2 s"):
                await caller.call("slow", "sleep", timeout_s=0.2, name="late")
            await eventually(lambda: ended == ["late"], "the deadline ends it")
            for server in (None, "one"):
                task = asyncio.create_task(caller.call("slow", "sleep", server=server, name="left"))
                await eventually(lambda: service.running == 1, "it is under work")
                task.cancel()
                await eventually(lambda: service.running == 0, "leaving ends it")
            assert ended == ["late", "left", "left"]


@story
async def test_a_service_whose_stop_is_left_leaves_nothing_running(url: str) -> None:
    ended = asyncio.Event()
    async with cogwork.connect(url) as client:
        service = client.service("hasty", concurrency=1, grace_s=20)

        @service.method
        async def sleep() -> None:
            try:
                await asyncio.sleep(20)
            finally:
                ended.set()

        await service.__aenter__()
        calls = [
            asyncio.create_task(client.call("hasty", "sleep", server=service.server, timeout_s=5))
            for _ in range(2)
        ]
        await eventually(lambda: (service.running, service.waiting) == (1, 1), "both are there")
        stop = asyncio.create_task(service.stop())
        await asyncio.sleep(0.1)
        stop.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stop
        async with asyncio.timeout(30):
            await ended.wait()
            with pytest.raises(cogwork.CallCancelled):
                await calls[0]
            with pytest.raises((cogwork.Released, cogwork.CallTimeout)):
                await calls[1]
        assert service.running == service.waiting == 0


@story
async def test_a_service_that_is_stopped_tells_its_callers(url: str) -> None:
    async with cogwork.connect(url) as client, cogwork.connect(url) as caller:
        service = client.service("stopping", concurrency=1, grace_s=0.1)

        @service.method
        async def sleep() -> None:
            await asyncio.sleep(30)

        async with service:
            call = asyncio.create_task(caller.call("stopping", "sleep"))
            await eventually(lambda: service.running == 1, "it is there")
        with pytest.raises(cogwork.CallCancelled, match="had begun"):
            await call


@story
async def test_a_server_that_dies_is_missed_by_its_heartbeats(url: str) -> None:
    client = cogwork.connect(url)
    async with cogwork.connect(url) as caller:
        await client.__aenter__()
        service = client.service("dying", grace_s=0)

        @service.method
        async def sleep() -> None:
            await asyncio.sleep(30)

        @service.method
        async def count() -> AsyncIterator[int]:
            yield 0
            await asyncio.sleep(30)

        await service.__aenter__()
        parts = caller.call_stream("dying", "count", timeout_s=0.6)
        assert await anext(parts) == 0
        call = asyncio.create_task(
            caller.call("dying", "sleep", timeout_s=30, heartbeat_s=0.5, settled=True)
        )
        await eventually(lambda: service.running == 2, "both are under work")
        began_s = time.monotonic()
        assert client._handler is not None
        client._connector.reconnect = _never  # type: ignore[method-assign,assignment]  # it is dead
        client._handler.connection.lose()
        with pytest.raises(cogwork.ServerLost, match="heartbeat"):
            await call
        with pytest.raises(cogwork.InDoubt, match="the server was lost"):
            await anext(parts)
        assert time.monotonic() - began_s < 5
        await client.close()
        await service.stop()


async def _never() -> None:
    await asyncio.sleep(3600)


@story
async def test_a_lost_connection_is_in_doubt_and_mends(url: str) -> None:
    runs = 0
    async with cogwork.connect(url) as client, cogwork.connect(url) as caller:
        service = client.service("mending", server="one")
        gate = asyncio.Event()

        @service.method
        async def work() -> str:
            nonlocal runs
            runs += 1
            await gate.wait()
            return "done"

        async with service:
            call = asyncio.create_task(caller.call("mending", "work"))
            keyed = asyncio.create_task(
                caller.call("mending", "work", server="one", idempotency_key="k")
            )
            await eventually(lambda: runs == 2, "both are under work")
            waiting = asyncio.create_task(caller.call("nobody-yet", "work", timeout_s=20))
            await asyncio.sleep(0.05)
            assert caller._handler is not None
            caller._handler.connection.lose()
            with pytest.raises(cogwork.InDoubt, match="may have been handled"):
                await call
            gate.set()
            assert await keyed == "done"
            assert runs == 2
            assert await caller.call("mending", "work") == "done"
            late = client.service("nobody-yet")
            late.method(lambda: "here", name="work")
            async with late:
                assert await waiting == "here"


@story
async def test_closing_the_mesh_ends_calls_wherever_they_are(url: str) -> None:
    async with FaultyProxy(url) as proxy, cogwork.connect(url) as server:
        client = cogwork.connect(proxy.url)
        await client.__aenter__()
        service = server.service("closing", grace_s=0)

        @service.method
        async def sleep() -> None:
            await asyncio.sleep(30)

        async with service:
            calls = [asyncio.create_task(client.call("closing", "sleep"))]
            await eventually(lambda: service.running == 1, "one is under work")
            calls.append(asyncio.create_task(client.call("nobody", "x")))
            await eventually(
                lambda: len(caller_of(client).routed.targets) == 2, "one waits for credit"
            )
            proxy.hold_replies()
            calls.append(asyncio.create_task(client.call("other", "x")))
            await asyncio.sleep(0.02)
            closing = asyncio.create_task(client.close())
            for call in calls:
                with pytest.raises((cogwork.Disconnected, cogwork.InDoubt)):
                    await call
            proxy.cut()
            await closing
            with pytest.raises(cogwork.Disconnected):
                await client.call("closing", "sleep")


@story
async def test_a_reply_to_a_caller_that_is_gone_does_no_harm(url: str) -> None:
    async with cogwork.connect(url) as client:
        service = client.service("gone")
        gate = asyncio.Event()

        @service.method
        async def wait() -> str:
            await gate.wait()
            return "x" * 100

        async with service:
            async with cogwork.connect(url) as caller:
                call = asyncio.create_task(caller.call("gone", "wait"))
                await eventually(lambda: service.running == 1, "it is under work")
            with pytest.raises((cogwork.Disconnected, cogwork.InDoubt)):
                await call
            gate.set()
            await eventually(lambda: service.running == 0, "it has replied to nobody")
            assert await client.call("gone", "wait") == "x" * 100


def test_a_reply_that_is_too_large_is_told_so() -> None:
    with container("[limits]\nmax_message_size_bytes = 20000\n") as url:
        asyncio.run(_too_large(url))


async def _too_large(url: str) -> None:
    async with cogwork.connect(url) as client:
        service = client.service("large")
        service.method(lambda size: b"x" * size, name="make")
        service.method(lambda **given: None, name="take")
        async with service:
            assert len(await client.call("large", "make", size=10_000)) == 10_000
            with pytest.raises(cogwork.ReplyTooLarge, match="20000"):
                await client.call("large", "make", size=30_000)
            with pytest.raises(cogwork.MessageTooLarge, match="20000"):
                await client.call("large", "take", data=b"x" * 30_000)


@story
async def test_hostile_bodies_are_refused_and_the_service_goes_on(url: str) -> None:
    async with cogwork.connect(url) as client:
        service = client.service("attacked")
        service.method(lambda n: n, name="echo")
        async with service:
            for content_type, body in HOSTILE:
                with pytest.raises(cogwork.CallFailed, match=r"echo.*(read|map|lacks|codec)"):
                    await client.request(
                        "unicast/rpc/attacked", body, subject="echo", content_type=content_type
                    )
            for subject in ("$cancel", "$more", "$other", ""):
                await client.publish(
                    "unicast/rpc/attacked", [1], subject=subject, reply_to="nowhere"
                )
            assert await client.call("attacked", "echo", n=1) == 1


@story
async def test_hostile_replies_are_refused_and_the_client_goes_on(url: str) -> None:
    async with cogwork.connect(url) as client:
        answers = iter(HOSTILE[:7])

        def answer(_: cogwork.Message) -> cogwork.Message:
            content_type, body = next(answers)
            return cogwork.Message(body, content_type=content_type)

        async with client.serve("unicast/rpc/liar", answer):
            for _ in range(7):
                with pytest.raises(cogwork.BadReply, match="the reply"):
                    await client.call("liar", "x", timeout_s=5, result=dict[str, int])
            assert not caller_of(client).routed.replies.calls  # type: ignore[union-attr]  # it called


@story
async def test_a_message_client_can_call_a_service_and_serve_one(url: str) -> None:
    """What `docs/rpc.md` says is enough to take part."""
    async with cogwork.connect(url) as client:
        service = client.service("plain")
        service.method(lambda n: n + 1, name="next")
        async with service, client.serve("unicast/rpc/other", lambda asked: asked.body):
            reply = await client.request("unicast/rpc/plain", {"n": 1}, subject="next")
            assert (reply.body, reply.subject) == (2, None)
            with pytest.raises(cogwork.CallFailed, match="no method"):
                await client.request("unicast/rpc/plain", {}, subject="none")
            assert await client.call("other", "anything", a=1) == {"a": 1}
