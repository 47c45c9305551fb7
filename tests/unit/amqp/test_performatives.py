"""Performatives, termini and delivery states: fields by name, lists on the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from cogwork.amqp.codec import decode, encode
from cogwork.amqp.errors import AmqpError, Condition, EncodeError, ProtocolError, Scope
from cogwork.amqp.outcomes import Accepted, Modified, Received, Rejected, Released
from cogwork.amqp.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    Performative,
    ReceiverSettleMode,
    Role,
    SenderSettleMode,
    Transfer,
    decode_performative,
    encode_performative,
)
from cogwork.amqp.terminus import Coordinator, Durability, ExpiryPolicy, Source, Target
from cogwork.amqp.types import Array, Described, Symbol, UByte, UInt, ULong, UShort

if TYPE_CHECKING:
    from cogwork.amqp.composite import Composite

NOT_FOUND = AmqpError(
    condition=Condition.NOT_FOUND, description="no queue", info={Symbol("at"): "a"}
)

SAMPLES: list[tuple[Performative, str]] = [
    (Open(container_id="a"), "00 5310 c0 04 01 a10161"),
    (
        Open(container_id="a", hostname="h", max_frame_size=512, channel_max=1, idle_time_out=9),
        "00 5310 c0 11 05 a10161 a10168 70 00000200 60 0001 52 09",
    ),
    (
        Open(container_id="a", desired_capabilities=(Symbol("x"),)),
        "00 5310 c0 11 09 a10161 40 40 40 40 40 40 40 e0 04 01 a3 01 78",
    ),
    (
        Begin(remote_channel=0, next_outgoing_id=0, incoming_window=2, outgoing_window=3),
        "00 5311 c0 09 04 60 0000 43 52 02 52 03",
    ),
    (
        Attach(name="l", handle=0, role=Role.SENDER, initial_delivery_count=0),
        "00 5312 c0 0d 0a a1016c 43 42 40 40 40 40 40 40 43",
    ),
    (Detach(handle=1, closed=True), "00 5316 c0 04 02 52 01 41"),
    (
        Flow(incoming_window=1, next_outgoing_id=0, outgoing_window=0, handle=0, link_credit=1),
        "00 5313 c0 0a 07 40 52 01 43 43 43 40 52 01",
    ),
    (
        Transfer(handle=0, delivery_id=0, delivery_tag=b"t", settled=True, more=True),
        "00 5314 c0 09 06 43 43 a00174 40 41 41",
    ),
    (
        Disposition(role=Role.RECEIVER, first=0, settled=True, state=Accepted()),
        "00 5315 c0 09 05 41 43 40 41 00 5324 45",
    ),
    (End(), "00 5317 45"),
    (Close(), "00 5318 45"),
]


@pytest.mark.parametrize(("performative", "encoded"), SAMPLES)
def test_a_performative_is_a_list_without_trailing_nulls(
    performative: Performative, encoded: str
) -> None:
    data = bytes.fromhex(encoded)
    assert encode_performative(performative) == data
    assert decode_performative(b"##" + data + b"payload", 2) == (performative, len(data) + 2)


def test_everything_that_an_attach_can_say_survives() -> None:
    attach = Attach(
        name="link",
        handle=7,
        role=Role.RECEIVER,
        snd_settle_mode=SenderSettleMode.UNSETTLED,
        rcv_settle_mode=ReceiverSettleMode.SECOND,
        source=Source(
            address="queue/a",
            durable=Durability.UNSETTLED_STATE,
            expiry_policy=ExpiryPolicy.NEVER,
            timeout=5,
            dynamic=True,
            dynamic_node_properties={Symbol("lifetime-policy"): Described(ULong(0x2B), [])},
            distribution_mode=Symbol("copy"),
            filter={Symbol("f"): Described(Symbol("f"), "a > 1")},
            default_outcome=Modified(delivery_failed=True),
            outcomes=(Symbol("amqp:accepted:list"), Symbol("amqp:released:list")),
            capabilities=(Symbol("queue"),),
        ),
        target=Target(address=None, capabilities=(Symbol("c"),)),
        unsettled={b"1": None, b"2": Rejected(error=NOT_FOUND), b"3": Released()},
        incomplete_unsettled=True,
        max_message_size=2**40,
        properties={Symbol("p"): UShort(1)},
    )
    assert decode_performative(encode_performative(attach))[0] == attach


@pytest.mark.parametrize(
    "state",
    [
        Received(section_number=1, section_offset=2**40),
        Accepted(),
        Rejected(error=NOT_FOUND),
        Released(),
        Modified(undeliverable_here=True, message_annotations={Symbol("x-opt-a"): 1}),
    ],
)
def test_each_delivery_state_travels_in_a_disposition(state: Any) -> None:
    disposition = Disposition(role=Role.RECEIVER, first=1, last=2, state=state)
    assert decode_performative(encode_performative(disposition))[0] == disposition


def test_one_symbol_stands_for_an_array_of_one() -> None:
    fields = ["a", *[None] * 6, Symbol("ANONYMOUS-RELAY")]
    assert Open.from_fields(fields).offered_capabilities == (Symbol("ANONYMOUS-RELAY"),)


def test_the_symbolic_descriptor_means_the_same() -> None:
    described = Described(Symbol("amqp:close:list"), [])
    assert decode_performative(encode(described))[0] == Close()


def test_a_transaction_coordinator_is_recognised() -> None:
    attach = Attach(name="t", handle=0, role=Role.SENDER, target=Coordinator())
    decoded, _ = decode_performative(encode_performative(attach))
    assert isinstance(decoded, Attach)
    assert isinstance(decoded.target, Coordinator)


@pytest.mark.parametrize(
    ("made", "fields", "words"),
    [
        (Open, [], "open.container-id: a value is expected, not NoneType None"),
        (Open, [1], "open.container-id: string is expected, not int 1"),
        (Open, ["a", Symbol("h")], "open.hostname: string is expected, not Symbol"),
        (Open, ["a", None, 512], "open.max-frame-size: uint is expected, not int 512"),
        (Open, ["a"] + [None] * 10, "open: a list of at most 10 fields"),
        (Open, ["a", *[None] * 8, {"k": 1}], "open.properties: a map with symbols as keys"),
        (
            Open,
            ["a", *[None] * 6, Array(["x"], str)],
            "an array of symbols is expected, not of str",
        ),
        (Begin, [None, UInt(0), UInt(0)], "begin.outgoing-window: a value is expected"),
        (Attach, ["l", UInt(0), UByte(0)], "attach.role: role is expected, not UByte 0"),
        (Attach, ["l", UInt(0), True, UByte(3)], "snd-settle-mode: one of 0, 1, 2 is expected"),
        (
            Attach,
            ["l", UInt(0), True, None, None, Described(ULong(0x24), [])],
            "attach.source: a source is expected, not Accepted",
        ),
        (
            Attach,
            ["l", UInt(0), True, None, None, Described(ULong(0x28), [1])],
            "source.address: string is expected, not int 1",
        ),
        (
            Attach,
            ["l", UInt(0), True, *[None] * 4, {b"1": 5}],
            "attach.unsettled: a map from delivery-tags",
        ),
        (Transfer, [UInt(0), None, b"t" * 33], "transfer.delivery-tag: at most 32 bytes"),
        (
            Detach,
            [UInt(0), None, NOT_FOUND.to_described().value],
            "detach.error: error is expected",
        ),
        (Close, {}, "close: a list of at most 1 fields is expected, not dict"),
    ],
)
def test_a_wrong_field_is_named(made: type[Composite], fields: object, words: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        made.from_fields(fields)
    assert words in caught.value.description
    assert caught.value.condition == Condition.INVALID_FIELD
    assert caught.value.scope is Scope.CONNECTION


@pytest.mark.parametrize(
    "value",
    [
        5,
        Described(ULong(0x24), []),
        Described(ULong(0x99), []),
        Described([], []),
        Described(5, []),
    ],
)
def test_what_is_no_performative_is_refused(value: object) -> None:
    with pytest.raises(ProtocolError):
        decode_performative(encode(value))


@pytest.mark.parametrize(
    ("performative", "words"),
    [
        (Detach(handle=-1), "detach.handle: 0 to 4294967295 is expected, not -1"),
        (Detach(handle=cast("Any", "x")), "detach.handle: an integer is expected, not 'x'"),
        (Open(container_id=cast("Any", None)), "open.container-id is mandatory"),
        (Open(container_id=cast("Any", b"a")), "open.container-id: str is expected"),
        (Transfer(handle=0, delivery_tag=b"t" * 33), "transfer.delivery-tag: at most 32 bytes"),
        (
            Detach(handle=0, error=cast("Any", Accepted())),
            "detach.error: error is expected, not Accepted()",
        ),
        (
            Attach(name="l", handle=0, role=cast("Any", "x")),
            "attach.role: one of False, True is expected",
        ),
    ],
)
def test_a_wrong_attribute_is_named(performative: Performative, words: str) -> None:
    with pytest.raises(EncodeError) as caught:
        encode_performative(performative)
    assert words in str(caught.value)


def test_a_performative_shows_what_was_said() -> None:
    assert repr(Open(container_id="a", channel_max=7)) == "Open(container_id='a', channel_max=7)"
    assert repr(decode(encode_performative(End()))[0]) == "Described(23, [])"
