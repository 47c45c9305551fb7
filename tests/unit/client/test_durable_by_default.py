"""What the client marks as durable, where nobody says whether it is."""

from __future__ import annotations

from typing import Any

import peers
import pytest

from cogwork import Message
from cogwork.client.publishing.publisher import names_queue
from cogwork.dataplane.client.flusher import Flusher
from cogwork.dataplane.client.outbox import Outbox
from cogwork.dataplane.core import Core
from cogwork.dataplane.transport.outgoing import OutgoingLink


@pytest.mark.parametrize(
    ("address", "is_queue"),
    [
        ("queue/a", True),
        ("/work/a", True),
        ("topic/queue/a", False),
        ("queue", False),
        ("stream/a", False),
        ("unicast/a", False),
    ],
)
def test_queues_are_known_by_their_prefix(address: str, is_queue: bool) -> None:
    assert names_queue(address) is is_queue


def explained(code: int, _state: bytes | None) -> Any:
    raise AssertionError(code)


def sent(body: object, *, is_durable: bool) -> Message:
    """Send something; return what arrives at the other end."""
    core = Core()
    peer = peers.Peer(core)
    outbox: Outbox[Any] = Outbox(Flusher(core, lambda run: run()), pytest.fail, explained)
    outbox.is_durable = is_durable
    link = OutgoingLink(peer.session, 1)
    peer.session.map_link(1, link)
    outbox.attach(link)
    peer.flow(link, 10)
    outbox.post(body)
    core.flush()
    (arrival,) = peer.take()
    return Message.decode(arrival.message)


BODIES = [b"octets", b"o" * 1000, "text", 5, Message("text"), Message("text", priority=7)]


@pytest.mark.parametrize("body", BODIES, ids=repr)
@pytest.mark.parametrize("is_durable", [True, False])
def test_what_says_nothing_is_as_its_address(body: object, is_durable: bool) -> None:
    message = sent(body, is_durable=is_durable)
    assert message.durable is is_durable
    assert message.body == (body.body if isinstance(body, Message) else body)
    assert message.priority == (body.priority if isinstance(body, Message) else 4)


@pytest.mark.parametrize("is_durable", [True, False])
@pytest.mark.parametrize("said", [True, False])
def test_what_says_so_itself_is_as_it_says(is_durable: bool, said: bool) -> None:
    assert sent(Message("text", durable=said), is_durable=is_durable).durable is said
    message = Message("text")
    message.durable = said
    assert sent(message, is_durable=is_durable).durable is said


def test_what_was_received_is_sent_on_as_it_is() -> None:
    received = Message.decode(Message("text").encode())
    assert sent(received, is_durable=True).durable is False


def test_a_message_stays_what_it_was() -> None:
    message = Message("text")
    sent(message, is_durable=True)
    assert message.durable is False
    assert sent(message, is_durable=False).durable is False
