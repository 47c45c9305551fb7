"""When time passes at the nodes of a virtual host."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar, cast

from hosted import LISTEN, Hosted
from text_messages import message

from cogwork.config.settings import Configuration, Stream
from cogwork.nodes.queue import QueueNode
from cogwork.nodes.stream import StreamNode
from cogwork.plugin.effects import Report

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

    from cogwork.plugin.effects import Effect

STREAMS, SECONDS = 40, 6


def test_a_stream_is_looked_at_once_a_second_and_not_all_of_them_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        configured = [Stream(address=f"stream/{number}") for number in range(STREAMS)]
        hosted = Hosted(Configuration(id="hosted", listeners=[LISTEN], streams=configured))
        nodes = hosted.container.vhosts[""].nodes
        streams = [node for node in nodes.values() if isinstance(node, StreamNode)]
        assert len(streams) == STREAMS
        while any(stream.engine is None for stream in streams):
            await asyncio.sleep(0)
        ticked = Counter[tuple[int, str]]()
        done = StreamNode.tick

        def tick(stream: StreamNode, now_s: float) -> Iterable[Effect]:
            ticked[turn, stream.address] += 1
            return done(stream, now_s)

        monkeypatch.setattr(StreamNode, "tick", tick)
        for turn in range(SECONDS * 10):
            for stream in streams:
                stream.is_idle = False  # as with each record that comes
            assert list(nodes.tick(hosted.core.now + turn / 10)) == []
            await asyncio.sleep(0)
        for stream in streams:
            times = sum(address == stream.address for _, address in ticked)
            assert SECONDS - 1 <= times <= SECONDS + 1
        at_once = Counter(turn for turn, _ in ticked)
        assert at_once.pop(0) == STREAMS
        assert max(at_once.values()) < STREAMS / 2
        for stream in streams:
            stream.close()

    asyncio.run(asyncio.wait_for(story(), 10))


def test_a_node_that_says_when_it_is_due_gets_no_tick_before() -> None:
    class Punctual:
        due_s = 7.0

        def __init__(self) -> None:
            self.ticks: list[float] = []

        def tick(self, now_s: float) -> Iterable[Effect]:
            self.ticks.append(now_s)
            return ()

    nodes, node = Hosted().container.vhosts[""].nodes, Punctual()
    nodes["x"] = cast("Any", node)
    for now_s in (6.9, 7.0, 7.1):
        assert list(nodes.tick(now_s)) == []
    assert node.ticks == [7.0, 7.1]


def test_what_is_wrong_with_a_node_is_told_once_until_it_is_over_or_something_else() -> None:
    class Failing:
        errors: ClassVar[list[Exception | None]] = []

        def tick(self, now_s: float) -> Iterable[Effect]:
            if (error := self.errors.pop(0)) is not None:
                raise error
            return ()

    nodes, node = Hosted().container.vhosts[""].nodes, Failing()
    nodes["x"] = cast("Any", node)
    bad, worse = ValueError("bad"), ValueError("worse")
    node.errors[:] = [bad, bad, worse, worse, None, worse]
    told = [list(nodes.tick(now_s)) for now_s in range(6)]
    assert [len(each) for each in told] == [1, 0, 1, 0, 0, 1]
    assert told[0] == [Report("the node at 'x' failed: ValueError('bad')", is_error=True)]


def test_queues_at_which_time_changes_nothing_get_no_ticks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hosted = Hosted()
    vhost, ticked = hosted.container.vhosts[""], list[str]()
    assert vhost.view is not None
    vhost.view.declare_queue("plain", {})
    vhost.view.declare_queue("short", {"ttl_s": 3600.0})

    def tick(queue: QueueNode, _now_s: float) -> Iterable[Effect]:
        ticked.append(queue.address)
        return ()

    monkeypatch.setattr(QueueNode, "tick", tick)
    list(vhost.nodes.tick(hosted.core.now))
    for address in ("plain", "short"):
        queue = vhost.nodes[address]
        assert isinstance(queue, QueueNode)
        assert queue.store.put(message("x"))
    list(vhost.nodes.tick(hosted.core.now))
    assert ticked == ["short"]
    vhost.remove_node("short")
    list(vhost.nodes.tick(hosted.core.now))
    assert ticked == ["short"]
