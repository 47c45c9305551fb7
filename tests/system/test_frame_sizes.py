"""Containers that take small frames, or large ones, linked with each other and with clients."""

from __future__ import annotations

import asyncio

import pytest
from proton import Message
from proton.utils import BlockingConnection

import cogwork

from .linked import linked
from .stories import story

SIZES = (512, 4096, 16_384, 262_144)
"""The smallest that the specification allows; below and above what linked containers take."""

COUNT = 20


def limits(size_bytes: int) -> str:
    return f"[limits]\nmax_frame_size_bytes = {size_bytes}\n"


def bodies(size_bytes: int) -> list[bytes]:
    """Return bodies of less than a frame, about one, a few, and more than any frame."""
    return [bytes([at]) * size for at, size in enumerate((1, size_bytes, 3 * size_bytes, 300_000))]


@pytest.mark.parametrize("size_bytes", SIZES)
@story
async def test_nothing_is_lost_between_containers_whatever_frames_they_take(
    size_bytes: int,
) -> None:
    async with linked("a-b", "b-c", configuration=limits(size_bytes)) as mesh:
        # `c` dialled `b`, and `b` dialled `a`: this way the frames go that a listener takes.
        sender, receiver = await mesh.client("c"), await mesh.client("a")
        sent = bodies(size_bytes) * COUNT
        for address in ("topic/news", "plain", "broadcast/all"):
            async with receiver.subscribe(address) as messages:
                await mesh.settle()
                for settled in (False, True):
                    async with sender.publisher(address) as out:
                        await out.send_batch(sent, settled=settled)
                        taken = [message.body for _ in sent if (message := await anext(messages))]
                    assert taken == sent, (address, settled)


@pytest.mark.parametrize("size_bytes", SIZES)
@story
async def test_items_and_calls_pass_containers_whatever_frames_they_take(size_bytes: int) -> None:
    async with linked("a-b", "b-c", configuration=limits(size_bytes)) as mesh:
        near, far = await mesh.client("c"), await mesh.client("a")
        service = far.service("echo", server="one")

        @service.method
        async def echo(body: bytes) -> bytes:
            return body

        for body in bodies(size_bytes):
            await near.publish("work/jobs", body)
        async with far.consume("work/jobs") as items, service:
            for body in bodies(size_bytes):
                item = await anext(items)
                assert item.body == body
                await item.accept()
                assert await near.call("echo", "echo", body=body) == body


@pytest.mark.parametrize("size_bytes", SIZES)
@story
async def test_containers_with_different_limits_take_each_others_frames(size_bytes: int) -> None:
    async with linked() as mesh:
        await mesh.start("c", configuration=limits(size_bytes))
        await mesh.start("a", ["c"], limits(65_536))
        await mesh.settle()
        ends = {name: await mesh.client(name) for name in "ac"}
        for there, here in ("ac", "ca"):
            async with ends[here].subscribe(f"topic/{here}") as messages:
                await mesh.settle()
                for body in bodies(size_bytes):
                    await ends[there].publish(f"topic/{here}", body)
                    assert (await anext(messages)).body == body


@pytest.mark.parametrize("size_bytes", SIZES)
@story
async def test_clients_announce_what_they_take(size_bytes: int) -> None:
    async with linked("a-b", configuration=limits(size_bytes)) as mesh:
        url = mesh.containers["a"].endpoints[0]
        client = await mesh.enter(cogwork.connect(url, max_frame_size_bytes=size_bytes))
        assert client.container is not None
        assert client.container.max_frame_size == size_bytes
        async with client.subscribe("topic/own") as messages:
            for body in bodies(size_bytes):
                await client.publish("topic/own", body)
                assert (await anext(messages)).body == body

        def exchange() -> list[bytes]:
            bus = BlockingConnection(url, timeout=20, max_frame_size=size_bytes)
            receiver = bus.create_receiver("queue/theirs", credit=10)
            sender = bus.create_sender("queue/theirs")
            got = []
            for body in bodies(size_bytes):
                sender.send(Message(body=body))
                message = receiver.receive()
                assert isinstance(message.body, bytes | memoryview)
                got.append(bytes(message.body))
                receiver.accept()
            bus.close()
            return got

        assert await asyncio.to_thread(exchange) == bodies(size_bytes)
