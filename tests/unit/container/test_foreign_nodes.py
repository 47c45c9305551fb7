"""What a container does with a foreign node for each capability that the node has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import foreign_nodes
import pytest
from foreign_nodes import ForeignStream, PatternCopies, ResumableItems, TopicRecorder
from hosted import Hosted
from text_messages import message, text_of
from wires import Peer

from cogwork.amqp.terminus import ExpiryPolicy, Source
from cogwork.amqp.types import Described, Symbol
from cogwork.config.reading import parse
from cogwork.config.settings import Policy
from cogwork.container.vhost.virtual_hosts import VirtualHosts
from cogwork.plugin.capabilities import CAPABILITIES, Bindable, Storing
from cogwork.plugin.node_kinds import provides, serves_prefix

if TYPE_CHECKING:
    from wires.links import Consumer

CONFIGURATION = """
id = "hosted"

[[node]]
address = "kept/"
kind = "foreign_nodes:ResumableItems"

[[node]]
address = "local/"
kind = "foreign_nodes:LocalItems"

[[node]]
address = "queue/bounded"
kind = "foreign_nodes:BoundedItems"

[[node]]
address = "copies/"
kind = "foreign_nodes:PatternCopies"

[[node]]
address = "recorder"
kind = "foreign_nodes:TopicRecorder"
options = { topics = ["topic/news.#", "copies/news.#"] }

[[node]]
address = "tape"
kind = "foreign_nodes:ForeignStream"

[[node]]
address = "broken"
kind = "foreign_nodes:ForeignStream"
options = { is_broken = true }
"""


@pytest.fixture
def hosted() -> Hosted:
    return Hosted(parse(CONFIGURATION))


def fill(hosted: Hosted, address: str, *texts: str) -> None:
    publisher = Peer(hosted).greet().publisher(address)
    for text in texts:
        publisher.send(message(text))


def texts(consumer: Consumer) -> list[str]:
    return [text_of(each.body) for each in consumer.arrivals]


def test_each_capability_has_a_foreign_node() -> None:
    there = [each for each in vars(foreign_nodes).values() if isinstance(each, type)]
    ours = [each for each in there if each.__module__ == foreign_nodes.__name__]
    lacking = {
        each.__name__ for each in CAPABILITIES if not any(issubclass(its, each) for its in ours)
    }
    assert lacking == set()


@pytest.mark.parametrize(
    ("kind", "capability", "expected"),
    [
        ("queue", Storing, True),
        ("topic", Storing, False),
        ("topic", Bindable, True),
        ("foreign_nodes:SharedItems", Storing, True),
        ("foreign_nodes:CAPABILITIES", Storing, False),
        ("foreign_nodes:Nobody", Storing, False),
        ("direct", Storing, False),
        ("nobody", Storing, False),
    ],
)
def test_the_capabilities_of_a_kind_are_known_before_there_is_a_node(
    kind: str, capability: type, *, expected: bool
) -> None:
    assert provides(kind, capability) is expected


def test_a_foreign_kind_may_serve_a_prefix() -> None:
    assert serves_prefix("foreign_nodes:PatternCopies")
    assert not serves_prefix("foreign_nodes:LocalItems")


def test_a_policy_holds_for_a_foreign_node_that_can_be_governed(hosted: Hosted) -> None:
    nodes = hosted.container.vhosts[""].nodes
    nodes.policies.take([Policy(name="two", pattern="bounded", definition={"max-length": 2})])
    fill(hosted, "queue/bounded", *"abc")
    assert nodes.storing["queue/bounded"].store.depth == 2
    nodes.policies.take([])
    fill(hosted, "queue/bounded", *"de")
    assert texts(Peer(hosted).greet().consumer("queue/bounded", 10)) == list("bcde")


def test_items_wait_for_consumers_and_count_as_memory_of_queues(hosted: Hosted) -> None:
    fill(hosted, "local/a", *"abc")
    nodes = hosted.container.vhosts[""].nodes
    assert nodes.storing["local/a"].store.depth == 3
    assert texts(Peer(hosted).greet().consumer("local/a", 10)) == list("abc")


def test_items_that_a_consumer_left_in_order_go_to_the_next_one(hosted: Hosted) -> None:
    fill(hosted, "local/a", *"abc")
    first = Peer(hosted).greet().consumer("local/a", 2)
    assert texts(first) == ["a", "b"]
    first.detach()
    assert texts(Peer(hosted).greet().consumer("local/a", 10)) == list("abc")


def test_a_detached_link_keeps_what_it_holds_until_it_is_resumed(hosted: Hosted) -> None:
    fill(hosted, "kept/a", *"abcde")
    source = Source(address="kept/a", expiry_policy=ExpiryPolicy.SESSION_END, timeout=60)
    first = Peer(hosted).greet().consumer("kept/a", 3, source=source, name="l")
    first.detach(closed=False)
    other = Peer(hosted).greet().consumer("kept/a", 10)
    assert texts(other) == ["d", "e"]
    tag = first.arrivals[1].tag
    again = first.channel.consumer("kept/a", 1, name="l", unsettled={tag: None})
    assert [each.tag for each in again.arrivals] == [tag]
    node = hosted.container.vhosts[""].nodes["kept/a"]
    assert isinstance(node, ResumableItems)
    assert texts(other) == ["d", "e", "a", "c"]


def test_a_virtual_host_that_ends_deletes_what_is_kept_in_it() -> None:
    hosted = Hosted(parse(CONFIGURATION))
    fill(hosted, "kept/a", "a")
    node = hosted.container.vhosts[""].nodes["kept/a"]
    assert isinstance(node, ResumableItems)
    vhosts = VirtualHosts(lambda _name, _plan: hosted.container.vhosts[""])
    vhosts.by_name = hosted.container.vhosts
    vhosts.end("")
    assert node.store.depth == 0


def test_copies_go_to_those_with_a_pattern(hosted: Hosted) -> None:
    subscriber = Peer(hosted).greet().consumer("copies/news.*", 10)
    fill(hosted, "copies/news.a", "a")
    fill(hosted, "copies/other", "b")
    assert texts(subscriber) == ["a"]
    node = hosted.container.vhosts[""].nodes["copies"]
    assert isinstance(node, PatternCopies)
    (link,) = node.subscribers
    assert node.patterns_of(link) == ["news.*"]


def test_a_recorder_gets_what_is_published_to_topics_of_any_make(hosted: Hosted) -> None:
    Peer(hosted).greet().consumer("recorder", 1)
    fill(hosted, "topic/news.a", "a")
    fill(hosted, "topic/other", "b")
    fill(hosted, "copies/news.c", "c")
    node = hosted.container.vhosts[""].nodes["recorder"]
    assert isinstance(node, TopicRecorder)
    assert node.status()["messages"] == 2
    hosted.container.vhosts[""].remove_node("recorder")
    fill(hosted, "topic/news.a", "a")
    assert node.status()["messages"] == 2


def test_a_stream_says_which_filters_it_knows(hosted: Hosted) -> None:
    filters: dict[Symbol, object] = {Symbol("f"): Described(ForeignStream.START, "first")}
    source = Source(address="tape", filter=filters)
    consumer = Peer(hosted).greet().consumer("tape", 1, source=source)
    assert consumer.attach is not None
    assert consumer.attach.source is not None
    assert consumer.attach.source.filter == filters


def test_a_stream_that_never_opens_refuses_senders(hosted: Hosted) -> None:
    publisher = Peer(hosted).greet().publisher("broken")
    assert publisher.detached is not None
    assert publisher.detached.error is not None
    assert publisher.detached.error.description == "it is broken"


def test_streams_give_back_what_waits_and_are_let_go(
    hosted: Hosted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ForeignStream, "asked", [])
    Peer(hosted).greet().consumer("tape", 1)
    vhost = hosted.container.vhosts[""]
    vhost.give_back()
    vhost.close_streams()
    assert ForeignStream.asked == ["give back"]
    assert "tape" not in vhost.nodes
