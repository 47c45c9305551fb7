"""Calls, casts, fanouts and streams through a container, with nothing going wrong."""

from __future__ import annotations

import asyncio
import datetime as dt
import threading
import time
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import msgspec
import pytest

import cogwork
import cogwork.sync
from cogwork.rpc import RpcOptions, current_call

from .stories import eventually, story

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


@dataclass
class Disk:
    size: int
    label: str = "root"


class Vm(msgspec.Struct):
    name: str
    disks: list[Disk] = []


@story
async def test_a_call_reaches_one_server_of_a_topic_or_a_certain_one(url: str) -> None:
    async with cogwork.connect(url) as client, cogwork.connect(url) as caller:
        services = [client.service("who", server=f"host-{n}") for n in range(3)]
        for service in services:
            own = service.server
            service.method(lambda own=own: own, name="name")
        async with services[0], services[1], services[2]:
            for n in range(3):
                assert await caller.call("who", "name", server=f"host-{n}") == f"host-{n}"
            found = {await caller.call("who", "name") for _ in range(20)}
            assert found <= {"host-0", "host-1", "host-2"}


@story
async def test_casts_go_to_one_and_fanouts_to_all(url: str) -> None:
    seen: list[tuple[str, int]] = []
    async with cogwork.connect(url) as client, cogwork.connect(url) as caller:
        services = [client.service("casts", server=f"host-{n}") for n in range(3)]
        for service in services:
            service.method(lambda n, own=service.server: seen.append((own, n)), name="note")
        async with services[0], services[1], services[2]:
            await caller.fanout("casts", "note", n=1)
            await eventually(lambda: len(seen) == 3, "all have it")
            assert sorted(seen) == [("host-0", 1), ("host-1", 1), ("host-2", 1)]
            await caller.cast("casts", "note", server="host-1", n=2)
            await caller.cast("casts", "note", settled=False, n=3)
            await eventually(lambda: len(seen) == 5, "two more")
            assert ("host-1", 2) in seen
            assert [n for _, n in seen].count(3) == 1
        await caller.fanout("nobody", "note", n=1)
        await caller.fanout("nobody", "note", settled=False, n=1)


@story
async def test_arguments_and_results_keep_their_types(url: str) -> None:
    async with cogwork.connect(url) as client:
        service = client.service("types")

        @service.method
        async def grow(vm: Vm, at: dt.datetime, owner: UUID, price: Decimal, raw: bytes) -> Vm:
            assert (type(at), type(owner), type(raw)) == (dt.datetime, UUID, bytes)
            assert isinstance(price, Decimal)
            return Vm(vm.name, [*vm.disks, Disk(7)])

        @service.method
        def echo(**given: object) -> dict[str, object]:
            return given

        now = dt.datetime.now(dt.UTC).replace(microsecond=0)
        sent = {"at": now, "owner": uuid4(), "price": Decimal("1.5"), "raw": b"\x00"}
        async with service:
            for codec in ("amqp", "json", "msgpack", "protobuf"):
                grown = await client.call(
                    "types", "grow", codec=codec, result=Vm, vm=Vm("a", [Disk(1)]), arguments=sent
                )
                assert grown == Vm("a", [Disk(1), Disk(7)])
            deep = {**sent, "maps": {"of": [{"maps": None}]}, "server": 1, "timeout_s": 2}
            assert await client.call("types", "echo", arguments=deep) == deep
            assert await client.call("types", "echo") == {}


@story
async def test_a_reply_comes_in_parts_with_back_pressure(url: str) -> None:
    yielded = 0
    ended = asyncio.Event()
    async with cogwork.connect(url) as client, cogwork.connect(url) as caller:
        service = client.service("parts")

        @service.method
        async def count(to: int) -> AsyncIterator[int]:
            nonlocal yielded
            try:
                for n in range(to):
                    yielded += 1
                    yield n
            finally:
                ended.set()

        @service.method
        def plain(to: int) -> Iterator[int]:
            yield from range(to)

        @service.method
        async def whole() -> str:
            return "at once"

        async with service:
            parts = caller.call_stream("parts", "count", window=8, to=500)
            assert await anext(parts) == 0
            await eventually(lambda: yielded > 4, "it goes on")
            await asyncio.sleep(0.05)
            assert yielded <= 10
            assert [n async for n in parts] == list(range(1, 500))
            assert [n async for n in caller.call_stream("parts", "plain", to=300)] == [*range(300)]
            assert [n async for n in caller.call_stream("parts", "whole")] == ["at once"]
            ended.clear()
            async for n in caller.call_stream("parts", "count", to=10**9):
                if n == 100:
                    break
            await asyncio.wait_for(ended.wait(), 5)
            assert service.running == 0


@story
async def test_heartbeats_keep_a_long_call_alive(url: str) -> None:
    async with cogwork.connect(url) as client:
        service = client.service("long")

        @service.method
        async def work() -> str:
            await asyncio.sleep(0.9)
            return "done"

        async with service:
            assert await client.call("long", "work", timeout_s=20, heartbeat_s=0.3) == "done"


@story
async def test_no_more_work_is_done_at_once_than_the_concurrency(url: str) -> None:
    async with cogwork.connect(url) as client, cogwork.connect(url) as caller:
        service = client.service("narrow", concurrency=3)
        at_once: list[int] = []

        @service.method
        async def work() -> None:
            at_once.append(service.running)
            await asyncio.sleep(0.01)

        async with service:
            await asyncio.gather(*(caller.call("narrow", "work") for _ in range(60)))
        assert max(at_once) == 3
        assert service.running == service.waiting == 0


@story
async def test_a_repeated_key_runs_once(url: str) -> None:
    runs = 0
    async with cogwork.connect(url) as client:
        service = client.service("keys", server="one")

        @service.method
        async def pay(amount: int) -> int:
            nonlocal runs
            runs += 1
            await asyncio.sleep(0.05)
            return amount

        async with service:
            call = partial(client.call, "keys", "pay", server="one", idempotency_key="k", amount=7)
            assert await asyncio.gather(call(), call(), call()) == [7, 7, 7]
            assert await call() == 7
            assert runs == 1
            await client.call("keys", "pay", server="one", idempotency_key="other", amount=8)
            assert runs == 2
            for _ in range(3):
                await client.cast("keys", "pay", server="one", idempotency_key="cast", amount=9)
            await client.call("keys", "pay", server="one", amount=10)
            await eventually(lambda: service.running == 0, "all have run")
            assert runs == 4
            for _ in range(2):
                await client.cast("keys", "pay", server="one", idempotency_key="cast", amount=9)
            await client.call("keys", "pay", server="one", amount=10)
            assert runs == 5


@story
async def test_a_method_knows_its_call(url: str) -> None:
    async with cogwork.connect(url) as client:
        service = client.service("context")

        @service.method
        async def remaining() -> float:
            await asyncio.sleep(0)
            return current_call().remaining_s or 0.0

        async with service:
            assert 4 < await client.call("context", "remaining", timeout_s=5) <= 5
        with pytest.raises(LookupError):
            current_call()


@story
async def test_prefixes_exchange_and_unsettled_messages_are_options(url: str) -> None:
    options = RpcOptions(
        exchange="nova",
        unicast="openstack.org/om/rpc/unicast",
        codec="json",
        call_settled=False,
        cast_settled=False,
        reply_settled=False,
    )
    async with (
        cogwork.connect(url, rpc=options) as client,
        client.subscribe("broadcast/nova/conf") as seen,
    ):
        service = client.service("conf")
        service.method(lambda n: n + 1, name="next")
        async with service:
            assert await client.call("conf", "next", n=1) == 2
            with pytest.raises(cogwork.Unreachable, match="unicast/cinder/conf"):
                await client.call("conf", "next", exchange="cinder", timeout_s=0.1, n=1)
            await client.fanout("conf", "next", n=1)
            message = await anext(seen)
            assert (message.content_type, message.body) == ("application/json", b'{"n":1}')


@story
async def test_methods_in_threads_may_block(url: str) -> None:
    async with cogwork.connect(url) as client:
        service = client.threaded_service("threads", concurrency=4)
        names: set[str] = set()

        @service.method
        def block(n: int) -> int:
            names.add(threading.current_thread().name)
            time.sleep(0.02)
            assert current_call().remaining_s is not None
            return n

        @service.method
        def fail() -> None:
            raise SystemExit("not the whole process")

        @service.method
        def count(to: int) -> Iterator[int]:
            yield from range(to)

        async with service:
            found = await asyncio.gather(*(client.call("threads", "block", n=n) for n in range(12)))
            assert found == list(range(12))
            assert threading.current_thread().name not in names
            with pytest.raises(cogwork.RemoteError, match="SystemExit"):
                await client.call("threads", "fail")
            assert [n async for n in client.call_stream("threads", "count", to=100)] == [
                *range(100)
            ]


def test_the_synchronous_mesh_calls_and_serves(url: str) -> None:
    seen: list[int] = []
    with cogwork.sync.connect(url) as client, cogwork.sync.connect(url) as caller:
        service = client.service("plain", server="one")

        @service.method
        def double(n: int) -> int:
            return n * 2

        @service.method
        def note(n: int) -> None:
            seen.append(n)

        @service.method
        def count(to: int) -> Iterator[int]:
            yield from range(to)

        with service:
            assert caller.call("plain", "double", n=21) == 42
            assert caller.call("plain", "double", server="one", n=4) == 8
            caller.cast("plain", "note", n=1)
            caller.fanout("plain", "note", n=2)
            assert list(caller.call_stream("plain", "count", to=50)) == [*range(50)]
            with caller.call_stream("plain", "count", to=10**9) as parts:
                assert next(iter(parts)) == 0
            service.method(lambda: 1 / 0, name="fail")
            with pytest.raises(cogwork.RemoteError, match="ZeroDivision"):
                caller.call("plain", "fail")
            deadline_s = time.monotonic() + 5
            while len(seen) < 2 and time.monotonic() < deadline_s:
                time.sleep(0.01)
    assert sorted(seen) == [1, 2]
