"""How many patterns a subscriber may have."""

from __future__ import annotations

import pytest
from hosted import Hosted
from wires import Peer

from cogwork.nodes import topic
from cogwork.nodes.topic import TopicNode
from cogwork.plugin.node import Refused


def test_the_patterns_of_a_subscriber_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic, "PATTERNS_MAX", 2)
    hosted = Hosted()
    Peer(hosted).greet().consumer("topic/a")
    (link,) = hosted.container.links.values()
    node = hosted.container.vhosts[""].nodes["topic"]
    assert isinstance(node, TopicNode)
    assert link.end is not None
    assert node.bind(link.end, b"b.#")
    with pytest.raises(Refused, match="2 patterns of a subscriber are the limit"):
        node.bind(link.end, b"c")
    assert not node.bind(link.end, b"b.#"), "it has that one"
    assert node.unbind(link.end, b"a")
    assert node.bind(link.end, b"c")
