"""A mandatory message waits for what the cluster has, if it has no route by what is known here."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from cogwork.amqp091.content import BasicProperties, Content
from cogwork.amqp091.methods import BasicPublish
from cogwork.container.amqp091.mandatory_publishing import catching_up
from cogwork.router.exchanges.forwards import Forward, ForwardRoute
from cogwork.router.exchanges.graph import Route

if TYPE_CHECKING:
    from cogwork.container.amqp091.channel import Channel

CONTENT = Content.of(BasicProperties(), b"body")


class Here:
    """What a channel is asked: its exchanges, and its cluster."""

    def __init__(self, route: Route, why: str = "") -> None:
        self.found, self.why, self.asked, self.published = route, why, 0, 0
        exchanges = SimpleNamespace(
            route=lambda _name, _message: self.found, leads_to=lambda queue: queue == "there"
        )
        topology = SimpleNamespace(is_active=True, catch_up=self.catch_up)
        self.vhost = SimpleNamespace(exchanges=exchanges, topology=topology)
        self.queues = SimpleNamespace(unanswered_until_s=0.0)

    async def catch_up(self) -> str:
        self.asked += 1
        return self.why

    def publish(self, exchange: str = "e", key: str = "k") -> bool:
        """Publish; return whether it had to wait."""
        method = BasicPublish(exchange=exchange, routing_key=key, mandatory=True)
        work = catching_up(cast("Channel", self), method, CONTENT, self.note)
        if work is None:
            return False
        asyncio.run(work)
        return True

    def note(self) -> None:
        self.published += 1


def test_what_has_a_route_is_published_at_once() -> None:
    for route in (
        Route(("there",), True),
        Route((), True, (Forward("b", ForwardRoute(("e",))),)),
    ):
        assert not Here(route).publish()
    reply = "amq.rabbitmq.reply-to._reply/a.1/token"
    assert not Here(Route((reply,), True)).publish("", reply)


def test_what_has_none_is_published_once_the_cluster_has_said_what_there_is() -> None:
    for route in (Route((), True), Route(("gone",), True)):
        here = Here(route)
        assert here.publish()
        assert (here.asked, here.published) == (1, 1)
        assert here.publish()
        assert (here.asked, here.published) == (2, 2)


def test_a_cluster_that_does_not_answer_is_not_asked_again_for_a_while() -> None:
    here = Here(Route((), True), "no majority")
    assert here.publish()
    assert not here.publish()
    assert here.asked == 1
