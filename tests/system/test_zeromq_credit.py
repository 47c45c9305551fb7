"""A ZeroMQ gateway without credit: services go on, answers that wait are few, MORE is not lost."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

import cogwork

from .served import within
from .stories import story
from .zeromq_mesh import Client, Gateway, gateway, session

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from pathlib import Path

T = TypeVar("T")

CREDIT, WINDOW = 20, 4

CONFIGURATION = f"""
[limits]
link_credit = {CREDIT}
[[queue]]
address = "queue/full"
maximum_length = 1
"""


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Gateway]:
    """A container that gives little credit, with a queue that is full at once."""
    with gateway(tmp_path / "container", configuration=CONFIGURATION) as found:
        yield found


def threaded(work: Callable[[], T]) -> Awaitable[T]:
    """Do something that blocks, while the event loop goes on."""
    return asyncio.get_running_loop().run_in_executor(None, work)


def served(client: Client, most: int | None = None) -> int:
    """Answer so many requests, or until nothing comes any more; return how many there were."""
    patience_ms = 1000 if most is None else 10_000
    count = 0
    while count != most and client.socket.poll(patience_ms):
        client.serve_one(lambda request: request.body)
        count += 1
    return count


def asked(mesh: cogwork.Client, count: int) -> asyncio.Future[Any]:
    """Have requests sent to `svc` whose answers go to the queue that is full."""
    messages = [cogwork.Message({"n": n}) for n in range(count)]
    for message in messages:
        message.reply_to = "queue/full"
    return asyncio.gather(*(mesh.publish("unicast/svc", message) for message in messages))


async def taken(mesh: cogwork.Client, count: int) -> None:
    """Take what waits for room in the queue."""
    async with mesh.consume("queue/full") as items:
        for _ in range(count):
            await (await anext(items)).accept()


def test_services_answer_while_requests_wait_for_credit(running: Gateway) -> None:
    service, caller = running.client(), running.client()
    service.register("svc", window=WINDOW)
    for number in range(3 * CREDIT):
        caller.send("CALL", {"id": number, "to": "svc"}, number)
    within(5, lambda: running.status()["faults"], "there is no credit, and calls are refused")
    answered = served(service)
    assert answered > CREDIT
    heard = [caller.receive(1.0) for _ in range(3 * CREDIT)]
    assert [each.verb for each in heard].count("RESULT") == answered
    assert {each.header["code"] for each in heard if each.verb == "ERROR"} == {"busy"}
    assert running.status()["under_way"] == 0


def test_parts_go_on_while_requests_wait_for_credit(running: Gateway) -> None:
    service, caller = running.client(), running.client()
    service.register("svc", window=1)
    caller.send("STREAM", {"id": "s", "to": "svc", "credit": 1})
    number = service.receive().header["id"]
    for _ in range(2 * CREDIT):
        caller.send("CALL", {"id": 0, "to": "svc"})
    within(5, lambda: running.status()["faults"], "there is no credit, and calls are refused")
    service.send("PART", {"id": number}, 0)
    caller.send("MORE", {"id": "s", "credit": 2})
    assert service.receive(2.0).header == {"id": number, "credit": 2}
    service.send("END", {"id": number})
    assert served(service) > CREDIT - 2


@story
async def test_a_service_whose_answers_wait_is_asked_nothing_more(running: Gateway) -> None:
    service = running.client()
    service.register("svc", window=WINDOW)
    async with cogwork.connect(running.url) as mesh:
        asking = asked(mesh, 3 * CREDIT)
        answered = await threaded(lambda: served(service))
        assert CREDIT < answered <= 1 + CREDIT + WINDOW  # one has room in the queue
        taking = asyncio.create_task(taken(mesh, 3 * CREDIT))
        rest = 3 * CREDIT - answered
        assert await threaded(lambda: served(service, rest)) == rest
        await asyncio.gather(asking, taking)


@story
async def test_more_is_said_as_soon_as_there_is_credit(running: Gateway) -> None:
    service, caller = running.client(), running.client()
    service.register("svc", window=WINDOW)
    async with cogwork.connect(running.url) as mesh:
        numbers = mesh.service("numbers", grace_s=0.1)

        @numbers.method
        async def count() -> AsyncIterator[int]:
            for n in range(5):
                yield n

        async with numbers:
            sent = {"id": "s", "to": "rpc/numbers", "subject": "count", "timeout_s": 60}
            caller.send("STREAM", {**sent, "credit": 1}, {})
            assert (await threaded(lambda: next_part(caller))) == 0
            asking = asked(mesh, 2 * CREDIT)
            answered = await threaded(lambda: served(service))
            caller.send("MORE", {"id": "s", "credit": 2})
            caller.send("MORE", {"id": "s", "credit": 9})
            await threaded(lambda: caller.ask("PING", {}))
            with pytest.raises(session.GatewayError, match="busy"):
                await threaded(lambda: caller.call("svc", 1))
            taking = asyncio.create_task(taken(mesh, 2 * CREDIT))
            found = [await threaded(lambda: next_part(caller, 2.0)) for _ in range(4)]
            assert found == [1, 2, 3, 4]
            rest = 2 * CREDIT - answered
            assert await threaded(lambda: served(service, rest)) == rest
            await asyncio.gather(asking, taking)


def next_part(client: Client, timeout_s: float = 10.0) -> object:
    """Return the body of the next part; sign of life are passed over."""
    while (frames := client.receive(timeout_s)).verb == "BEAT":
        pass
    assert frames.verb == "PART", frames
    return frames.body
