"""What is noted of containers that were given up, and what they are told of it."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from hosted import Hosted
from wires import Broker, Peer

from cogwork.container.mesh import subscriber_gaps
from cogwork.container.mesh.subscriber_gaps import SubscriberGaps, read_gaps
from cogwork.nodes.topic import TopicNode

if TYPE_CHECKING:
    from wires import Publisher

    from cogwork.dataplane.terminus import Terminus


class Mesh:
    """As much of the mesh as the notes look at: containers and their lives."""

    def __init__(self, broker: Broker) -> None:
        self.core = broker.core
        self.lives: dict[str, int] = {"b": 7}
        self.mesh = SimpleNamespace(
            database=SimpleNamespace(records=self.lives),
            life_of=lambda container: self.lives.get(container, 0),
            known_for_s=lambda container, _now_s: 2.0 if container in self.lives else 0.0,
        )


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def mesh(broker: Broker) -> Mesh:
    return Mesh(broker)


@pytest.fixture
def notes(mesh: Mesh) -> SubscriberGaps:
    found = SubscriberGaps(mesh)  # type: ignore[arg-type]  # it needs no more
    found.know("b")
    return found


def miss(
    broker: Broker, notes: SubscriberGaps, publisher: Publisher, address: str, count: int = 1
) -> None:
    """Have a container given up, some messages go by, and take it back."""
    outlet = notes.give_up("b", address)
    broker.entry("all/a").add_outlet(outlet)
    for _ in range(count):
        publisher.send()
    assert notes.take_back("b", address) is outlet
    broker.entry("all/a").remove_outlet(outlet)


@pytest.fixture
def publisher(broker: Broker) -> Publisher:
    return broker.peer().publisher("all/a")


def test_only_what_went_by_is_told_and_once(
    broker: Broker, notes: SubscriberGaps, publisher: Publisher
) -> None:
    miss(broker, notes, publisher, "topic/quiet", 0)
    assert notes.report("b") is None
    miss(broker, notes, publisher, "topic/a", 2)
    report = notes.report("b")
    assert report is not None
    assert report.said.keys() == {"topic/a"}
    assert 0 <= report.said["topic/a"] <= 1000 * time.monotonic()
    again = notes.report("b")
    assert again is not None, "it is told until it is answered"
    assert (again.said.keys(), again.until_s) == (report.said.keys(), report.until_s)
    assert again.said["topic/a"] >= report.said["topic/a"], "it is longer ago by now"
    notes.told("b", report)
    assert notes.report("b") is None
    assert notes.take_back("b", "topic/a") is None


def test_what_is_missed_after_a_report_is_in_the_next_one(
    broker: Broker, notes: SubscriberGaps, publisher: Publisher
) -> None:
    miss(broker, notes, publisher, "topic/a")
    report = notes.report("b")
    assert report is not None
    broker.core.tick()
    miss(broker, notes, publisher, "topic/a")
    miss(broker, notes, publisher, "topic/b")
    notes.told("b", report)
    later = notes.report("b")
    assert later is not None
    assert later.said.keys() == {"topic/a", "topic/b"}


def test_another_life_has_missed_nothing(
    broker: Broker, mesh: Mesh, notes: SubscriberGaps, publisher: Publisher
) -> None:
    miss(broker, notes, publisher, "topic/a")
    mesh.lives["b"] = 8
    assert notes.report("b") is None
    mesh.lives["b"] = 7
    assert notes.report("b") is None


def test_who_was_forgotten_has_missed_everything_until_it_is_known_again(
    mesh: Mesh, notes: SubscriberGaps
) -> None:
    del mesh.lives["b"]
    notes.forget("b")
    notes.sweep()
    mesh.lives["b"] = 7
    notes.know("b")
    report = notes.report("b")
    assert report is not None
    assert report.said == {"": 2000}
    notes.told("b", report)
    assert notes.report("b") is None


def test_what_does_not_fit_into_an_attach_is_everything(
    broker: Broker, notes: SubscriberGaps, publisher: Publisher
) -> None:
    for number in range(5):
        miss(broker, notes, publisher, f"topic/{number}" + "x" * 2000)
    report = notes.report("b")
    assert report is not None
    assert list(report.said) == [""]


def test_the_notes_are_bounded(
    broker: Broker, mesh: Mesh, notes: SubscriberGaps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriber_gaps, "NOTES_MAX", 3)
    for name in "bcdef":
        mesh.lives[name] = 1
        notes.know(name)
        notes.forget(name)
    told = {name for name in "bcdef" if notes.report(name) is not None}
    assert told == set("def")


@pytest.mark.parametrize("said", [None, 5, [], {"topic/a": "soon"}, {"topic/a": -1}])
def test_nonsense_is_nothing(said: object) -> None:
    assert read_gaps(said) == {}


def test_a_report_is_read_in_seconds() -> None:
    assert read_gaps({"topic/a": 1500, "": 0}) == {"topic/a": 1.5, "": 0.0}


def test_each_subscriber_is_looked_at_once_however_much_was_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hosted = Hosted()
    vhost = hosted.container.vhosts[""]
    lost = [peer_of(hosted).consumer(f"topic/lost.{number}") for number in range(20)]
    kept = [peer_of(hosted).consumer(f"topic/kept.{number}") for number in range(20)]
    direct = peer_of(hosted).consumer("broadcast/a")
    looks: list[object] = []
    patterns_of = TopicNode.patterns_of

    def counted(node: TopicNode, link: Terminus) -> list[str]:
        looks.append(link)
        return patterns_of(node, link)

    monkeypatch.setattr(TopicNode, "patterns_of", counted)
    said = {f"topic/lost.{number}": 0.0 for number in range(20)}
    subscriber_gaps.detach_stale_subscribers(
        vhost, "b", said | {"broadcast/a": 0.0, "topic/nobody": 0.0}
    )
    hosted.settle_down()
    assert all(each.detached is not None for each in (*lost, direct))
    assert all(each.detached is None for each in kept)
    assert len(looks) <= 40
    subscriber_gaps.detach_stale_subscribers(vhost, "b", {"": 3600.0, "topic/kept.1": 0.0})
    hosted.settle_down()
    assert [each.detached is not None for each in kept] == [number == 1 for number in range(20)]
    subscriber_gaps.detach_stale_subscribers(vhost, "b", {"": 0.0, "topic/kept.2": 3600.0})
    hosted.settle_down()
    assert all(each.detached is not None for each in kept)


def peer_of(hosted: Hosted) -> Peer:
    return Peer(hosted).greet()
