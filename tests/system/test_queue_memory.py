"""Who fills its queues beyond its share of the memory waits; others go on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pika
import pytest

import cogwork
from cogwork.container.connections.queue_memory import equal_part
from cogwork.container.connections.shares import Holder
from cogwork.nodes.queue import QueueNode

from .stories import eventually, story
from .test_shares import limited, told_users

if TYPE_CHECKING:
    from cogwork.container.container import Container

MIB = 1 << 20
COUNT, BODY = 1000, b"\x00" * (MIB // 4)
SHARES = "queue_memory = 0.5\nqueue_memory_per_user = 0.1"
SHARES_AND_WATERMARK = f"{SHARES}\nmemory_watermark = 0.99"
ANN, BOB, EVE = (Holder("user", name) for name in ("ann", "bob", "eve"))


@pytest.fixture(autouse=True)
def _small_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have little memory, so that a share of it is soon full."""
    monkeypatch.setattr(
        "cogwork.container.connections.queue_memory.available_bytes", lambda: 200 * MIB
    )


def test_a_share_is_less_where_all_hold_too_much_together() -> None:
    assert equal_part({ANN: 40, BOB: 10}, 60) == 60
    assert equal_part({ANN: 40, BOB: 30, EVE: 5}, 60) == 20
    assert equal_part({ANN: 60, BOB: 0}, 60) == 60
    assert equal_part({}, 0) == 0


def queue(container: Container, address: str) -> QueueNode:
    node = container.vhosts[""].nodes[address]
    assert isinstance(node, QueueNode)
    return node


def size_bytes(container: Container, address: str) -> int:
    return queue(container, address).store.items.size_bytes


@story
async def test_a_user_that_fills_its_queues_waits_and_another_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with limited(SHARES_AND_WATERMARK, told_users(monkeypatch)) as container:
        ann, bob = (container.endpoints[0].replace("://", f"://{it}:pw@") for it in ("ann", "bob"))
        async with cogwork.connect(ann) as hers, cogwork.connect(bob) as his:
            async with hers.publisher("queue/ann") as publisher:
                sent = [asyncio.create_task(publisher.send(BODY)) for _ in range(COUNT)]
                await eventually(
                    lambda: (
                        "queue/ann" in container.vhosts[""].nodes
                        and queue(container, "queue/ann").store.is_held_up
                    ),
                    "her queue is held up",
                )
                assert "too much in their queues" in (queue(container, "queue/ann").problem or "")
                for number in range(20):
                    await his.publish("queue/bob", number)
                stored = size_bytes(container, "queue/ann")
                await asyncio.sleep(0.5)
                assert size_bytes(container, "queue/ann") == stored
                assert stored < COUNT * len(BODY) // 2
                assert not all(each.done() for each in sent)
                async with his.consume("queue/bob") as items:
                    assert (await anext(aiter(items))).body == 0
                relayed = asyncio.create_task(his.publish("queue/ann", b"by the relay"))
                taken = 0
                async with hers.consume("queue/ann") as items:
                    async for item in items:
                        await item.accept()
                        taken += 1
                        if taken == COUNT + 1:
                            break
                await asyncio.gather(*sent, relayed)
            await eventually(
                lambda: not queue(container, "queue/ann").store.is_held_up, "there is room again"
            )


@story
async def test_a_queue_that_nobody_made_has_a_share_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = '[[queue]]\naddress = "queue/all"\nmaximum_length_policy = "reject"'
    async with (
        limited(SHARES, told) as container,
        cogwork.connect(container.endpoints[0]) as client,
    ):
        async with client.publisher("queue/all") as publisher:
            with pytest.raises(cogwork.Rejected, match="the queue is full"):
                await asyncio.gather(*(publisher.send(BODY) for _ in range(COUNT)))
        assert size_bytes(container, "queue/all") < COUNT * len(BODY) // 2
        await client.publish("queue/other", b"x")


@story
async def test_what_a_user_sends_to_the_queues_of_another_is_its_own(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with limited(SHARES_AND_WATERMARK, told_users(monkeypatch)) as container:
        ann, bob = (container.endpoints[0].replace("://", f"://{it}:pw@") for it in ("ann", "bob"))
        async with cogwork.connect(ann) as hers, cogwork.connect(bob) as his:
            await hers.publish("queue/ann", b"first")
            async with his.publisher("queue/ann") as publisher:
                sent = [asyncio.create_task(publisher.send(BODY)) for _ in range(COUNT)]
                await eventually(lambda: "user 'bob' gets no credit" in caplog.text, "he waits")
                await asyncio.sleep(0.5)
                stored = size_bytes(container, "queue/ann")
                late = asyncio.create_task(his.publish("queue/other", b"late"))
                for number in range(20):
                    await hers.publish("queue/ann", number)
                    await hers.publish("queue/mine", number)
                assert not queue(container, "queue/ann").store.is_held_up
                assert size_bytes(container, "queue/ann") < stored + MIB
                assert not all(each.done() for each in sent)
                assert not late.done()
                async with hers.consume("queue/ann") as items:
                    async for item in items:
                        await item.accept()
                        if all(each.done() for each in sent):
                            break
                await late
    assert "user 'bob' gets credit again" in caplog.text
    assert "user 'ann' gets no credit" not in caplog.text


@story
async def test_so_is_what_it_publishes_by_amqp_0_9_1(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with limited(SHARES_AND_WATERMARK, told_users(monkeypatch)) as container:
        ann = container.endpoints[0].replace("://", "://ann:pw@")
        url = container.endpoints[0].replace("://", "://bob:pw@") + "/%2F?heartbeat=0"
        async with cogwork.connect(ann) as hers:
            await hers.publish("queue/ann", b"first")
            told: list[str] = []

            def publish() -> None:
                with pika.BlockingConnection(pika.URLParameters(url)) as his:
                    his.add_on_connection_blocked_callback(lambda *_: told.append("blocked"))
                    his.add_on_connection_unblocked_callback(lambda *_: told.append("unblocked"))
                    channel = his.channel()
                    for _ in range(COUNT // 2):
                        channel.basic_publish("", "ann", BODY)
                    his.process_data_events(time_limit=0.5)

            publishing = asyncio.create_task(asyncio.to_thread(publish))
            await eventually(lambda: "user 'bob' gets no credit" in caplog.text, "he waits")
            await hers.publish("queue/ann", b"hers")
            assert not publishing.done()
            async with hers.consume("queue/ann") as items:
                for _ in range(COUNT // 2 + 2):
                    await (await anext(aiter(items))).accept()
            await publishing
            assert told[:2] == ["blocked", "unblocked"]
