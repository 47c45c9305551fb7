"""Sessions that two peers hold with each other by way of this container: frames are passed on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from wires import Broker, Peer, frame

from cogwork.amqp.errors import AmqpError, Condition
from cogwork.amqp.frames import encode_frame
from cogwork.amqp.outcomes import Accepted
from cogwork.amqp.performatives import (
    Attach,
    Begin,
    Detach,
    Disposition,
    End,
    Flow,
    Role,
    Transfer,
    encode_performative,
)
from cogwork.amqp.terminus import Source, Target
from cogwork.amqp.types import Symbol
from cogwork.dataplane.transport.relayed import relay

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.amqp.performatives import Performative
    from cogwork.dataplane.connection import Connection

NEAR, FAR = 7, 3
"""The channels that the two peers send on."""

HOPS = Symbol("hops")


class Tunnel:
    """Two peers, and a session between them through the broker, which begins with `begin`."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.near = broker.peer(channel_max=100)
        self.far = broker.peer(channel_max=100)
        self.near.connection.relay = self._relay
        self.near.say(
            Begin(
                next_outgoing_id=11,
                incoming_window=22,
                outgoing_window=33,
                handle_max=44,
                properties={HOPS: 1},
            ),
            channel=NEAR,
        )

    def _relay(self, connection: Connection, channel: int, begin: Begin) -> bool:
        inward = connection.relay_session()
        inward.on_begin(channel, begin)
        relay(inward, begin, self.far.connection.relay_session(), {HOPS: 2})
        return True

    @property
    def offered(self) -> tuple[int, Begin]:
        """What the far peer hears of the begin, and on which channel."""
        return self._last(self.far)

    @property
    def answered(self) -> tuple[int, Begin]:
        """What the near peer hears of the answer."""
        return self._last(self.near)

    def _last(self, peer: Peer) -> tuple[int, Begin]:
        return [(channel, each) for channel, each in peer.heard if isinstance(each, Begin)][-1]

    def answer(self) -> Tunnel:
        """Have the far peer begin, too."""
        self.far.say(
            Begin(
                remote_channel=self.offered[0],
                next_outgoing_id=55,
                incoming_window=66,
                outgoing_window=77,
                handle_max=88,
                properties={HOPS: 9},
            ),
            channel=FAR,
        )
        return self

    def heard_near(self) -> list[object]:
        """What the near peer heard on the session but its begin."""
        return self._heard(self.near, self.answered[0])

    def heard_far(self) -> list[object]:
        """What the far peer heard on the session but its begin."""
        return self._heard(self.far, self.offered[0])

    def _heard(self, peer: Peer, channel: int) -> list[object]:
        return [each for at, each in peer.heard if at == channel and not isinstance(each, Begin)]


@pytest.fixture
def tunnel(broker: Broker) -> Tunnel:
    return Tunnel(broker).answer()


ATTACH = Attach(name="a", handle=5, role=Role.SENDER, source=Source(), target=Target(address="x"))
FLOW = Flow(incoming_window=1, next_outgoing_id=2, outgoing_window=3)


def transfer(number: int, **fields: Any) -> Transfer:
    return Transfer(handle=5, delivery_id=number, delivery_tag=b"t", settled=False, **fields)


def test_a_begin_is_passed_on_as_its_peer_said_it(broker: Broker) -> None:
    tunnel = Tunnel(broker)
    _, begin = tunnel.offered
    assert begin.remote_channel is None
    assert (begin.next_outgoing_id, begin.incoming_window, begin.handle_max) == (11, 22, 44)
    assert begin.properties == {HOPS: 2}
    assert len(tunnel.near.of(Begin)) == 1, "answered before the far peer was asked"


def test_the_answer_is_passed_back_for_the_channel_that_asked(tunnel: Tunnel) -> None:
    _, begin = tunnel.answered
    assert begin.remote_channel == NEAR
    assert (begin.next_outgoing_id, begin.incoming_window, begin.handle_max) == (55, 66, 88)
    assert begin.properties == {HOPS: 9}


def test_frames_pass_both_ways_as_they_are_but_for_their_channel(tunnel: Tunnel) -> None:
    there: list[Performative] = [ATTACH, FLOW, Detach(handle=5, closed=True)]
    settled = Disposition(role=Role.RECEIVER, first=1, settled=True, state=Accepted())
    back: list[Performative] = [ATTACH, settled, FLOW]
    for performative in there:
        tunnel.near.say(performative, channel=NEAR)
    for performative in back:
        tunnel.far.say(performative, channel=FAR)
    assert tunnel.heard_far() == there
    assert tunnel.heard_near() == back
    assert tunnel.near.connection.relayed[0].end.frames == len(there)
    assert tunnel.far.connection.relayed[0].end.frames == len(back)


def test_the_bytes_of_a_run_pass_unchanged(tunnel: Tunnel) -> None:
    tunnel.far.is_deaf = True
    said = [frame(transfer(number), b"body %d" % number, NEAR) for number in range(50)]
    tunnel.near.feed(b"".join(said))
    heard = tunnel.far.take()
    channel = tunnel.offered[0]
    assert heard == b"".join(
        frame(transfer(number), b"body %d" % number, channel) for number in range(50)
    )
    assert tunnel.near.connection.relayed[0].end.bytes == sum(map(len, said))


@pytest.mark.parametrize("size", [1, 7, 11, 64, 100])
def test_partial_frames_are_passed_on_once_they_are_whole(tunnel: Tunnel, size: int) -> None:
    tunnel.near.split = lambda data: [data[at : at + size] for at in range(0, len(data), size)]
    tunnel.near.feed(
        b"".join(frame(transfer(number), b"x" * 3 * number, NEAR) for number in range(20))
    )
    assert tunnel.heard_far() == [transfer(number) for number in range(20)]


def test_frames_of_other_sessions_between_them_stay_here(broker: Broker, tunnel: Tunnel) -> None:
    consumer = broker.peer().consumer("one/a", credit=100)
    publisher = tunnel.near.publisher("one/a")
    said: list[bytes] = []

    def hold(data: bytes) -> list[bytes]:
        said.append(data)
        return []

    tunnel.near.split = hold
    for number in range(6):
        tunnel.near.say(transfer(number), b"far", channel=NEAR)
        publisher.send(b"%d" % number)
    tunnel.near.split = lambda data: [data]
    tunnel.near.feed(b"".join(said))
    assert consumer.bodies == [b"%d" % number for number in range(6)]
    assert tunnel.heard_far() == [transfer(number) for number in range(6)]


def test_heartbeats_stay_with_the_connection(tunnel: Tunnel) -> None:
    tunnel.far.is_deaf = True
    tunnel.near.feed(encode_frame(0, b""))
    tunnel.near.feed(encode_frame(NEAR, b""))
    assert tunnel.far.take() == b""
    assert not tunnel.near.connection.is_over


def test_an_end_is_passed_on_with_its_error_and_frees_the_channels(tunnel: Tunnel) -> None:
    why = AmqpError(condition=Condition.LINK_STOLEN, description="enough")
    tunnel.near.say(End(error=why), channel=NEAR)
    assert tunnel.heard_far() == [End(error=why)]
    assert tunnel.heard_near() == [End()]
    tunnel.far.say(End(), channel=FAR)
    assert tunnel.near.connection.relayed == tunnel.far.connection.relayed == []
    tunnel.near.begin(NEAR)
    assert len(tunnel.far.of(Begin)) == 3, "the channel cannot be used again"


def test_what_comes_after_an_end_is_thrown_away(tunnel: Tunnel) -> None:
    tunnel.near.say(End(), channel=NEAR)
    tunnel.far.say(ATTACH, channel=FAR)
    tunnel.far.say(Transfer(handle=5, delivery_id=0), b"late", channel=FAR)
    assert tunnel.heard_near() == [End()]
    assert not tunnel.far.connection.is_over


def test_an_end_before_the_answer_ends_both_sides(broker: Broker) -> None:
    tunnel = Tunnel(broker)
    tunnel.near.say(End(), channel=NEAR)
    assert tunnel.answered[1].remote_channel == NEAR, "an end before the begin it is owed"
    assert tunnel.heard_near() == [End()]
    assert tunnel.heard_far() == [End()]
    tunnel.answer()
    tunnel.far.say(End(), channel=FAR)
    assert tunnel.near.connection.relayed == tunnel.far.connection.relayed == []
    assert len(tunnel.near.of(Begin)) == 2, "the late answer was passed on"


def test_an_end_that_the_far_peer_answers_the_begin_with_reaches_who_asked(broker: Broker) -> None:
    tunnel = Tunnel(broker).answer()
    why = AmqpError(condition=Condition.NOT_FOUND, description="no way")
    tunnel.far.say(End(error=why), channel=FAR)
    assert tunnel.heard_near() == [End(error=why)]
    tunnel.near.say(End(), channel=NEAR)
    assert tunnel.near.connection.relayed == tunnel.far.connection.relayed == []


@pytest.mark.parametrize("loses", ["near", "far"])
def test_the_loss_of_one_connection_ends_the_other_side(tunnel: Tunnel, loses: str) -> None:
    lost, left = (tunnel.near, tunnel.far) if loses == "near" else (tunnel.far, tunnel.near)
    channel, heard = (FAR, tunnel.heard_far) if loses == "near" else (NEAR, tunnel.heard_near)
    lost.vanish()
    (end,) = heard()
    assert isinstance(end, End)
    assert end.error is not None
    assert end.error.condition == Condition.CONNECTION_FORCED
    left.say(transfer(0), b"late", channel=channel)
    left.say(End(), channel=channel)
    assert left.connection.relayed == []
    assert not left.connection.is_over


def test_the_loss_of_the_way_before_the_answer_ends_it(broker: Broker) -> None:
    tunnel = Tunnel(broker)
    tunnel.far.vanish()
    (end,) = tunnel.heard_near()
    assert isinstance(end, End)
    assert tunnel.answered[1].remote_channel == NEAR


def test_a_way_whose_connection_is_closing_takes_nothing_more(
    broker: Broker, tunnel: Tunnel
) -> None:
    tunnel.far.connection.close()
    broker.settle_down()
    tunnel.near.say(transfer(0), b"late", channel=NEAR)
    assert tunnel.far.of(Transfer) == []
    assert isinstance(tunnel.heard_near()[-1], End)


NAMES = {
    0x12: b"amqp:attach:list",
    0x13: b"amqp:flow:list",
    0x14: b"amqp:transfer:list",
    0x15: b"amqp:disposition:list",
    0x16: b"amqp:detach:list",
}
UNUSUAL: dict[str, Callable[[int], bytes]] = {
    "ulong": lambda code: b"\x00\x80" + code.to_bytes(8, "big"),
    "symbol": lambda code: b"\x00\xa3" + bytes([len(NAMES[code])]) + NAMES[code],
}


@pytest.mark.parametrize("form", UNUSUAL)
@pytest.mark.parametrize(
    "performative",
    [
        ATTACH,
        FLOW,
        transfer(0),
        Disposition(role=Role.RECEIVER, first=1, settled=True),
        Detach(handle=5),
    ],
    ids=lambda each: each.NAME,
)
def test_a_descriptor_in_another_form_is_passed_on(
    tunnel: Tunnel, performative: Attach, form: str
) -> None:
    usual = encode_performative(performative)
    payload = b"whatever" if isinstance(performative, Transfer) else b""
    body = UNUSUAL[form](usual[2]) + usual[3:] + payload
    tunnel.near.feed(encode_frame(NEAR, body))
    assert tunnel.heard_far() == [performative]
    assert tunnel.heard_near() == []
    relayed = tunnel.near.connection.relayed[0]
    assert relayed.messages_in == isinstance(performative, Transfer)
    tunnel.near.say(transfer(1), b"later", channel=NEAR)
    assert tunnel.heard_far() == [performative, transfer(1)]


def test_a_frame_with_a_long_header_is_passed_on(tunnel: Tunnel) -> None:
    body = encode_performative(transfer(0))
    size = 12 + len(body)
    tunnel.near.feed(
        size.to_bytes(4, "big") + b"\x03\x00" + NEAR.to_bytes(2, "big") + b"\x00" * 4 + body
    )
    assert tunnel.heard_far() == [transfer(0)]


def test_a_second_begin_on_the_channel_ends_the_connection(tunnel: Tunnel) -> None:
    tunnel.near.say(Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1), channel=NEAR)
    assert tunnel.near.close_error is not None
    assert [type(each) for each in tunnel.heard_far()] == [End]


def test_a_frame_larger_than_allowed_ends_the_connection(broker: Broker) -> None:
    tunnel = Tunnel(broker).answer()
    tunnel.near.feed((70_000).to_bytes(4, "big") + b"\x02\x00\x00\x07\x00\x53\x14\xc0")
    assert tunnel.near.close_error is not None
    assert tunnel.far.of(Transfer) == []


def test_many_sessions_pass_each_on_its_own(broker: Broker) -> None:
    tunnels = Tunnel(broker)
    opened: dict[int, int] = {NEAR: tunnels.offered[0]}
    for channel in range(20, 40):
        tunnels.near.say(
            Begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9), channel=channel
        )
        opened[channel] = tunnels.offered[0]
    assert len(set(opened.values())) == 21
    for channel, offered in opened.items():
        tunnels.near.say(transfer(channel), channel=channel)
        assert tunnels.far.heard[-1] == (offered, transfer(channel))
