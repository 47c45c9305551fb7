"""What nobody takes goes to the dead-letter address, where there is one, with the reason."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from proton import Delivery, Message
from proton.utils import BlockingConnection, LinkDetached

import cogwork
from cogwork import testing

from .linked import linked
from .stories import story

CONFIGURATION = """
[[address]]
prefix = "topic"
dead_letter = "queue/dead"

[[address]]
prefix = "anycast"
dead_letter = "queue/dead"
"""


@pytest.mark.parametrize("address", ["topic/nobody.here", "anycast/nobody"])
def test_an_unroutable_message_is_found_among_the_dead(address: str) -> None:
    async def story(url: str) -> cogwork.Item:
        async with cogwork.connect(url) as mesh:
            await mesh.publish(address, "lost?")
            async with mesh.consume("queue/dead") as items:
                item = await asyncio.wait_for(anext(items), 5)
                await item.accept()
                return item

    with testing.container(CONFIGURATION) as url:
        item = asyncio.run(story(url))
    assert item.body == "lost?"
    assert item.annotations["x-opt-dead-letter-reason"] == "unroutable"
    assert item.annotations["x-opt-dead-letter-source"] == address


def test_without_a_dead_letter_address_it_is_given_back() -> None:
    async def story(url: str) -> None:
        async with cogwork.connect(url) as mesh:
            await mesh.publish("anycast/nobody", "lost?")

    with testing.container() as url, pytest.raises(cogwork.CogworkError):
        asyncio.run(story(url))


ROUTES: dict[str | None, str | None] = {
    None: "amqp:invalid-field",
    "": "amqp:invalid-field",
    "stream/nope": "amqp:not-found",
    "$nothing/x": "amqp:not-found",
    "$management/x": "amqp:not-found",
    "exchange/e": "amqp:not-found",
    "topic/a.*": "amqp:not-allowed",
    "closed/a": "amqp:not-found",
    "queue/secret": "amqp:unauthorized-access",
    "topic/secret": "amqp:unauthorized-access",
    "plain": None,
    "anycast/nobody": None,
    "_reply/gone": None,
}
"""Addresses that lead nowhere, and why; None where there is just nobody now."""

GUARDED = """
[[address]]
prefix = "closed"
kind = "unavailable"

[anonymous]
permissions = [
    { address = "closed/#", rights = ["send"] },
    { address = "x/#", rights = ["send"] },
    { address = "topic/a.#", rights = ["send"] },
    { address = "*", rights = ["send"] },
    { address = "stream/#", rights = ["send"] },
    { address = "$nothing/#", rights = ["send"] },
    { address = "$management/#", rights = ["send"] },
    { address = "exchange/#", rights = ["send"] },
    { address = "anycast/#", rights = ["send"] },
    { address = "_reply/#", rights = ["send"] },
]
mesh = true
"""


class Relay:
    """A stock client's link to the null target."""

    def __init__(self, url: str) -> None:
        self.bus = BlockingConnection(url, timeout=30)
        self._sender = self.bus.create_sender(None)

    def outcome(self, to: str | None, size_bytes: int = 1) -> tuple[int, str | None, str | None]:
        """Send a message; return its outcome, and the condition and description of a rejection."""
        link = self._sender.link
        delivery: Any = link.send(Message(address=to, body=b"x" * size_bytes))
        self.bus.wait(lambda: delivery.remote_state != 0)
        condition = delivery.remote.condition
        state = delivery.remote_state
        delivery.settle()
        if condition is None:
            return state, None, None
        return state, condition.name, condition.description

    def refusal(self, to: str) -> tuple[str, str] | None:
        """Attach a link to an address; return condition and description where it is refused."""
        try:
            self.bus.create_sender(to, name=f"probe of {to[:20]}").close()
        except LinkDetached:
            (link,) = [
                each for each in _links(self.bus) if each.name.startswith(f"probe of {to[:20]}")
            ]
            condition = link.remote_condition
            return condition.name, condition.description
        return None


def _links(bus: BlockingConnection) -> list[Any]:
    connection: Any = bus.conn
    link, found = connection.link_head(0), []
    while link is not None:
        found.append(link)
        link = link.next(0)
    return found


@pytest.mark.parametrize("size_bytes", [1, 200_000], ids=["whole", "in frames"])
def test_the_relay_says_what_an_attach_would_have_been_told(size_bytes: int) -> None:
    with testing.container(GUARDED) as url:
        relay = Relay(url)
        for to, expected in ROUTES.items():
            state, condition, description = relay.outcome(to, size_bytes)
            if expected is None:
                assert state == Delivery.RELEASED, to
                continue
            assert (state, condition) == (Delivery.REJECTED, expected), to
            if to:
                refused = relay.refusal(to)
                assert refused is not None
                assert description is not None
                assert refused[0] == condition
                assert refused[1][:256] == description[:256]
        relay.bus.close()


@story
async def test_the_relay_says_so_too_where_containers_are_linked() -> None:
    async with linked("a-b", configuration=GUARDED) as mesh:
        relay = await asyncio.to_thread(Relay, mesh.containers["a"].endpoints[0])
        for to, expected in ROUTES.items():
            state, condition, _ = await asyncio.to_thread(relay.outcome, to)
            wanted = Delivery.RELEASED if expected is None else Delivery.REJECTED
            assert (state, condition) == (wanted, expected), to
        await asyncio.to_thread(relay.bus.close)


@story
async def test_our_own_client_is_told_why() -> None:
    with testing.container(GUARDED) as url:
        async with cogwork.connect(url) as mesh:
            for address, kind in (
                ("stream/nope", cogwork.NotFound),
                ("$nothing/x", cogwork.NotFound),
                ("queue/secret", cogwork.PermissionDenied),
                ("exchange/e", cogwork.NotFound),
                ("plain", cogwork.Released),
            ):
                with pytest.raises(kind, match=re.escape(address)):
                    await mesh.publish(address, "x")
                with pytest.raises(kind, match=re.escape(address)):
                    await mesh.request(address, "x", timeout_s=20)
            async with mesh.publisher() as out:
                with pytest.raises(cogwork.Rejected) as caught:
                    await out.send("x", to="queue/secret")
                assert caught.value.condition == "amqp:unauthorized-access"
                (outcome,) = await out.send_batch([cogwork.Message("x")])
                assert outcome.condition == "amqp:invalid-field"
