"""What subscribers ask for of a source: they get it, or are told that there is no such thing."""

from __future__ import annotations

from typing import Any

import pytest
from hosted import Hosted
from wires import Peer

from cogwork.amqp.errors import Condition
from cogwork.amqp.performatives import Attach, Close, Detach, Open, Role
from cogwork.amqp.terminus import COPY, MOVE, Durability, ExpiryPolicy, Source, Target
from cogwork.amqp.types import Symbol

SHARED = (Symbol("topic"), Symbol("shared"), Symbol("global"))
DURABLE = {"durable": Durability.UNSETTLED_STATE, "expiry_policy": ExpiryPolicy.NEVER}


@pytest.fixture
def peer() -> Peer:
    return Peer(Hosted()).greet()


def subscribed(peer: Peer, address: str, **fields: Any) -> Attach:
    """Attach a receiver; return the answer."""
    source = Source(address=address, **fields)
    peer.say(Attach(name="l", handle=0, role=Role.RECEIVER, source=source, target=Target()), b"", 1)
    return peer.of(Attach)[0]


@pytest.fixture(autouse=True)
def aside(peer: Peer) -> None:
    """Begin a session of whose links the peer takes no note."""
    peer.begin(1)
    del peer.channels[1]


@pytest.mark.parametrize("address", ["topic/a", "broadcast/a"])
@pytest.mark.parametrize("asked", [DURABLE, {"capabilities": SHARED}], ids=["durable", "shared"])
def test_what_would_be_lost_in_silence_is_refused(
    peer: Peer, address: str, asked: dict[str, Any]
) -> None:
    assert subscribed(peer, address, **asked).source is None
    error = peer.of(Detach)[0].error
    assert error is not None
    assert error.condition == Condition.NOT_IMPLEMENTED
    assert "a queue or a stream" in str(error.description)


@pytest.mark.parametrize("address", ["queue/a", "unicast/a"])
def test_what_is_kept_or_told_to_the_sender_may_be_asked_for_durably(
    peer: Peer, address: str
) -> None:
    source = subscribed(peer, address, **DURABLE).source
    assert source is not None
    assert source.durable is Durability.NONE, "the terminus itself is not kept, and it is said"


def test_a_subscription_that_never_ends_ends_with_its_link_and_is_told_so(peer: Peer) -> None:
    source = subscribed(peer, "topic/a", expiry_policy=ExpiryPolicy.NEVER).source
    assert source is not None
    assert source.expiry_policy is ExpiryPolicy.LINK_DETACH


@pytest.mark.parametrize(
    ("address", "asked", "given"),
    [
        ("queue/a", None, MOVE),
        ("queue/a", COPY, COPY),
        ("topic/a", None, COPY),
        ("topic/a", MOVE, COPY),
    ],
)
def test_the_answer_says_how_messages_are_shared_out(
    peer: Peer, address: str, asked: Symbol | None, given: Symbol
) -> None:
    source = subscribed(peer, address, distribution_mode=asked).source
    assert source is not None
    assert source.distribution_mode == given


def test_an_unknown_distribution_mode_is_refused(peer: Peer) -> None:
    assert subscribed(peer, "queue/a", distribution_mode=Symbol("lend")).source is None
    error = peer.of(Detach)[0].error
    assert error is not None
    assert error.condition == Condition.NOT_IMPLEMENTED
    assert "'lend'" in str(error.description)


def test_no_session_is_answered_on_a_channel_that_the_peer_does_not_take() -> None:
    peer = Peer(Hosted())
    peer.feed(b"AMQP\x00\x01\x00\x00")
    peer.say(Open(container_id="narrow", channel_max=1))
    for channel in range(2):
        peer.begin(channel)
    assert not peer.of(Close)
    peer.begin(2)
    assert peer.close_error is not None
    assert peer.close_error.condition == Condition.NOT_ALLOWED
    assert "channel-max of 1" in str(peer.close_error.description)
