"""Calls with others: a stock AMQP client on either side, and a server that is killed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from proton import Message
from proton.handlers import MessagingHandler
from proton.reactor import AtMostOnce, Container
from proton.utils import BlockingConnection, SyncRequestResponse

import cogwork
import cogwork.sync

from .stories import story

SERVICE = Path(__file__).parents[2] / "examples" / "rpc" / "service.py"


def test_proton_calls_a_service(url: str) -> None:
    with cogwork.sync.connect(url) as mesh:
        service = mesh.service("stock")
        service.method(lambda a, b: a + b, name="add")
        with service:
            connection = BlockingConnection(url, timeout=10)
            client: Any = SyncRequestResponse(connection, "unicast/rpc/stock")
            reply = client.call(Message(body={"a": 1, "b": 2}, subject="add", ttl=5))
            assert (reply.body, reply.subject) == (3, None)
            reply = client.call(Message(body={"a": 1}, subject="add"))
            assert reply.subject == "error"
            assert reply.properties["cogwork:condition"] == "amqp:invalid-field"
            assert "lacks b" in reply.properties["cogwork:description"]
            reply = client.call(Message(body={"a": 1, "b": "x"}, subject="add"))
            assert reply.properties["cogwork:type"] == "builtins.TypeError"
            body = b'{"a": 20, "b": 22}'
            asked = Message(body=body, subject="add", content_type="application/json")
            reply = client.call(asked)
            assert bytes(reply.body) == b"42"
            connection.close()


class Server(MessagingHandler):
    """Answers what comes for one topic, as `docs/rpc.md` says."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self.is_open = threading.Event()

    def on_start(self, event: Any) -> None:  # untyped
        self._connection = event.container.connect(self._url, allowed_mechs="ANONYMOUS")
        event.container.create_receiver(self._connection, "unicast/rpc/proton")
        self._relay = event.container.create_sender(self._connection, None, options=AtMostOnce())

    def on_link_opened(self, event: Any) -> None:  # untyped
        if event.link.is_sender:
            self.is_open.set()

    def on_message(self, event: Any) -> None:  # untyped
        asked = event.message
        reply: Any = Message(address=asked.reply_to, correlation_id=asked.id)
        if asked.subject == "leave":
            self._connection.close()
            return
        if asked.subject == "fail":
            reply.subject = "error"
            reply.properties = {
                "cogwork:condition": "cogwork:remote-error",
                "cogwork:description": "not today",
                "cogwork:type": "proton.Refusal",
            }
        else:
            reply.body = {"method": asked.subject, **asked.body}
        self._relay.send(reply)


def test_proton_serves_calls(url: str) -> None:
    server = Server(url)
    thread = threading.Thread(target=Container(server).run)
    thread.start()
    assert server.is_open.wait(10)
    with cogwork.sync.connect(url) as mesh:
        assert mesh.call("proton", "hello", a=1, deep={"x": [1, None]}) == {
            "method": "hello",
            "a": 1,
            "deep": {"x": [1, None]},
        }
        with pytest.raises(cogwork.RemoteError, match=r"proton\.Refusal: not today"):
            mesh.call("proton", "fail")
        mesh.cast("proton", "leave")
    thread.join(10)
    assert not thread.is_alive()


@story
async def test_a_process_that_is_killed_is_missed(url: str) -> None:
    command = [sys.executable, "-u", str(SERVICE), "host-k", url]
    service = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert service.stdout is not None
        assert "host-k serves" in await asyncio.to_thread(service.stdout.readline)
        async with cogwork.connect(url) as mesh, cogwork.connect(url, direct=True) as near:
            streams = [
                each.call_stream(
                    "compute", "console", server="host-k", timeout_s=0.7, vm=1, lines=10**6
                )
                for each in (mesh, near)
            ]
            for parts in streams:
                assert "line 0" in await anext(parts)
            service.kill()
            for parts in streams:
                with pytest.raises((cogwork.ServerLost, cogwork.InDoubt)):
                    async for _ in parts:
                        pass
            with pytest.raises(cogwork.Unreachable):
                await near.call("compute", "start", server="host-k", timeout_s=0.3, vm=1)
    finally:
        service.kill()
        service.wait(10)
        assert service.stdout is not None
        service.stdout.close()
