"""What travels, as an AMQP client sees it that knows nothing of oslo.messaging."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING

import oslo_messaging
import pytest
from helpers import client, rpc

import cogwork
from cogwork.testing import TestContainer

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of its executors

GROUP_OF_RAW = "openstack.org/om/rpc/anycast/openstack/raw"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    container = TestContainer("", 0, "wire").start()
    yield container.url
    container.stop()


def test_a_plain_client_serves_a_call(url: str) -> None:
    """Hostile replies first: they are not this call's, or are an error and no hang."""

    async def serve() -> None:
        async with cogwork.connect(url) as mesh, mesh.consume(GROUP_OF_RAW) as requests:
            async for request in requests:
                body = json.loads(str(request.body))
                assert request.to == GROUP_OF_RAW
                assert len(str(request.message_id)) == 32
                assert request.absolute_expiry_time is None
                assert request.ttl_s is not None
                assert 0 < request.ttl_s <= 20
                assert body["context"] == {"who": "me"}
                request.accept_nowait()
                assert request.reply_to is not None
                await mesh.publish(request.reply_to, "nobody's", correlation_id="unknown")
                answer = body["request"]["args"]["answer"]
                await mesh.publish(
                    request.reply_to, answer, settled=True, correlation_id=request.message_id
                )
                if answer == json.dumps({"response": "last"}):
                    return

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    with rpc(url + "/") as transport:
        calls = client(transport, "raw", timeout=20)

        def call(answer: str) -> object:
            return calls.call({"who": "me"}, "any", answer=answer)

        assert call(json.dumps({"response": [1, {"two": None}]})) == [1, {"two": None}]
        for hostile in ("no JSON", "[1]", "[" * 100_000):
            with pytest.raises(oslo_messaging.MessageDeliveryFailure, match="of no use"):
                call(hostile)
        failure = {"class": "system", "module": "os", "message": "x", "args": ["true"], "tb": []}
        with pytest.raises(oslo_messaging.RemoteError, match="system x"):
            call(json.dumps({"failure": json.dumps(failure)}))
        assert call(json.dumps({"response": "last"})) == "last"
    thread.join(20)
    assert not thread.is_alive()


def test_a_plain_client_calls_and_its_nonsense_is_rejected(url: str) -> None:
    class Endpoint:
        def add(self, ctxt: dict[str, object], a: int, b: int) -> int:
            return a + b

    async def ask() -> object:
        async with cogwork.connect(url) as mesh:
            address = "openstack.org/om/rpc/unicast/openstack/served/one"
            for nonsense in (b"\xff", "no JSON", {"a": "map"}, json.dumps({"no": "request"})):
                with pytest.raises(cogwork.Rejected):
                    await mesh.publish(address, nonsense)
            body = {"request": {"method": "add", "args": {"a": 1, "b": 2}}, "context": {}}
            reply = await mesh.request(address, json.dumps(body), timeout_s=20)
            return json.loads(str(reply.body))

    with rpc(url + "/") as transport:
        target = oslo_messaging.Target(topic="served", server="one")
        server = oslo_messaging.get_rpc_server(
            transport, target, [Endpoint()], executor="threading"
        )
        server.start()
        try:
            assert asyncio.run(ask()) == {"response": 3}
        finally:
            server.stop()
            server.wait()
