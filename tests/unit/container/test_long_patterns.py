"""Patterns of more words than a topic takes: refused, with nothing left of them."""

from __future__ import annotations

import pytest
from hosted import Hosted
from wires import Peer

from cogwork.amqp.errors import Condition
from cogwork.container.connections.requester import ClientRequester
from cogwork.container.management.view import View
from cogwork.nodes.topic import TopicNode
from cogwork.plugin.management import ManagementError
from cogwork.router.topics import MAX_PATTERN_WORDS

LONG = "topic/" + ".".join("w" for _ in range(MAX_PATTERN_WORDS + 1))


@pytest.fixture
def hosted() -> Hosted:
    return Hosted()


def test_a_subscriber_is_refused_and_told_the_limit(hosted: Hosted) -> None:
    peer = Peer(hosted).greet()
    refused = peer.consumer(LONG)
    assert refused.detached is not None
    assert refused.detached.error is not None
    assert refused.detached.error.condition == Condition.INVALID_FIELD
    assert f"at most {MAX_PATTERN_WORDS}" in str(refused.detached.error.description)
    node = hosted.container.vhosts[""].nodes["topic"]
    assert isinstance(node, TopicNode)
    assert node.subscribers == []
    assert hosted.container.links == {}
    assert peer.consumer("topic/short").detached is None


def test_a_pattern_that_is_bound_later_is_refused_too(hosted: Hosted) -> None:
    peer = Peer(hosted).greet()
    consumer = peer.consumer("topic/short", name="mine")
    view = View(hosted.container, hosted.container.vhosts[""])
    requester = ClientRequester(peer.connection)
    with pytest.raises(ManagementError, match=f"at most {MAX_PATTERN_WORDS}"):
        view.bind(requester, "mine", LONG)
    row = view.collections["link"].find("1")
    assert row is not None
    assert row["patterns"] == ["short"]
    assert consumer.detached is None
