"""Methods of AMQP 0-9-1, octet by octet."""

from __future__ import annotations

import pytest

from cogwork.amqp091 import methods
from cogwork.amqp091.arguments import BIT
from cogwork.amqp091.errors import EncodeError, ProtocolError
from cogwork.amqp091.method import METHODS, Method, Role, decode_method
from cogwork.amqp091.methods import (
    BasicAck,
    BasicConsume,
    BasicDeliver,
    BasicNack,
    BasicPublish,
    BasicQos,
    ChannelClose,
    ChannelFlow,
    ChannelOpen,
    ConnectionSecure,
    ConnectionStartOk,
    ConnectionTune,
    ConnectionUnblocked,
    ExchangeDeclare,
    ExchangeUnbindOk,
    QueueDeclare,
    QueueDeclareOk,
)

EXAMPLES: list[tuple[str, Method]] = [
    (
        "000a 000b 00000009 07 70726f64756374 56 05 504c41494e 00000004 00677567 05 656e5f5553",
        ConnectionStartOk(client_properties={"product": None}, response=b"\0gug"),
    ),
    ("000a 0014 00000002 00ff", ConnectionSecure(challenge=b"\0\xff")),
    (
        "000a 001e 07ff 00020000 003c",
        ConnectionTune(channel_max=2047, frame_max=131072, heartbeat=60),
    ),
    ("000a 003d", ConnectionUnblocked()),
    ("0014 000a 00", ChannelOpen()),
    ("0014 0014 01", ChannelFlow(active=True)),
    (
        "0014 0028 0194 01 78 0032 000a",
        ChannelClose(reply_code=404, reply_text="x", class_id=50, method_id=10),
    ),
    (
        "0028 000a 0000 01 65 05 746f706963 1a 00000000",
        ExchangeDeclare(exchange="e", type="topic", durable=True, internal=True, nowait=True),
    ),
    ("0028 0033", ExchangeUnbindOk()),
    (
        "0032 000a 0000 01 71 0e 00000004 01 61 74 01",
        QueueDeclare(
            queue="q", durable=True, exclusive=True, auto_delete=True, arguments={"a": True}
        ),
    ),
    (
        "0032 000b 01 71 00000002 00000001",
        QueueDeclareOk(queue="q", message_count=2, consumer_count=1),
    ),
    ("003c 000a 00000000 0064 01", BasicQos(prefetch_count=100, global_=True)),
    (
        "003c 0014 0000 01 71 01 74 0a 00000000",
        BasicConsume(queue="q", consumer_tag="t", no_ack=True, nowait=True),
    ),
    (
        "003c 0028 0000 01 65 01 ff 01",
        BasicPublish(exchange="e", routing_key="\udcff", mandatory=True),
    ),
    (
        "003c 003c 01 74 0000000000000005 01 00 01 6b",
        BasicDeliver(
            consumer_tag="t", delivery_tag=5, redelivered=True, exchange="", routing_key="k"
        ),
    ),
    ("003c 0050 ffffffffffffffff 01", BasicAck(delivery_tag=2**64 - 1, multiple=True)),
    ("003c 0078 0000000000000000 02", BasicNack()),
]


def refusal_of(payload: bytes) -> ProtocolError:
    with pytest.raises(ProtocolError) as caught:
        decode_method(payload)
    return caught.value


@pytest.mark.parametrize(("octets", "method"), EXAMPLES, ids=lambda each: getattr(each, "NAME", ""))
def test_a_method_has_its_octets(octets: str, method: Method) -> None:
    assert method.encode() == bytes.fromhex(octets)
    assert decode_method(bytes.fromhex(octets)) == method


def test_every_method_is_there_under_its_own_name() -> None:
    by_class = {10: 14, 20: 6, 30: 2, 40: 8, 50: 10, 60: 18, 85: 2, 90: 6}
    assert len(METHODS) == sum(by_class.values()) == len(methods.__all__)
    for class_id, count in by_class.items():
        found = [each for ids, each in METHODS.items() if ids[0] == class_id]
        assert len(found) == count
        assert len({each.NAME.split(".")[0] for each in found}) == 1
    for each in METHODS.values():
        words = each.NAME.replace(".", "-").split("-")
        assert each.__name__ == "".join(word.capitalize() for word in words)


def test_contents_follow_four_methods() -> None:
    names = {each.NAME for each in METHODS.values() if each.HAS_CONTENT}
    assert names == {"basic.publish", "basic.return", "basic.deliver", "basic.get-ok"}


def test_bits_of_a_method_fit_into_one_octet() -> None:
    for each in METHODS.values():
        kinds = "".join("b" if row.kind is BIT else " " for row in each.TABLE)
        assert all(len(bits) <= 8 for bits in kinds.split())


def test_what_either_end_sends() -> None:
    names = {each.NAME for each in METHODS.values() if each.SENT_BY == Role.CLIENT | Role.SERVER}
    assert names == {
        "connection.close", "connection.close-ok", "channel.close", "channel.close-ok",
        "channel.flow", "channel.flow-ok", "basic.cancel", "basic.cancel-ok", "basic.ack",
        "basic.nack",
    }  # fmt: skip  # a set


def test_unused_bits_do_not_count() -> None:
    assert decode_method(bytes.fromhex("0014 0014 fe")) == ChannelFlow(active=False)


@pytest.mark.parametrize(
    ("payload", "code", "explanation"),
    [
        ("00", 501, "method frame of 1 octets (at least 4)"),
        ("0046 000a", 540, "unknown method 10 of class 70"),
        ("003c 00ff 00", 540, "unknown method 255 of class 60"),
        ("0014 0014", 501, "cannot decode channel.flow: 1 octets are needed at 4, 0 are left"),
        (
            "0014 0014 01 01",
            501,
            "cannot decode channel.flow: 1 octets follow the last value, at 5",
        ),
        (
            "0032 001e 0000 01 ff 00",
            501,
            "cannot decode queue.purge: Malformed UTF-8 in shortstr",
        ),
        (
            "0028 000a 0000 00 00 00 00000003 01 61 7a",
            502,
            "cannot decode exchange.declare: unknown table field type b'z'",
        ),
    ],
)
def test_a_damaged_method_is_named_with_its_ids(payload: str, code: int, explanation: str) -> None:
    octets = bytes.fromhex(payload)
    error = refusal_of(octets)
    assert (error.code, error.explanation) == (code, explanation)
    assert error.class_id == (int.from_bytes(octets[:2]) if len(octets) >= 4 else 0)
    assert error.method_id == int.from_bytes(octets[2:4])
    assert error.is_hard


@pytest.mark.parametrize(
    ("method", "explanation"),
    [
        (
            QueueDeclare(queue="q" * 256),
            "queue.declare: queue: shortstr is expected, not str 'q",
        ),
        (
            BasicQos(prefetch_count=65536),
            "basic.qos: prefetch_count: short is expected, not int 65536",
        ),
        (BasicAck(delivery_tag=-1), "basic.ack: delivery_tag: longlong is expected, not int -1"),
        (QueueDeclare(arguments={"a": 2**64}), "queue.declare: arguments: table is expected"),
    ],
)
def test_an_argument_without_an_encoding_is_named(method: Method, explanation: str) -> None:
    with pytest.raises(EncodeError) as caught:
        method.encode()
    assert str(caught.value).startswith(explanation)


def test_methods_do_not_change() -> None:
    with pytest.raises(AttributeError):
        BasicQos().prefetch_count = 1  # type: ignore[misc]  # mypy knows that it is frozen
