"""What another container sends that no container of ours would."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from replicas import take, trio

from cogwork.consensus.batch import Batch
from cogwork.consensus.replicated import calls
from cogwork.consensus.replicated.switchboard import CALL

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path


def test_an_answer_to_something_else_is_reported_and_the_proposal_repeated(tmp_path: Path) -> None:
    async def story() -> None:
        async with trio(tmp_path) as made:
            engines = {name: await made.open(name) for name in "abc"}
            await engines["a"].append(Batch.of([b"1"]))
            leader = next(name for name in "abc" if made.nodes[name].service.leads("orders"))
            other = "b" if leader == "a" else "a"
            service = made.nodes[other].service
            made.passes = lambda origin, _to: origin != leader
            appending = asyncio.ensure_future(engines[other].append(Batch.of([b"2"])))
            while not service._switchboard._expecting:
                await asyncio.sleep(0.001)
            (number,) = service._switchboard._expecting
            service.receive(leader, CALL + calls.encode(calls.RoomIs(number, 1, "")))
            assert [each for each in made.reports if f"{leader} sent something else" in each]
            made.passes = lambda _from, _to: True
            await appending
            assert await take(engines[other], 2) == [b"1", b"2"]

    asyncio.run(asyncio.wait_for(story(), 20))


def test_results_of_something_else_are_reported_and_the_proposal_repeated(tmp_path: Path) -> None:
    async def story() -> None:
        async with trio(tmp_path) as made:
            engines = {name: await made.open(name) for name in "abc"}
            await engines["a"].append(Batch.of([b"1"]))
            leader = next(name for name in "abc" if made.nodes[name].service.leads("orders"))
            other = "b" if leader == "a" else "a"
            service = made.nodes[other].service
            made.passes = lambda origin, _to: origin != leader
            appending = asyncio.ensure_future(engines[other].append(Batch.of([b"2"])))
            while not service._switchboard._expecting:
                await asyncio.sleep(0.001)
            (number,) = service._switchboard._expecting
            service.receive(leader, CALL + calls.encode(calls.Results(number, [7])))
            text = f"stream orders: container {leader}: this is not an answer to these commands"
            assert [each for each in made.reports if each.startswith(text)]
            made.passes = lambda _from, _to: True
            assert (await appending).first_offset == 1
            assert await take(engines[other], 2) == [b"1", b"2"]

    asyncio.run(asyncio.wait_for(story(), 20))


def test_a_question_that_is_answered_with_something_else_is_put_to_another(tmp_path: Path) -> None:
    async def story() -> None:
        async with trio(tmp_path, "abcd") as made:
            engines = {name: await made.open(name) for name in "abcd"}
            await engines["a"].append(Batch.of([b"1"]))
            service, engine = made.nodes["d"].service, engines["d"]
            questions: list[Callable[[], Coroutine[object, object, object]]] = [
                engine.bounds,
                engine.members,
                engine.load_snapshot,
                partial(engine.offset_at, 0),
                partial(engine.read, 0),
            ]
            for ask in questions:
                made.reports.clear()
                made.passes = lambda _from, to: to != "d"
                asking = asyncio.ensure_future(ask())
                while not service._switchboard._asking:
                    await asyncio.sleep(0.001)
                ((number, asked),) = service._switchboard._asking.items()
                service.receive(asked.to, CALL + calls.encode(calls.RoomIs(number, 1, "")))
                assert [each for each in made.reports if f"{asked.to} sent something" in each]
                made.passes = lambda _from, _to: True
                await asking

    asyncio.run(asyncio.wait_for(story(), 20))
