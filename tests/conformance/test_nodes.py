"""Every built-in node, and the example's, pass the kit that foreign ones are held to."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, ParamSpec, TypeVar

import pytest
from foreign_nodes import (
    ForeignStream,
    LocalItems,
    OwnedItems,
    PartitionedItems,
    PatternCopies,
    ResumableItems,
    SharedItems,
    TopicRecorder,
)

from cogwork import Message
from cogwork.container.vhost.engines import EngineHosts, VhostEngines
from cogwork.nodes.sink import SinkNode
from cogwork.nodes.stream import StreamNode
from cogwork.nodes.topic import TopicNode
from cogwork.plugin import MessageNode, NodeContext
from cogwork.plugin.conformance.nodes import NodeConformance
from cogwork.plugin.loopback import Loopback

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from word_counter import WordCounter  # type: ignore[import-not-found]  # it lies in that folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.amqp.terminus import Source
    from cogwork.dataplane.addresses.entry import AddressEntry
    from cogwork.dataplane.transport.outgoing import OutgoingLink

P = ParamSpec("P")
T = TypeVar("T")


class TestSink(NodeConformance):
    factory = SinkNode
    can_receive = False


class TestTopic(NodeConformance):
    factory = TopicNode
    address = "topic/under.test"

    def loopback(self) -> Loopback:
        return Loopback(lambda context: TopicNode(_below(context, "topic")), self.address)


class TestMessageNode(NodeConformance):
    factory = MessageNode


class Turning(Loopback):
    """A node that needs an event loop: it turns after each step."""

    def __init__(self, address: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._inside(super().__init__, lambda context: StreamNode(_kept(context)), address)

    def _inside(self, step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        async def turn() -> T:
            result = step(*args, **kwargs)
            for _ in range(10):
                await asyncio.sleep(0)
                self.core.flush()
            return result

        return self._loop.run_until_complete(turn())

    def send(self, count: int, body: object = "x", entry: AddressEntry | None = None) -> list[int]:
        return self._inside(super().send, count, body, entry)

    def receive(self, credit: int, source: Source | None = None) -> OutgoingLink:
        return self._inside(super().receive, credit, source)

    def leave(self, link: OutgoingLink) -> None:
        if self._loop.is_running():
            super().leave(link)
        else:
            self._inside(super().leave, link)

    def run(self, ticks: int) -> None:
        self._inside(super().run, ticks)

    def close(self) -> None:
        self._inside(super().close)
        self._loop.close()


class TestStream(NodeConformance):
    factory = StreamNode
    address = "stream/under-test"

    def loopback(self) -> Loopback:
        return Turning(self.address)


class TestWordCounter(NodeConformance):
    factory = WordCounter


class TestLocalItems(NodeConformance):
    factory = LocalItems


class TestResumableItems(NodeConformance):
    factory = ResumableItems


class TestSharedItems(NodeConformance):
    factory = SharedItems


class TestPartitionedItems(NodeConformance):
    factory = PartitionedItems


class TestOwnedItems(NodeConformance):
    factory = OwnedItems
    options: ClassVar = {"owner": "here"}


class TestPatternCopies(NodeConformance):
    factory = PatternCopies
    address = "copies/under.test"

    def loopback(self) -> Loopback:
        return Loopback(lambda context: PatternCopies(_below(context, "copies")), self.address)


class TestTopicRecorder(NodeConformance):
    factory = TopicRecorder


class TestForeignStream(NodeConformance):
    factory = ForeignStream


def _kept(context: NodeContext) -> NodeContext:
    return replace(context, options={"engine": "orb"}, engines=VhostEngines(EngineHosts("x"), ""))


def _below(context: NodeContext, prefix: str) -> NodeContext:
    return replace(context, address=prefix, is_prefix=True)


def test_the_example_counts_words() -> None:
    with Loopback(WordCounter, "words", {"top": 1}) as loop:
        receiver = loop.receive(credit=5)
        loop.send(2, "to be or not to be to")
        assert receiver.deliveries >= 1
        assert loop.outcomes == [0, 1]


def test_a_message_that_the_node_cannot_work_on_is_rejected_alone() -> None:
    with Loopback(WordCounter, "words") as loop:
        loop.send(1, 42)
        loop.send(1, Message("fine"))
        assert loop.outcomes == [0, 1]
        assert any("TypeError" in report for report in loop.reports)


@pytest.mark.parametrize("kit", NodeConformance.__subclasses__())
def test_the_kit_is_not_empty(kit: type[NodeConformance]) -> None:
    assert len([name for name in dir(kit) if name.startswith("test_")]) >= 6
