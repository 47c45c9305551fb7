"""Everything that takes a URL takes several, and goes on at the next one."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

import cogwork
from cogwork.pipeline.arrow import ArrowClient

from .meshes import Member, linked, meshed
from .served import done, ran

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

IDS = ("a", "b", "c")
EDGES = (("a", "b"), ("b", "c"), ("c", "a"))
TIMEOUT_S = 90.0


@pytest.fixture
def members(tmp_path: Path) -> Iterator[dict[str, Member]]:
    def head(name: str) -> str:
        return f'data_dir = "{tmp_path / name}"\n[cluster]\nprimaries = ["a", "b", "c"]\n'

    with meshed(tmp_path, IDS, EDGES, head=head) as made:
        linked(made.values())
        made["a"].served.run("stream", "create", made["a"].url, "orders", "--engine", "raft")
        yield made


class Listener(cogwork.Cog):
    """Keeps what it is pushed."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies: list[bytes] = []

    def on_message(self, message: cogwork.cast.CanonicalMessage) -> None:
        self.bodies.append(message.body)


def test_a_broadcast_goes_on_when_its_container_dies(members: dict[str, Member]) -> None:
    urls = [each.url for each in members.values()]

    async def story() -> None:
        listener, late = Listener(), Listener()
        async with cogwork.broadcast(urls, "stream/orders") as cast:
            cast.add(listener)
            cast.send(b"1")
            await cast.sync()
            members["a"].kill()
            cast.send(b"2", b"3")
            cast.add(late)
            await cast.sync()
            assert listener.bodies == late.bodies == [b"1", b"2", b"3"]
            await asyncio.to_thread(members["a"].start)
            members["b"].kill()
            cast.send(b"4")
            await cast.sync()
        assert listener.bodies == late.bodies == [b"1", b"2", b"3", b"4"]

    asyncio.run(asyncio.wait_for(story(), TIMEOUT_S))


def test_a_broadcast_that_knows_one_container_waits_for_it(members: dict[str, Member]) -> None:
    async def story() -> None:
        listener = Listener()
        async with cogwork.broadcast(members["a"].url, "stream/orders") as cast:
            cast.add(listener)
            cast.send(b"1")
            await cast.sync()
            members["a"].kill()
            cast.send(b"2")
            waiting = asyncio.ensure_future(cast.sync())
            with pytest.raises(TimeoutError):  # the stream goes on, and nobody tells it where
                await asyncio.wait_for(asyncio.shield(waiting), 3)
            await asyncio.to_thread(members["a"].start)
            await waiting
            cast.send(b"3")
            await cast.sync()
        assert listener.bodies == [b"1", b"2", b"3"]

    asyncio.run(asyncio.wait_for(story(), TIMEOUT_S))


def test_all_others_take_the_first_that_answers(members: dict[str, Member]) -> None:
    members["a"].kill()
    urls = [members["a"].url, members["b"].url]
    with cogwork.sync.connect(urls) as mesh:
        mesh.stream("orders").append([b"1"])
    with ArrowClient(urls) as client:
        assert client.bounds("orders").next == 1
        assert client.streams() == ["orders"]

    both = ",".join(urls)
    assert json.loads(done("stream", "show", both, "orders", "--json").stdout)["next"] == 1
    assert json.loads(done("mesh", both, "--json").stdout)["id"] == "b"
    for changing in (("leave",), ("link", "add"), ("link", "remove")):
        words = (*changing, both) if changing == ("leave",) else (*changing, both, "127.0.0.1:1")
        refused = ran(*words)
        assert refused.returncode == 2
        assert "expected one URL, not several" in refused.stderr
