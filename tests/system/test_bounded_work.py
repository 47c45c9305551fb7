"""What a peer chooses takes a bounded time in one turn of the event loop.

Each test runs an attack on a container whose turns are timed, beside a client that goes on with
what it does. What counts is the CPU time of the longest turn: without the bounds each of these
takes several times `TURN_MAX_S`, some of them seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import time
from typing import TYPE_CHECKING

import pytest
from amqp.connection import Connection
from stalls import measured_container

import cogwork
from cogwork.amqp.frames import AMQP_HEADER
from cogwork.amqp.performatives import Attach, Begin, Open, Role, encode_performative
from cogwork.amqp.terminus import Source, Target
from cogwork.amqp091.content import BasicProperties, Content, write_command
from cogwork.amqp091.methods import BasicPublish
from cogwork.dataplane.encoding.codec import encode
from cogwork.router.selectors import STEPS_MAX

from .honest import beside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stalls import Stalls

TURN_MAX_S = 0.2
"""Some times what the dearest selector that is allowed takes for a message, with all the rest."""

WAIT_S = 60.0

QUEUES = 1_000
MESSAGES = 200
"""Of each publisher, for all of the queues: as many as one read takes."""

BIG: dict[str, object] = {"p": "a" * 200_000}
TOO_DEAR = " OR ".join(["p LIKE '%a%___b%'"] * 120)
DEAR = " OR ".join(["amqp.to = 'b'"] * 120)
"""Within the budget, and some hundred times what people write."""

WANTED = "wanted = 1"


@pytest.fixture
def running() -> Iterator[Stalls]:
    with measured_container() as container:
        yield container


@contextlib.contextmanager
def undisturbed(running: Stalls) -> Iterator[None]:
    """Time the turns of a block, with an honest client beside it that must not notice."""
    with beside(running.url):
        running.reset()
        yield
    assert running.longest_s < TURN_MAX_S


async def subscribed(
    client: cogwork.Client, address: str, selector: str | None, count: int = 1
) -> tuple[list[asyncio.Task[None]], list[object]]:
    """Have some subscribers gather the bodies that they get."""
    found: list[object] = []
    note = found.append

    async def gather(is_attached: asyncio.Event) -> None:
        async with client.subscribe(address, selector=selector) as subscription:
            is_attached.set()
            async for message in subscription:
                note(message.body)

    attached = [asyncio.Event() for _ in range(count)]
    tasks = [asyncio.create_task(gather(each)) for each in attached]
    await asyncio.wait_for(asyncio.gather(*(each.wait() for each in attached)), WAIT_S)
    return tasks, found


async def until(what_for: str, found: list[object], count: int) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while len(found) < count and time.monotonic() < deadline_s:
        await asyncio.sleep(0.02)
    assert len(found) >= count, what_for


def test_a_link_whose_selector_is_too_dear_is_detached(running: Stalls) -> None:
    async def attack() -> None:
        async with cogwork.connect(running.url) as client:
            (task,), found = await subscribed(client, "topic/x", TOO_DEAR)
            await client.publish("topic/x", b"x", properties=BIG)
            with pytest.raises(cogwork.LinkDetached) as refused:
                await asyncio.wait_for(task, WAIT_S)
            assert refused.value.condition == "amqp:resource-limit-exceeded"
            assert f"the selector {TOO_DEAR[:60] + '…'!r} takes more than {STEPS_MAX} steps" in str(
                refused.value
            )
            assert not found

    with undisturbed(running):
        asyncio.run(attack())


def test_a_selector_that_takes_long_to_compile_is_refused(running: Stalls) -> None:
    async def attack() -> None:
        async with cogwork.connect(running.url) as client:
            text = " OR ".join(["a=1"] * 1000)
            with pytest.raises(cogwork.LinkRefused, match="of more than 512 words") as refused:
                async with client.subscribe("topic/x", selector=text):
                    pass
            assert refused.value.condition == "amqp:invalid-field"

    with undisturbed(running):
        asyncio.run(attack())


def test_selective_subscribers_of_a_topic_take_turns(running: Stalls) -> None:
    """What has to wait for its selector comes in order, and only where it is wanted."""

    async def attack() -> None:
        async with cogwork.connect(running.url) as client:
            tasks, refused = await subscribed(client, "topic/x", DEAR, 100)
            more, found = await subscribed(client, "topic/x", f"({DEAR}) OR {WANTED}")
            async with client.publisher("topic/x") as publisher:
                await publisher.send_batch(
                    [
                        cogwork.Message(b"%d" % number, properties={"wanted": number % 2})
                        for number in range(100)
                    ]
                )
            await until("those that are wanted arrive", found, 50)
            assert found == [b"%d" % number for number in range(1, 100, 2)]
            assert not refused
            for task in (*tasks, *more):
                task.cancel()

    with undisturbed(running):
        asyncio.run(attack())


def test_selective_consumers_of_a_backlog_take_turns(running: Stalls) -> None:
    async def attack() -> None:
        async with cogwork.connect(running.url) as client:
            async with client.publisher("queue/x") as publisher:
                await publisher.send_batch([b"x"] * 3000)
                await publisher.send(b"last", properties={"wanted": 1})
            found: list[object] = []
            note = found.append

            async def consume() -> None:
                async with client.consume(
                    "queue/x", selector=f"({DEAR}) OR {WANTED}", credit=1
                ) as consumer:
                    async for item in consumer:
                        note(item.body)

            tasks = [asyncio.create_task(consume()) for _ in range(5)]
            await until("the only one that is wanted is found", found, 1)
            assert found == [b"last"]
            for task in tasks:
                task.cancel()

    with undisturbed(running):
        asyncio.run(attack())


def test_selective_receivers_of_a_direct_address_take_turns(running: Stalls) -> None:
    async def attack() -> None:
        async with cogwork.connect(running.url) as client:
            tasks, refused = await subscribed(client, "anycast/x", DEAR, 100)
            more, found = await subscribed(client, "anycast/x", f"({DEAR}) OR {WANTED}")
            async with client.publisher("anycast/x") as publisher:
                await publisher.send_batch(
                    [
                        cogwork.Message(b"%d" % number, properties={"wanted": 1})
                        for number in range(50)
                    ]
                )
            await until("the one that wants them gets them", found, 50)
            assert found == [b"%d" % number for number in range(50)]
            assert not refused
            for task in (*tasks, *more):
                task.cancel()

    with undisturbed(running):
        asyncio.run(attack())


def test_selective_readers_of_a_stream_take_turns(running: Stalls) -> None:
    async def attack() -> None:
        async with cogwork.connect(running.url) as client:
            await client.manage("CREATE", {"type": "stream", "name": "stream/x"}, {})
            stream = client.stream("stream/x")
            async with client.publisher("stream/x") as publisher:
                await publisher.send_batch([b"x"] * 2000)
                await publisher.send(b"last", properties={"wanted": 1})

            async def read() -> bytes:
                selector = f"({DEAR}) OR {WANTED}"
                async for record in stream.read("first", selector=selector):
                    return bytes(record.body)
                return b""

            tasks = [asyncio.create_task(read()) for _ in range(3)]
            assert await asyncio.wait_for(asyncio.gather(*tasks), WAIT_S) == [b"last"] * 3

    with undisturbed(running):
        asyncio.run(attack())


def test_many_properties_are_decoded_once_for_all_selectors(running: Stalls) -> None:
    async def attack() -> None:
        async with cogwork.connect(running.url) as client:
            tasks, found = await subscribed(client, "topic/x", "k1 = 1", 100)
            for _ in range(3):
                await client.publish(
                    "topic/x", b"x", properties={f"k{each}": each for each in range(15_000)}
                )
            await until("everybody gets all", found, 300)
            for task in tasks:
                task.cancel()

    with undisturbed(running):
        asyncio.run(attack())


def test_a_long_subject_is_matched_to_an_end(running: Stalls) -> None:
    async def attack() -> None:
        async with cogwork.connect(running.url) as client:
            tasks = []
            for at in range(126):
                pattern = "topic/" + "*." * at + "#." + "*." * (126 - at) + "x"
                tasks += (await subscribed(client, pattern, None))[0]
            with contextlib.suppress(cogwork.CogworkError):
                await client.publish("topic/" + "a." * 15_000 + "b", b"x")
            for task in tasks:
                task.cancel()

    with undisturbed(running):
        asyncio.run(attack())


def test_a_burst_of_attaches_lets_others_in_between(running: Stalls) -> None:
    """All of them come, in order."""
    count = 1000
    with undisturbed(running), Raw(running) as raw:
        raw.send(attaches(raw, count))

        def attached() -> list[str]:
            names = [link.name for link in list(running.container.links.values())]
            return [name for name in names if name.startswith("r")]

        deadline_s = time.monotonic() + WAIT_S
        while len(attached()) < count and time.monotonic() < deadline_s:
            time.sleep(0.02)
        assert attached() == [f"r{each}" for each in range(count)]


def attaches(raw: Raw, count: int) -> bytes:
    """Return frames that attach receivers, each at a queue of its own."""
    return b"".join(
        raw.frame(
            Attach(
                name=f"r{each}",
                handle=each,
                role=Role.RECEIVER,
                source=Source(address=f"queue/{each}"),
                target=Target(),
            )
        )
        for each in range(count)
    )


def test_who_comes_late_does_not_wait_for_all_that_another_source_has_sent(
    running: Stalls,
) -> None:
    """What is left to later turns is left to each source by itself."""
    crowd, count = 30, 900

    def attached() -> int:
        return sum(link.name.startswith("r") for link in list(running.container.links.values()))

    async def come() -> None:
        async with cogwork.connect(running.url) as client, client.publisher("queue/late"):
            pass

    with contextlib.ExitStack() as stack:
        for _ in range(crowd):
            raw = stack.enter_context(Raw(running, "127.0.0.2"))
            raw.send(attaches(raw, count))
        deadline_s = time.monotonic() + WAIT_S
        while attached() < crowd and time.monotonic() < deadline_s:
            time.sleep(0.001)
        asyncio.run(come())
        assert crowd <= attached() < crowd * count // 2


class Raw:
    """A peer that writes frames itself, and reads nothing."""

    def __init__(self, running: Stalls, host: str = "127.0.0.1") -> None:
        port = int(running.url.rpartition(":")[2])
        self._socket = socket.create_connection(("127.0.0.1", port), 10, (host, 0))

    def __enter__(self) -> Raw:
        window = 1 << 30
        begin = Begin(next_outgoing_id=0, incoming_window=window, outgoing_window=window)
        self.send(AMQP_HEADER + self.frame(Open(container_id="raw")) + self.frame(begin))
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def frame(self, performative: Open | Begin | Attach) -> bytes:
        body = encode_performative(performative, encode)
        return struct.pack(">IBBH", len(body) + 8, 2, 0, 0) + body

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)


def test_messages_for_a_thousand_queues_let_others_in_between(running: Stalls) -> None:
    port = int(running.url.rpartition(":")[2])
    command = bytearray()
    publish = BasicPublish(exchange="amq.fanout")
    write_command(command, 1, publish, Content.of(BasicProperties(), b""), 4096)
    with contextlib.ExitStack() as opened:
        consuming = opened.enter_context(Connection(f"127.0.0.1:{port}"))
        channel = consuming.channel()
        for _ in range(QUEUES):
            channel.queue_bind(channel.queue_declare(exclusive=True).queue, "amq.fanout")
        publishing = [opened.enter_context(Connection(f"127.0.0.1:{port}")) for _ in range(4)]
        for each in publishing:
            each.channel()
        with undisturbed(running):
            for each in publishing:
                each.transport.sock.sendall(command * MESSAGES)
            for each in publishing:  # in order: what is answered is behind all of them
                each.channel()
