"""Streams by `$management`: made where others make them, too."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from management_world import Asker, Table

from cogwork.amqp.message import Sections, Value
from cogwork.nodes.management.request import Request
from cogwork.nodes.management.streams import Streams
from cogwork.plugin.management import ManagementError

if TYPE_CHECKING:
    from collections.abc import Generator

    from cogwork.nodes.management.request import Reply
    from cogwork.plugin.management import ContainerView

    Steps = Generator[bool, None, Reply]


class Box:
    """A container whose streams come and go as its cluster says."""

    knows_declarations = True

    def __init__(self) -> None:
        self.own = SimpleNamespace(state="opening", problem=None)
        self.there: SimpleNamespace | None = self.own
        self.collections = {"stream": Table(["stream/orders"])}

    def stream(self, _address: str) -> SimpleNamespace | None:
        return self.there

    def declare_stream(self, *_asked: object) -> bool:
        return True

    def delete_stream(self, address: str) -> None:
        raise AssertionError(f"{address} is another container's")

    abandon_stream = delete_stream

    def demand_majority(self) -> None:
        """It has one."""

    def begin(self, _work: object) -> Future[bool]:
        done: Future[bool] = Future()
        done.set_result(False)
        return done


class Alone(Box):
    """A container whose stream its cluster gives up."""

    def abandon_stream(self, address: str) -> None:
        """It is no more."""


def test_what_cannot_be_opened_is_refused_though_it_is_no_more() -> None:
    box = Alone()
    steps: Steps = Streams(cast("ContainerView", box))._create("stream/orders", {}, Asker())
    next(steps)
    box.own.state, box.own.problem = "failed", "it has no option 'a'"
    box.there = None
    with pytest.raises(ManagementError, match="it has no option 'a'"):
        ended(steps)


def test_what_was_there_and_is_given_up_meanwhile_is_said_to_be() -> None:
    box = Box()
    box.there = None
    box.collections = {"stream": Table([])}
    with pytest.raises(ManagementError, match="was given up meanwhile"):
        ended(Streams(cast("ContainerView", box))._create("stream/orders", {}, Asker()))


def test_what_another_container_declared_first_is_left_to_it() -> None:
    box = Box()
    steps: Steps = Streams(cast("ContainerView", box))._create("stream/orders", {}, Asker())
    next(steps)
    box.own.state = "failed"  # it was closed, as it had to make way
    box.there = other = SimpleNamespace(state="opening", problem=None)
    next(steps)
    other.state = "open"
    assert ended(steps).status == 200


@pytest.mark.parametrize(
    "rights",
    [
        {("manage", "stream/orders"), ("receive", "topic/a")},
        {("manage", "$management")},
    ],
)
def test_who_may_receive_from_topics_may_capture_them(rights: set[tuple[str, str]]) -> None:
    box = Box()
    box.own.state = "open"
    request = Request(
        Sections(
            application_properties={"operation": "CREATE", "name": "stream/orders"},
            body=Value({"capture": ["topic/a"]}),
        )
    )
    steps = Streams(cast("ContainerView", box)).create(request, Asker(*rights))
    assert ended(steps).status == 201


def ended(steps: Steps) -> Reply:
    try:
        while True:
            next(steps)
    except StopIteration as end:
        return cast("Reply", end.value)
