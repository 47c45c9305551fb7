"""A container that is short of memory: publishers wait, consumers and the operator go on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import cogwork
from cogwork.config.reading import parse
from cogwork.container.container import Container

from .linked import linked
from .stories import eventually, story

if TYPE_CHECKING:
    import pytest


@story
async def test_publishers_wait_and_consumers_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    used = 0
    monkeypatch.setattr("cogwork.container.connections.watermark.resident_bytes", lambda: used)
    container = Container(parse('id = "north"\n[[listen]]\nport = 0\n', "test"))
    await container.start()
    try:
        async with (
            cogwork.connect(container.endpoints[0]) as client,
            client.publisher("queue/a") as publisher,
        ):
            for number in range(3):
                await publisher.send(number)
            used = 1 << 60
            await eventually(lambda: container.watermark.is_passed, "memory is short")
            waiting = asyncio.create_task(publisher.send(3))
            async with client.publisher("queue/a") as late:
                waiting_too = asyncio.create_task(late.send(4))
                async with client.consume("queue/a") as items:
                    arrivals = aiter(items)
                    for number in range(3):
                        item = await anext(arrivals)
                        assert item.body == number
                        await item.accept()
                    assert not waiting.done()
                    assert not waiting_too.done()
                    used = 0
                    await asyncio.wait_for(asyncio.gather(waiting, waiting_too), 20)
                    assert {(await anext(arrivals)).body for _ in range(2)} == {3, 4}
    finally:
        await container.stop(drain_timeout_s=0)


HOMED = '[[queue]]\naddress = "queue/a"\nhome = "home"\n'


@story
async def test_publishers_elsewhere_wait_for_the_container_that_stores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used = 0
    monkeypatch.setattr("cogwork.container.connections.watermark.resident_bytes", lambda: used)
    async with linked("home-away", configuration=HOMED) as mesh:
        home, away = mesh.containers["home"], mesh.containers["away"]
        monkeypatch.setattr(away.watermark, "look", lambda _share: None)  # it is not short
        client, other = await mesh.client("away"), await mesh.client("home")
        async with client.publisher("queue/a") as publisher:
            await publisher.send(0)
            used = 1 << 60
            await eventually(lambda: home.watermark.is_passed, "memory is short at home")
            assert not away.watermark.is_passed
            waiting = [asyncio.create_task(publisher.send(number)) for number in (1, 2)]
            await asyncio.sleep(0.5)
            assert not any(each.done() for each in waiting)
            await client.publish("queue/elsewhere", 1)
            async with other.consume("queue/a") as items:
                arrivals = aiter(items)
                await (await anext(arrivals)).accept()
                used = 0
                await asyncio.wait_for(asyncio.gather(*waiting), 20)
                assert {(await anext(arrivals)).body for _ in range(2)} == {1, 2}
