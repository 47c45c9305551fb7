"""Links of upstreams that end while others take their places."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import Mock

import pytest

from cogwork.amqp.errors import AmqpError
from cogwork.amqp.extensions import CONSUMER_LOST
from cogwork.amqp.performatives import Role
from cogwork.amqp.states import LinkState
from cogwork.amqp.terminus import Source
from cogwork.container.federation.queue_federation import UNHEARD_S, QueueFederation
from cogwork.container.federation.remote_consumer import RemoteConsumer
from cogwork.container.federation.upstreams import OWNER, Upstream
from cogwork.dataplane.link import Ending, Link
from cogwork.plugin.node import Departure

if TYPE_CHECKING:
    from cogwork.amqp.types import Symbol

TAG = b"what the consumer has"


class Consuming:
    """A consumer and its side of upstreams, which takes note of what it is told.

    Attributes:
        told: Loans that were added or taken out, and tags that were said to be over.
        upstreams: By the shard's container.
    """

    def __init__(self) -> None:
        self.told: list[object] = []
        self.upstreams: dict[str, Upstream] = {}
        self.federated = self
        self.expected: dict[bytes, str] = {}
        self.cut_off: dict[str, float] = {}
        self.fetched = None

    def add(self, end: object) -> None:
        self.told.append(end)

    remove = add

    def close_tag(self, tag: bytes, code: int, state: bytes | None = None) -> None:
        del code, state
        self.told.append(tag)

    def open_upstream(self) -> Upstream:
        """Open an upstream from the queue's owner; the last one counts."""
        consumer: Any = self
        queue_federation: Any = SimpleNamespace(
            lost=int, answered=lambda _consumer, _container: None
        )
        end: Any = SimpleNamespace(detached=False, deliveries=0)
        upstream = self.upstreams[OWNER] = Upstream(
            queue_federation, consumer, OWNER, "a", end, [TAG]
        )
        return upstream


ANSWERED: Any = SimpleNamespace(
    remote=SimpleNamespace(source=Source(), unsettled=None), state=LinkState.ATTACHED
)
LOST: Any = SimpleNamespace(remote=None, state=LinkState.DETACHED)


def test_the_end_of_an_earlier_upstream_leaves_the_next_one_in_its_place() -> None:
    consumer = Consuming()
    earlier, later = consumer.open_upstream(), consumer.open_upstream()
    earlier.stopping(ANSWERED)
    assert consumer.upstreams == {OWNER: later}
    later.stopping(ANSWERED)
    assert consumer.upstreams == {}
    assert consumer.told == [earlier.end, later.end]


def test_the_shard_of_a_upstream_that_ended_with_its_session_is_cut_off_until_it_answers() -> None:
    consumer = Consuming()
    consumer.open_upstream().stopping(ANSWERED)
    assert not consumer.cut_off
    consumer.open_upstream().stopping(LOST)
    assert list(consumer.cut_off) == [OWNER]
    consumer.open_upstream().attached(ANSWERED)
    assert not consumer.cut_off


def test_what_a_shard_answers_on_a_upstream_that_has_ended_says_nothing() -> None:
    consumer = Consuming()
    upstream = consumer.open_upstream()
    end: Any = upstream.end
    end.detached = True
    upstream.attached(ANSWERED)
    assert consumer.told == []
    upstream = consumer.open_upstream()
    upstream.attached(ANSWERED)
    assert consumer.told == [TAG, upstream.end]


@pytest.mark.parametrize(
    ("state", "ending", "error", "is_cut_off", "departure"),
    [
        (LinkState.DETACHED, Ending.LOST, None, True, Departure.LOST),
        (LinkState.DETACHED, Ending.SESSION_ENDED, None, True, Departure.LOST),
        (LinkState.DETACH_RCVD, Ending.DETACHED, None, True, Departure.LOST),
        (LinkState.DETACH_RCVD, Ending.CLOSED, None, False, Departure.ORDERLY),
        (LinkState.DETACH_RCVD, Ending.CLOSED, CONSUMER_LOST, False, Departure.LOST),
        (LinkState.DETACH_SENT, Ending.LOST, None, False, Departure.LOST),
    ],
)
def test_a_shard_gives_back_what_a_consumer_has_only_if_its_container_says_that_it_left_in_order(
    state: LinkState,
    ending: Ending,
    error: Symbol | None,
    is_cut_off: bool,
    departure: Departure,
) -> None:
    gone: list[object] = []
    node: Any = SimpleNamespace(unsubscribe=gone.append)
    subscription: Any = SimpleNamespace(is_cut_off=False, departure=Departure.LOST)
    link = Link(Mock(), "upstream", Role.SENDER, 0)
    link.state, link.ending, link.was_left = state, ending, ending is Ending.DETACHED
    link.end_error = None if error is None else AmqpError(condition=error)
    RemoteConsumer(node, subscription, link, is_active=True).stopping(link)
    assert gone == [subscription]
    assert subscription.is_cut_off is is_cut_off
    assert subscription.departure is departure


class Kept:
    """What a consumer has of containers without an upstream, all of it settled."""

    def __init__(self, *containers: str) -> None:
        self.kept = list(containers)

    def containers(self) -> list[str]:
        return self.kept

    def forget_settled(self, container: str) -> None:
        self.kept = [each for each in self.kept if each != container]


def test_each_container_that_has_not_heard_has_a_minute_of_its_own() -> None:
    kept = Kept("gone", "reopened")
    consumer: Any = SimpleNamespace(federated=kept, upstreams={"reopened": None}, unheard={})
    end_unheard = partial(QueueFederation._end_unheard, cast("Any", None), consumer)
    end_unheard(0.0)
    kept.kept.append("late")
    end_unheard(UNHEARD_S - 1)
    end_unheard(UNHEARD_S + 1)
    assert kept.kept == ["reopened", "late"], "one is back, and one has not been away for long"
    end_unheard(2 * UNHEARD_S + 1)
    assert kept.kept == ["reopened"]
