"""The compiled parsers of the hot performatives against the readable reference.

Whatever the reference takes, the compiled ones take, with the same fields. They may take more, but
only where the fault lies in a field that routing does not read.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from hypothesis import example, given, settings
from hypothesis import strategies as st
from wires import Broker

from cogwork.amqp.errors import ProtocolError
from cogwork.amqp.frames import encode_frame
from cogwork.amqp.outcomes import Accepted, Modified, Received, Rejected, Released
from cogwork.amqp.performatives import (
    Disposition,
    Flow,
    ReceiverSettleMode,
    Role,
    Transfer,
    decode_performative,
    encode_performative,
)
from cogwork.amqp.types import Symbol
from cogwork.dataplane.encoding.codec import encode
from cogwork.dataplane.transport.scan import fields_of

if TYPE_CHECKING:
    from cogwork.amqp.performatives import Performative

UINTS = st.one_of(
    st.sampled_from([0, 1, 255, 256, 2**31 - 1, 2**31, 2**32 - 1]), st.integers(0, 2**32 - 1)
)
OPTIONAL_UINTS = st.none() | UINTS
FLAGS = st.booleans()
STATES = st.sampled_from(
    [
        None,
        Accepted(),
        Released(),
        Rejected(),
        Modified(delivery_failed=True, message_annotations={Symbol("x-opt"): [1, "a", None]}),
        Received(section_number=3, section_offset=2**40),
    ]
)
PAYLOADS = st.binary(max_size=80)

TRANSFERS = st.builds(
    Transfer,
    handle=UINTS,
    delivery_id=OPTIONAL_UINTS,
    delivery_tag=st.none() | st.binary(max_size=32),
    message_format=OPTIONAL_UINTS,
    settled=st.none() | FLAGS,
    more=FLAGS,
    rcv_settle_mode=st.none() | st.sampled_from(ReceiverSettleMode),
    state=STATES,
    resume=FLAGS,
    aborted=FLAGS,
    batchable=FLAGS,
)
FLOWS = st.builds(
    Flow,
    next_incoming_id=OPTIONAL_UINTS,
    incoming_window=UINTS,
    next_outgoing_id=UINTS,
    outgoing_window=UINTS,
    handle=OPTIONAL_UINTS,
    delivery_count=OPTIONAL_UINTS,
    link_credit=OPTIONAL_UINTS,
    available=OPTIONAL_UINTS,
    drain=FLAGS,
    echo=FLAGS,
    properties=st.none() | st.just({Symbol("a"): 1}),
)
DISPOSITIONS = st.builds(
    Disposition,
    role=st.sampled_from(Role),
    first=UINTS,
    last=OPTIONAL_UINTS,
    settled=FLAGS,
    state=STATES,
    batchable=FLAGS,
)
BODIES = st.builds(
    lambda performative, payload: encode_performative(performative) + payload,
    st.one_of(TRANSFERS, FLOWS, DISPOSITIONS),
    PAYLOADS,
)
thorough = settings(max_examples=4 * settings().max_examples, deadline=None)


def encoded(state: object) -> bytes:
    return b"" if state is None else encode(state.to_described())  # type: ignore[attr-defined]  # any state has it


def expected(performative: Performative, payload: bytes) -> dict[str, object]:
    """Return what the compiled parser should have read."""
    if isinstance(performative, Transfer):
        return {
            "handle": performative.handle,
            "delivery_id": performative.delivery_id,
            "delivery_tag": performative.delivery_tag or b"",
            "message_format": performative.message_format or 0,
            "settled": bool(performative.settled),
            "more": performative.more,
            "resume": performative.resume,
            "aborted": performative.aborted,
            "payload": payload,
        }
    if isinstance(performative, Flow):
        return {
            "next_incoming_id": performative.next_incoming_id,
            "incoming_window": performative.incoming_window,
            "next_outgoing_id": performative.next_outgoing_id,
            "outgoing_window": performative.outgoing_window,
            "handle": performative.handle,
            "delivery_count": performative.delivery_count,
            "link_credit": performative.link_credit,
            "available": performative.available or 0,
            "drain": performative.drain,
            "echo": performative.echo,
        }
    assert isinstance(performative, Disposition)
    last = performative.first if performative.last is None else performative.last
    state = performative.state
    return {
        "from_receiver": performative.role is Role.RECEIVER,
        "first": performative.first,
        "last": last,
        "settled": performative.settled,
        "code": 0 if state is None else int(state.DESCRIPTOR),
    }


def compare(body: bytes) -> None:
    found = fields_of(body)
    try:
        performative, at = decode_performative(body)
    except ProtocolError:
        return
    if not isinstance(performative, (Transfer, Flow, Disposition)):
        assert isinstance(found, str)
        return
    assert isinstance(found, dict), f"{found}: {performative}"
    wanted = expected(performative, body[at:])
    assert {name: found[name] for name in wanted} == wanted
    if "state" in found:
        assert (found["state"] != b"") == (performative.state is not None)  # type: ignore[union-attr]  # a flow has none to find


@thorough
@given(body=BODIES)
def test_good_frames_are_read_alike(body: bytes) -> None:
    compare(body)


@thorough
@given(body=BODIES, edits=st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=4))
def test_spoiled_frames_are_read_alike_or_refused(
    body: bytes, edits: list[tuple[int, int]]
) -> None:
    spoiled = bytearray(body)
    for at, value in edits:
        spoiled[at % len(spoiled)] = value
    compare(bytes(spoiled))


@thorough
@given(body=BODIES, cut=st.integers(0, 200))
def test_cut_frames_are_read_alike_or_refused(body: bytes, cut: int) -> None:
    compare(body[: cut % (len(body) + 1)])


@thorough
@given(code=st.sampled_from([0x13, 0x14, 0x15]), tail=st.binary(max_size=60))
@example(code=0x14, tail=b"\xd0\xff\xff\xff\xff\xff\xff\xff\xff")
@example(code=0x14, tail=b"\xc0\x05\x03\x43\x43\xb0\xff\xff\xff\xff")
@example(code=0x15, tail=b"\xc0\x0a\x05\x41\x43\x43\x41" + b"\x00" * 6)
def test_any_bytes_are_read_alike_or_refused(code: int, tail: bytes) -> None:
    compare(bytes([0x00, 0x53, code]) + tail)
    compare(bytes([0x00, 0x80, 0, 0, 0, 0, 0, 0, 0, code]) + tail)


# -- the short cut for the common transfer: seen from outside, it makes no difference


def as_list32(body: bytes) -> bytes:
    """Encode a performative's list8 as a list32, which the short cut does not take."""
    assert body[:3] == b"\x00\x53\x14"
    assert body[3] == 0xC0
    size, count = body[4], body[5]
    return body[:3] + b"\xd0" + struct.pack(">II", size - 1 + 4, count) + body[6:]


def outcome_of(body: bytes) -> list[object]:
    """List what a broker makes of a frame on a link with credit, and of a good one after it."""
    broker = Broker()
    consumer = broker.peer().consumer("all/a", credit=50)
    peer = broker.peer()
    peer.publisher("all/a")
    for each in (body, encode_performative(Transfer(handle=0, more=False)) + b"rest"):
        if not peer.finished:
            peer.feed(encode_frame(0, each))
    seen: list[object] = [
        (a.body, a.settled, a.format, a.complete, a.aborted, a.frames) for a in consumer.arrivals
    ]
    seen.append([type(performative).__name__ for _, performative in peer.heard])
    seen.append([getattr(p, "error", None) for _, p in peer.heard])
    return seen


COMMON = st.builds(
    Transfer,
    handle=st.sampled_from([0, 0, 0, 0, 1, 300]),
    delivery_id=st.none() | UINTS,
    delivery_tag=st.none() | st.binary(max_size=32),
    message_format=st.sampled_from([None, 0, 5]),
    settled=st.none() | FLAGS,
    more=FLAGS,
    aborted=st.sampled_from([False, False, True]),
    batchable=FLAGS,
)


@settings(max_examples=2 * settings().max_examples, deadline=None)
@given(
    transfer=COMMON,
    payload=st.binary(max_size=90),
    edit=st.none() | st.tuples(st.integers(6, 60), st.integers(0, 255)),
)
def test_the_short_cut_for_common_transfers_changes_nothing(
    transfer: Transfer, payload: bytes, edit: tuple[int, int] | None
) -> None:
    performative = bytearray(encode_performative(transfer))
    if edit is not None and edit[0] < len(performative):
        performative[edit[0]] = edit[1]
    short = bytes(performative) + payload
    assert outcome_of(short) == outcome_of(as_list32(bytes(performative)) + payload)
