"""Messages that a container sends itself: dead letters of addresses, and who hears of outcomes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hosted import Hosted
from wires import Peer

from cogwork.amqp.errors import DecodeError
from cogwork.config.reading import parse
from cogwork.dataplane.addresses.port import Port
from cogwork.dataplane.message.messages import Message
from cogwork.nodes.queue import QueueNode
from cogwork.plugin.dead_letters import origin_of

if TYPE_CHECKING:
    from cogwork.container.vhost.virtual_host import VirtualHost

CONFIGURATION = """
id = "hosted"

[[address]]
prefix = "topic"
dead_letter = "queue/dead"

[[address]]
prefix = "work"
kind = "queue"
"""

ODD = b"\x00\x53\x75\xa0\x01x\x00\x53\x73\x45"
"""A message whose properties come behind its body, which they may not."""


class Outcomes:
    """Sends messages, and hears of them."""

    def __init__(self, configuration: str = CONFIGURATION) -> None:
        self.hosted = Hosted(parse(configuration))
        self.port = Port(self.hosted.core, self)
        self.codes: list[int] = []

    @property
    def vhost(self) -> VirtualHost:
        return self.hosted.container.vhosts[""]

    def on_batch(self, port: Port) -> None:
        self.codes += [code for _, code, _, _ in port.outcomes]
        port.outcomes.clear()

    def send(self, address: bytes, message: bytes) -> None:
        assert self.vhost.space.send(self.port, 1, address, message, False)
        self.hosted.core.flush()


def test_a_message_that_cannot_be_read_is_dead_like_any_other() -> None:
    with pytest.raises(DecodeError):
        Message.decode(ODD)
    outcomes = Outcomes()
    outcomes.send(b"topic/nobody", ODD)
    assert outcomes.codes == [0x24]
    dead = outcomes.vhost.nodes["queue/dead"]
    assert isinstance(dead, QueueNode)
    ((letter, _),) = dead.store.peek(10)
    assert letter.endswith(ODD)
    assert origin_of(letter) == "topic/nobody"


def origins(outcomes: Outcomes) -> list[str | None]:
    dead = outcomes.vhost.nodes["queue/dead"]
    assert isinstance(dead, QueueNode)
    return [origin_of(letter) for letter, _ in dead.store.peek(10)]


def test_a_dead_letter_says_where_it_came_from_and_not_what_its_sender_would_like() -> None:
    """Who sends dead letters back may send to more addresses than who wrote them."""
    outcomes = Outcomes()
    forged = Message("x", to="work/secret").encode()
    outcomes.send(b"topic/nobody", forged)
    assert origins(outcomes) == ["topic/nobody"]


def test_a_dead_letter_of_a_message_that_names_its_address_comes_from_there() -> None:
    outcomes = Outcomes()
    relay = Peer(outcomes.hosted).greet().publisher(None)
    relay.send(Message("x", to="topic/some.body").encode())
    assert origins(outcomes) == ["topic/some.body"]


def test_who_fails_to_hear_of_an_outcome_keeps_no_other_from_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    outcomes = Outcomes()
    outgoing = outcomes.hosted.container.outgoing
    heard: list[bool] = []

    def broken(*, accepted: bool) -> None:
        raise RuntimeError(f"broken, though accepted is {accepted}")

    def hear(*, accepted: bool) -> None:
        heard.append(accepted)

    message = Message("x").encode()
    for told in (broken, hear, hear):
        assert outgoing.send(outcomes.vhost, "work/a", message, told)
    outcomes.hosted.core.flush()
    assert heard == [True, True]
    assert "broken, though accepted is True" in caplog.text


@pytest.mark.parametrize(
    "rules",
    [
        {"job": "job/dead"},
        {"job": "/job/a"},
        {"job": "task/a", "task": "job/a"},
        {"job": "task/a", "task": "chore/a", "chore": "task/b"},
    ],
)
def test_dead_letters_do_not_go_round(rules: dict[str, str]) -> None:
    text = "".join(
        f'[[address]]\nprefix = "{prefix}"\ndistribution = "closest"\ndead_letter = "{letter}"\n'
        for prefix, letter in rules.items()
    )
    outcomes = Outcomes(f'id = "hosted"\n{text}')
    faults: list[object] = []
    outcomes.hosted.core.on_error = lambda _who, error: faults.append(error)
    outcomes.send(b"job/a", Message("x").encode())
    assert faults == []
    letter = rules["job"]
    assert outcomes.codes == [0x24 if letter == "job/dead" else 0x26]
