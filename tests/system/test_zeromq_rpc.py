"""Methods called across protocols: ZeroMQ programs and Cogwork's RPC."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from uuid import UUID

import pytest

import cogwork
from cogwork.rpc import RemoteError

from .stories import story
from .zeromq_mesh import Gateway, gateway, session

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

T = TypeVar("T")

GatewayError = session.GatewayError


class Request(Protocol):
    """What a service gets."""

    header: dict[str, Any]
    body: Any


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """One container for all tests."""
    with gateway(tmp_path_factory.mktemp("zeromq-rpc") / "container") as found:
        yield found


def threaded(work: Callable[[], T]) -> Awaitable[T]:
    """Do something that blocks, while the event loop goes on."""
    return asyncio.get_running_loop().run_in_executor(None, work)


@story
async def test_a_zeromq_program_calls_methods(running: Gateway) -> None:
    caller = running.client()
    async with cogwork.connect(running.url) as client:
        service = client.service("compute", server="host-3")

        @service.method
        async def start(vm: int, owner: UUID) -> dict[str, object]:
            return {"vm": vm, "owner": owner, "image": b"\0"}

        @service.method
        async def stop(vm: int) -> None:
            raise KeyError(f"no vm {vm}")

        @service.method
        async def wait() -> str:
            await asyncio.sleep(1.0)
            return "done"

        async with service:
            owner = {"$uuid": "12345678-1234-5678-1234-567812345678"}
            asked = {"vm": 7, "owner": owner}
            result = await threaded(lambda: caller.call("rpc/compute", asked, subject="start"))
            assert result == {"vm": 7, "owner": owner, "image": {"$bytes": "AA=="}}
            peer = running.client("peer2peer")
            name = "rpc/compute/host-3"
            result = await threaded(lambda: peer.call(name, asked, subject="start"))
            assert result["vm"] == 7
            with pytest.raises(GatewayError, match="no vm 9") as failed:
                await threaded(lambda: caller.call("rpc/compute", {"vm": 9}, subject="stop"))
            assert failed.value.header["type"] == "builtins.KeyError"
            assert "Traceback" in failed.value.header["traceback"]
            with pytest.raises(GatewayError, match="explode") as failed:
                await threaded(lambda: caller.call("rpc/compute", {}, subject="explode"))
            assert failed.value.header["condition"] == "amqp:not-implemented"
            properties = {"cogwork:heartbeat-s": 0.6}
            header = {"id": "slow", "to": "rpc/compute", "subject": "wait"}
            caller.send("CALL", {**header, "properties": properties}, {})
            verbs = [(await threaded(caller.receive)).verb]
            while verbs[-1] == "BEAT":
                verbs.append((await threaded(caller.receive)).verb)
            assert verbs[-1] == "RESULT"
            assert len(verbs) > 2


@story
async def test_methods_of_a_zeromq_program_are_called(running: Gateway) -> None:
    service, peer = running.client(), running.client("peer2peer")
    service.register("rpc/store")
    peer.register("rpc/store/host-1")

    def answer(request: Request) -> object:
        if request.header["subject"] == "lose":
            raise LookupError(f"no {request.body['key']}")
        return {"key": request.body["key"], "by": request.header["subject"]}

    async with cogwork.connect(running.url) as client:
        served = asyncio.ensure_future(threaded(lambda: service.serve_one(answer)))
        assert await client.call("store", "find", key=UUID(int=7)) == {
            "key": UUID(int=7),
            "by": "find",
        }
        await served
        served = asyncio.ensure_future(threaded(lambda: service.serve_one(answer)))
        with pytest.raises(RemoteError, match="no 5") as failed:
            await client.call("store", "lose", key=5)
        assert failed.value.type == "LookupError"
        await served
        served = asyncio.ensure_future(threaded(lambda: peer.serve_one(answer)))
        assert await client.call("store", "keep", server="host-1", key="k") == {
            "key": "k",
            "by": "keep",
        }
        await served
        await client.cast("store", "forget", key="k")
        request = await threaded(service.receive)
        assert (request.header["reply"], request.body) == (False, {"key": "k"})
        service.send("DONE", {"id": request.header["id"]})


@story
async def test_a_call_in_another_codec_comes_as_the_sessions(running: Gateway) -> None:
    service = running.client()
    service.register("rpc/packed")
    async with cogwork.connect(running.url) as client:
        for codec in ("json", "msgpack"):
            served = asyncio.ensure_future(
                threaded(lambda: service.serve_one(lambda request: request.body["n"] + 1))
            )
            assert await client.call("packed", "add", codec=codec, n=1) == 2
            await served


@story
async def test_a_stock_client_is_answered_in_its_json(running: Gateway) -> None:
    service = running.client()
    service.register("stock")
    async with cogwork.connect(running.url) as client:
        served = asyncio.ensure_future(
            threaded(lambda: service.serve_one(lambda request: {"n": request.body["n"] + 1}))
        )
        asked = cogwork.Message.data(b'{"n": 1}', content_type="application/json")
        reply = await client.request("unicast/stock", asked)
        assert (reply.body, reply.content_type) == (b'{"n":2}', "application/json")
        await served
