"""Every built-in node, and the example's, pass the kit that foreign ones are held to."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cogwork import Message
from cogwork.nodes.sink import SinkNode
from cogwork.nodes.topic import TopicNode
from cogwork.spi import MessageNode, NodeContext
from cogwork.spi.conformance import NodeConformance
from cogwork.spi.loopback import Loopback

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from word_counter import WordCounter  # from the folder named just above


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


class TestWordCounter(NodeConformance):
    factory = WordCounter


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


@pytest.mark.parametrize("kit", [TestSink, TestTopic, TestMessageNode, TestWordCounter])
def test_the_kit_is_not_empty(kit: type[NodeConformance]) -> None:
    assert len([name for name in dir(kit) if name.startswith("test_")]) >= 6
