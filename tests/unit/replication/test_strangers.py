"""What another container sends that no container of ours would."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import pytest
from replicas import take, trio

from cogwork.plugin.engine.batch import Batch, Chunk
from cogwork.plugin.engine.chunks import encode_chunk, encode_command
from cogwork.plugin.engine.commands import Append
from cogwork.replication import calls
from cogwork.replication.call_tracker import CALL
from cogwork.replication.member import Member

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from cogwork.replication.calls import Answer


def chunk_of(offset: int, *records: bytes) -> bytes:
    """Write a chunk."""
    return encode_chunk(Chunk(offset, 1, 0, Batch.of(records)))


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
            while not service._call_tracker._expecting:
                await asyncio.sleep(0.001)
            (number,) = service._call_tracker._expecting
            service.receive(leader, CALL + calls.encode(calls.RoomIs(number, 1, "")))
            assert [each for each in made.reports if f"{leader} sent a malformed datagram" in each]
            made.passes = lambda _from, _to: True
            await appending
            assert await take(engines[other], 2) == [b"1", b"2"]

    asyncio.run(asyncio.wait_for(story(), 20))


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (b"", "it is cut short"),
        (b"\x02\x02", "its version is 2, not 1"),
        (b"\x01\x09", "its kind is 9"),
        (encode_command(Append(Batch.of([b"2"]), None, 0))[:25], "it is cut short"),
    ],
)
def test_what_is_no_command_is_reported_and_reaches_no_replica(
    command: bytes, why: str, tmp_path: Path
) -> None:
    async def story() -> None:
        async with trio(tmp_path) as made:
            engines = {name: await made.open(name) for name in "abc"}
            await engines["a"].append(Batch.of([b"1"]))
            leader = next(name for name in "abc" if made.nodes[name].service.leads("orders"))
            service, other = made.nodes[leader].service, "b" if leader == "a" else "a"
            good = encode_command(Append(Batch.of([b"2"]), None, 0))
            call = calls.Proposal(1, service.streams["orders"].key, [good, command])
            service.receive(other, CALL + calls.encode(call))
            await engines["a"].append(Batch.of([b"3"]))
            assert [await take(engine, 2) for engine in engines.values()] == [[b"1", b"3"]] * 3
            assert all(node.service.streams["orders"].member for node in made.nodes.values())
            (text,) = [each for each in made.reports if "a malformed datagram" in each]
            assert text.startswith(f"container {other} sent a malformed datagram: this is not a")
            assert text.endswith(why)

    asyncio.run(asyncio.wait_for(story(), 20))


def test_results_of_something_else_are_reported_once_and_the_proposal_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with trio(tmp_path) as made:
            engines = {name: await made.open(name) for name in "abc"}
            await engines["a"].append(Batch.of([b"1"]))
            leader = next(name for name in "abc" if made.nodes[name].service.leads("orders"))
            other = engines["b" if leader == "a" else "a"]
            propose, asked = Member._propose, list[int]()

            def answer(
                member: Member, call: calls.Proposal, give: Callable[[Answer], object]
            ) -> None:
                if member._service.own == leader:
                    asked.append(call.number)
                    give(calls.Results(call.number, [7]))
                else:
                    propose(member, call, give)

            monkeypatch.setattr(Member, "_propose", answer)
            appending = asyncio.ensure_future(other.append(Batch.of([b"2"])))
            while len(asked) < 3:
                await asyncio.sleep(0.001)
            monkeypatch.undo()
            assert (await appending).first_offset == 1
            assert await take(other, 2) == [b"1", b"2"]
            text = f"stream orders: container {leader}: this is not an answer to these commands"
            assert len([each for each in made.reports if each.startswith(text)]) == 1

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
                while not service._call_tracker._asking:
                    await asyncio.sleep(0.001)
                ((number, asked),) = service._call_tracker._asking.items()
                service.receive(asked.to, CALL + calls.encode(calls.RoomIs(number, 1, "")))
                assert [each for each in made.reports if f"{asked.to} sent a malformed" in each]
                made.passes = lambda _from, _to: True
                await asking

    asyncio.run(asyncio.wait_for(story(), 20))


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        ([b"none"], "this is not a chunk: it is cut short"),
        ([chunk_of(1, b"2")], "this is not the records from offset 0 on: 1 come with offset 1"),
        ([chunk_of(0, b"1"), chunk_of(3, b"4")], "records from offset 1 on: 1 come with offset"),
        ([chunk_of(0)], "the records from offset 0 on: 0 come with offset 0"),
    ],
)
def test_records_that_are_none_are_reported_once_and_others_are_asked_for_them(
    sent: list[bytes], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with trio(tmp_path, "abcd") as made:
            engines = {name: await made.open(name) for name in "abcd"}
            await engines["a"].append(Batch.of([b"1"]))
            asked = list[str]()

            def answer(member: Member, call: calls.Read, give: Callable[[Answer], object]) -> None:
                asked.append(member._service.own)
                give(calls.Records(call.number, sent, 9))

            monkeypatch.setattr(Member, "_read", answer)
            reading = asyncio.ensure_future(engines["d"].read(0))
            while len(asked) < 6 and not reading.done():
                await asyncio.sleep(0.001)
            monkeypatch.undo()
            (chunk,) = await reading
            assert list(chunk.batch.records()) == [b"1"]
            told = sorted(each for each in made.reports if why in each)
            assert [each[: each.index(": this")] for each in told] == [
                f"stream orders: container {name}" for name in "abc"
            ]

    asyncio.run(asyncio.wait_for(story(), 20))
