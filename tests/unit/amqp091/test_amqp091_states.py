"""The state tables of AMQP 0-9-1, and limits that two ends agree on."""

from __future__ import annotations

import pytest

from cogwork.amqp091 import methods
from cogwork.amqp091.errors import LocalProtocolError, ProtocolError, ReplyCode
from cogwork.amqp091.method import METHODS, Method, Role
from cogwork.amqp091.methods import (
    BasicPublish,
    ChannelClose,
    ChannelCloseOk,
    ChannelFlow,
    ChannelOpen,
    ChannelOpenOk,
    ConnectionClose,
    ConnectionCloseOk,
    ConnectionOpen,
    ConnectionOpenOk,
    ConnectionSecure,
    ConnectionSecureOk,
    ConnectionStart,
    ConnectionStartOk,
    ConnectionTune,
    ConnectionTuneOk,
)
from cogwork.amqp091.states import (
    CHANNEL,
    CONNECTION,
    ChannelState,
    ConnectionState,
    Direction,
    channel_step,
    connection_step,
)
from cogwork.amqp091.tuning import Limits, limits_of

SENT, RECEIVED = Direction.SENT, Direction.RECEIVED

HANDSHAKE: list[type[Method]] = [
    ConnectionStart, ConnectionStartOk, ConnectionSecure, ConnectionSecureOk, ConnectionTune,
    ConnectionTuneOk, ConnectionOpen, ConnectionOpenOk,
]  # fmt: skip  # a list


@pytest.mark.parametrize("role", Role)
def test_both_ends_go_through_the_same_states(role: Role) -> None:
    state = ConnectionState.HEADER
    passed = []
    for method in HANDSHAKE:
        state = connection_step(state, SENT if method.SENT_BY is role else RECEIVED, method)
        passed.append(state.name)
    assert passed == [
        "STARTED", "SECURING", "CHALLENGED", "SECURING", "TUNING", "TUNED", "OPENING", "RUNNING",
    ]  # fmt: skip  # a list


@pytest.mark.parametrize("state", ConnectionState)
def test_what_the_connection_table_does_not_list_is_an_error(state: ConnectionState) -> None:
    unlisted = [each for each in METHODS.values() if (state, RECEIVED, each) not in CONNECTION]
    assert len(unlisted) > 50
    for method in unlisted:
        with pytest.raises(ProtocolError) as caught:
            connection_step(state, RECEIVED, method)
        assert (caught.value.code, caught.value.explanation) == (
            ReplyCode.CHANNEL_ERROR,
            f"unexpected method '{method.NAME}' in connection state {state.name.lower()}",
        )
        ids = caught.value.class_id, caught.value.method_id
        assert ids == (method.CLASS_ID, method.METHOD_ID)


@pytest.mark.parametrize(
    ("state", "method"),
    [
        (ConnectionState.HEADER, ConnectionStartOk),
        (ConnectionState.STARTED, ConnectionTuneOk),
        (ConnectionState.SECURING, ConnectionSecureOk),
        (ConnectionState.TUNING, ConnectionOpen),
        (ConnectionState.RUNNING, ConnectionOpen),
        (ConnectionState.RUNNING, ConnectionCloseOk),
        (ConnectionState.RUNNING, ChannelOpen),
        (ConnectionState.CLOSED, ConnectionClose),
    ],
)
def test_no_step_of_the_handshake_can_be_left_out(
    state: ConnectionState, method: type[Method]
) -> None:
    with pytest.raises(ProtocolError):
        connection_step(state, RECEIVED, method)
    with pytest.raises(LocalProtocolError, match=f"unexpected method '{method.NAME}'"):
        connection_step(state, SENT, method)


@pytest.mark.parametrize("answered_first", Direction)
def test_two_closes_that_cross_are_both_answered(answered_first: Direction) -> None:
    connection = connection_step(ConnectionState.RUNNING, SENT, ConnectionClose)
    connection = connection_step(connection, RECEIVED, ConnectionClose)
    channel = channel_step(ChannelState.OPEN, SENT, ChannelClose)
    channel = channel_step(channel, RECEIVED, ChannelClose)
    for direction in sorted(Direction, key=lambda each: each is not answered_first):
        assert connection is not ConnectionState.CLOSED
        assert channel is not ChannelState.CLOSED
        connection = connection_step(connection, direction, ConnectionCloseOk)
        channel = channel_step(channel, direction, ChannelCloseOk)
    assert connection is ConnectionState.CLOSED
    assert channel is ChannelState.CLOSED


def test_a_channel_is_used_before_its_open_is_answered() -> None:
    """A client need not wait; a server that has not answered must not send anything else."""
    server = channel_step(ChannelState.CLOSED, RECEIVED, ChannelOpen)
    client = channel_step(ChannelState.CLOSED, SENT, ChannelOpen)
    assert channel_step(server, RECEIVED, BasicPublish) is server
    assert channel_step(client, SENT, BasicPublish) is client
    with pytest.raises(LocalProtocolError):
        channel_step(server, SENT, methods.BasicAck)
    with pytest.raises(ProtocolError):
        channel_step(client, RECEIVED, methods.BasicAck)
    assert channel_step(server, SENT, ChannelOpenOk) is ChannelState.OPEN
    assert channel_step(client, RECEIVED, ChannelOpenOk) is ChannelState.OPEN


@pytest.mark.parametrize("direction", Direction)
def test_flow_keeps_a_channel_open(direction: Direction) -> None:
    assert channel_step(ChannelState.OPEN, direction, ChannelFlow) is ChannelState.OPEN


LIFE = {ChannelOpen, ChannelOpenOk, ChannelClose, ChannelCloseOk}


@pytest.mark.parametrize("state", ChannelState)
def test_what_the_channel_table_does_not_list_is_an_error(state: ChannelState) -> None:
    for method in METHODS.values():
        key = method if method in LIFE else None
        if (state, RECEIVED, key) not in CHANNEL:
            with pytest.raises(ProtocolError) as caught:
                channel_step(state, RECEIVED, method)
            assert caught.value.code is ReplyCode.CHANNEL_ERROR
        if (state, SENT, key) not in CHANNEL:
            with pytest.raises(LocalProtocolError):
                channel_step(state, SENT, method)


@pytest.mark.parametrize(
    ("state", "method", "explanation"),
    [
        (ChannelState.CLOSED, BasicPublish, "expected 'channel.open'"),
        (ChannelState.CLOSED, ChannelCloseOk, "expected 'channel.open'"),
        (ChannelState.OPEN, ChannelOpen, "second 'channel.open' seen"),
        (
            ChannelState.OPEN,
            ChannelCloseOk,
            "unexpected method 'channel.close-ok' in channel state open",
        ),
        (
            ChannelState.CLOSE_RECEIVED,
            BasicPublish,
            "unexpected method 'basic.publish' in channel state close_received",
        ),
    ],
)
def test_a_channel_error_says_what_was_expected(
    state: ChannelState, method: type[Method], explanation: str
) -> None:
    with pytest.raises(ProtocolError) as caught:
        channel_step(state, RECEIVED, method)
    assert caught.value.explanation == explanation


OFFER = ConnectionTune(channel_max=2047, frame_max=131072, heartbeat=60)


@pytest.mark.parametrize(
    ("offer", "answer", "limits"),
    [
        ((2047, 131072, 60), (2047, 131072, 60), Limits(2047, 131072, 60)),
        ((2047, 131072, 60), (1, 4096, 0), Limits(1, 4096, 0)),
        ((2047, 131072, 60), (1, 4096, 600), Limits(1, 4096, 600)),
        ((0, 0, 0), (65535, 2**32 - 1, 5), Limits(65535, 2**32 - 1, 5)),
        ((0, 0, 0), (0, 0, 0), Limits(65535, 2**32 - 1, 0)),
    ],
)
def test_the_answer_holds(
    offer: tuple[int, int, int], answer: tuple[int, int, int], limits: Limits
) -> None:
    names = ("channel_max", "frame_max", "heartbeat")
    offered = ConnectionTune(**dict(zip(names, offer, strict=True)))
    assert limits_of(offered, ConnectionTuneOk(**dict(zip(names, answer, strict=True)))) == limits


@pytest.mark.parametrize(
    ("answer", "explanation"),
    [
        (
            ConnectionTuneOk(channel_max=1, frame_max=4095),
            "negotiated frame_max = 4095 is lower than the minimum allowed value (4096)",
        ),
        (
            ConnectionTuneOk(channel_max=1, frame_max=131073),
            "negotiated frame_max = 131073 is higher than the maximum allowed value (131072)",
        ),
        (
            ConnectionTuneOk(channel_max=2048, frame_max=4096),
            "negotiated channel_max = 2048 is higher than the maximum allowed value (2047)",
        ),
        (
            ConnectionTuneOk(channel_max=0, frame_max=4096),
            "negotiated channel_max = 0 (no limit) is higher than the maximum allowed value (2047)",
        ),
    ],
)
def test_no_more_than_was_offered_is_taken(answer: ConnectionTuneOk, explanation: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        limits_of(OFFER, answer)
    assert caught.value.reply_text == f"NOT_ALLOWED - {explanation}"
    assert (caught.value.class_id, caught.value.method_id) == (10, 30)
