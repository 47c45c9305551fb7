"""Every client sends to every client through the broker, and nothing changes on the way."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from .cases import LIMITS, OUTCOMES, SIZES_BYTES, possible, section_messages, type_messages
from .clients import CLIENTS, fresh_address
from .comparison import differences
from .notation import Json, data_message, integer, string, value_message

if TYPE_CHECKING:
    from .broker import Settings
    from .conftest import GetPeer
    from .peer import Running

PRESETTLED = 3_000
PAIRS = list(itertools.product(CLIENTS, CLIENTS))


@pytest.fixture(params=PAIRS, ids=[f"{sender}-{receiver}" for sender, receiver in PAIRS])
def pair(request: pytest.FixtureRequest, peer: GetPeer, broker: Settings) -> Pair:
    """A sender and a receiver, each a process around its own library."""
    sender, receiver = request.param
    return Pair(sender, receiver, peer, broker)


class Pair:
    """Two clients that exchange messages over an address of their own.

    Args:
        sender, receiver: Names of the peers.
        peer: Where their processes come from.
        broker: What they connect to.
    """

    def __init__(self, sender: str, receiver: str, peer: GetPeer, broker: Settings) -> None:
        self.names = sender, receiver
        self.sender, self.receiver = peer(sender, "sender"), peer(receiver, "receiver")
        self.broker = broker

    def exchange(
        self, messages: list[Json], sending: Json | None = None, **receiving: Json
    ) -> tuple[Running, Running]:
        """Send messages from one to the other; return what sender and receiver printed."""
        address, connection = fresh_address(), self.broker.anonymous()
        incoming = self.receiver.start(
            "receive",
            **{"connection": connection, "address": address, "count": len(messages), **receiving},
        )
        incoming.wait("attached")
        outgoing = self.sender.start(
            "send",
            **{
                "connection": connection,
                "address": address,
                "messages": messages,
                **(sending or {}),
            },
        )
        return outgoing.finish(), incoming.finish()


@pytest.mark.parametrize("cases", [type_messages(), section_messages()], ids=["types", "sections"])
def test_messages_arrive_as_they_were_sent(pair: Pair, cases: dict[str, Json]) -> None:
    sent = possible(cases, *pair.names)
    outgoing, incoming = pair.exchange(list(sent.values()))
    changed = {
        name: found
        for (name, message), received in zip(sent.items(), incoming.messages, strict=True)
        if (found := differences(message, received))
    }
    assert changed == {}
    assert outgoing.outcomes == [{"state": "accepted"}] * len(sent)


def test_every_outcome_finds_its_way_back(pair: Pair) -> None:
    given = [*OUTCOMES.values(), *OUTCOMES.values()]
    messages = [value_message(integer("int", number)) for number in range(len(given))]
    outgoing, incoming = pair.exchange(messages, outcomes=given)
    assert [message["body"]["value"] for message in incoming.messages] == [
        it["body"]["value"] for it in messages
    ]
    assert outgoing.outcomes == given


def test_a_receiver_that_settles_second_waits_for_the_sender(pair: Pair) -> None:
    messages = [value_message(string(text)) for text in ("first", "second", "third")]
    outgoing, incoming = pair.exchange(
        messages, settle="second", outcomes=[OUTCOMES["accepted"], OUTCOMES["rejected"]]
    )
    states = [outcome["state"] for outcome in outgoing.outcomes]
    assert states == ["accepted", "rejected", "accepted"]
    assert incoming.result["received"] == 3


def test_presettled_messages_need_no_outcome(pair: Pair) -> None:
    """More than a session window of rhea, which has 2,048 frames (AMQP 1.0 §2.5.6)."""
    messages = [value_message(integer("uint", number)) for number in range(PRESETTLED)]
    outgoing, incoming = pair.exchange(messages, sending={"settle": "presettled"})
    assert [message["body"] for message in incoming.messages] == [
        message["body"] for message in messages
    ]
    assert {line["presettled"] for line in incoming.of("message")} == {True}
    assert outgoing.result["sent"] == PRESETTLED


def test_bodies_of_any_size_arrive_whole(pair: Pair) -> None:
    messages = [data_message(size_bytes) for size_bytes in SIZES_BYTES]
    outgoing, incoming = pair.exchange(messages)
    assert [differences(*each) for each in zip(messages, incoming.messages, strict=True)] == [
        []
    ] * len(messages)
    assert outgoing.outcomes == [{"state": "accepted"}] * len(messages)


def test_small_frames_carry_large_bodies(pair: Pair) -> None:
    """The receiver takes 512 bytes a frame, the least that may be asked for (AMQP 1.0 §2.7.1)."""
    messages = [data_message(size_bytes) for size_bytes in (511, 512, 513, 100_000)]
    narrow = {**pair.broker.anonymous(), "max_frame_size": 512}
    _, incoming = pair.exchange(messages, connection=narrow)
    assert [differences(*each) for each in zip(messages, incoming.messages, strict=True)] == [
        []
    ] * len(messages)


def test_a_request_finds_its_reply(pair: Pair) -> None:
    address, connection = fresh_address(), pair.broker.anonymous()
    messages = [value_message(string(f"question {number}")) for number in range(10)]
    service = pair.receiver.start(
        "respond", connection=connection, address=address, count=len(messages)
    )
    service.wait("attached")
    caller = pair.sender.run("request", connection=connection, address=address, messages=messages)
    service.finish()
    answers = {
        reply["properties"]["correlation_id"][1]: reply["body"]["value"][1]
        for reply in caller.messages
    }
    assert answers == {f"request-{number}": f"question {number}" for number in range(10)}


def test_limits_name_cases_that_exist() -> None:
    names = {**type_messages(), **section_messages()}
    assert [it.case for it in LIMITS if not any(it.covers(name) for name in names)] == []
