"""Streams that fail when it is their turn: each one's trouble, and nobody else's."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from replicas import take, trio

from cogwork.consensus.batch import Batch
from cogwork.consensus.errors import Unavailable, Unknown
from cogwork.consensus.replicated.member import Member

if TYPE_CHECKING:
    from pathlib import Path


def watch_faults() -> list[str]:
    """Gathers what the event loop is told of."""
    faults: list[str] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: faults.append(f"{context['message']}: {context['exception']}")
    )
    return faults


@pytest.mark.parametrize("what", ["next_call", "answered", "tick"])
def test_an_outbox_that_fails_is_emptied_and_told_of_and_the_others_go_on(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        faults = watch_faults()
        async with trio(tmp_path) as made:
            failing, other = await made.open("a"), await made.open("a", "others", 18)
            for name in "bc":
                await made.open(name)
                await made.open(name, "others", 18)
            await failing.append(Batch.of([b"1"]))
            await other.append(Batch.of([b"1"]))
            outbox = made.nodes["a"].service.streams["orders"].outbox

            def fail(*_: object) -> None:
                raise RuntimeError("it cannot")

            monkeypatch.setattr(outbox, what, fail)
            if what == "tick":  # which is for those that wait
                made.passes = lambda _from, _to: False
            lost = failing.append(Batch.of([b"2"]))
            sent = other.append(Batch.of([b"2"]))
            with pytest.raises((Unavailable, Unknown), match=r"fault in container a.*it cannot"):
                await asyncio.wait_for(lost, 5)
            made.passes = lambda _from, _to: True
            await asyncio.wait_for(sent, 10)
            text = "stream orders: what was to be appended is given up, by a fault"
            assert f"{text}: it cannot" in faults
            assert f"{text}: RuntimeError('it cannot')" in made.reports
            monkeypatch.undo()
            await asyncio.wait_for(failing.append(Batch.of([b"3"])), 10)
            assert (await take(failing, (await failing.bounds()).next))[-1] == b"3"

    asyncio.run(asyncio.wait_for(story(), 30))


def test_a_replica_that_fails_at_what_waits_stops_and_the_others_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        faults = watch_faults()
        async with trio(tmp_path, "abcd") as made:
            engines = {}
            for name in "abcd":
                engines[name] = await made.open(name), await made.open(name, "others", 18)
            for engine in engines["a"]:
                await engine.append(Batch.of([b"1"]))
            done = Member.wake_readers

            def fail(member: Member, now_s: float | None = None) -> None:
                if member.name == "orders" and now_s is not None:
                    raise RuntimeError("it cannot")
                done(member, now_s)

            monkeypatch.setattr(Member, "wake_readers", fail)
            readings = [
                asyncio.ensure_future(engine.read_or_wait(1, 1 << 20, 0.3))
                for engine in engines["d"]
            ]
            assert await asyncio.wait_for(readings[1], 5) == []
            assert any("stops until the container starts anew: it cannot" in f for f in faults)
            readings[0].cancel()

    asyncio.run(asyncio.wait_for(story(), 30))
