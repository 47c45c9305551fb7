"""Well-formed frames in any order, with any fields: their peer is told off, nobody else suffers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st
from wires import Broker, Peer

from cogwork.amqp.errors import AmqpError
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
    ReceiverSettleMode,
    Role,
    SenderSettleMode,
    Transfer,
)
from cogwork.amqp.terminus import Source, Target
from cogwork.amqp.types import Symbol
from fuzz import seeds

if TYPE_CHECKING:
    from cogwork.amqp.performatives import Performative

FLAGS = st.booleans()
NUMBERS = st.sampled_from([0, 0, 0, 1, 1, 2, 3, 50, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1])
HANDLES = st.sampled_from([0, 0, 0, 1, 1, 2, 9, 2**32 - 1])
MAYBE = st.none() | NUMBERS
ADDRESSES = st.sampled_from([None, "one/a", "one/a", "all/a", "all/a", "whole/a", "forbidden/a"])
ERRORS = st.none() | st.builds(AmqpError, condition=st.just(Symbol("x:y")))
STATES = st.sampled_from(
    [
        None,
        Accepted(),
        Rejected(error=AmqpError(condition=Symbol("x:y"), description="d" * 200)),
        Released(),
        Modified(delivery_failed=True),
        Received(section_number=0, section_offset=0),
    ]
)
PERFORMATIVES = st.one_of(
    st.builds(
        Transfer,
        handle=HANDLES,
        delivery_id=MAYBE,
        delivery_tag=st.none() | st.binary(max_size=32),
        message_format=MAYBE,
        settled=st.none() | FLAGS,
        more=FLAGS,
        state=STATES,
        resume=FLAGS,
        aborted=FLAGS,
    ),
    st.builds(
        Flow,
        next_incoming_id=MAYBE,
        incoming_window=NUMBERS,
        next_outgoing_id=NUMBERS,
        outgoing_window=NUMBERS,
        handle=st.none() | HANDLES,
        delivery_count=MAYBE,
        link_credit=MAYBE,
        drain=FLAGS,
        echo=FLAGS,
    ),
    st.builds(
        Disposition,
        role=st.sampled_from(Role),
        first=NUMBERS,
        last=MAYBE,
        settled=FLAGS,
        state=STATES,
    ),
    st.builds(
        Attach,
        name=st.sampled_from(["a", "b", "c"]),
        handle=HANDLES,
        role=st.sampled_from(Role),
        snd_settle_mode=st.sampled_from(SenderSettleMode),
        rcv_settle_mode=st.sampled_from(ReceiverSettleMode),
        source=st.builds(Source, address=ADDRESSES),
        target=st.builds(Target, address=ADDRESSES),
        initial_delivery_count=st.just(0),
    ),
    st.builds(Detach, handle=HANDLES, closed=FLAGS, error=ERRORS),
    st.builds(
        Begin,
        remote_channel=st.none() | st.integers(0, 3),
        next_outgoing_id=NUMBERS,
        incoming_window=NUMBERS,
        outgoing_window=NUMBERS,
    ),
    st.builds(End, error=ERRORS),
    st.builds(Close, error=ERRORS),
    st.builds(Open, container_id=st.just("x"), max_frame_size=NUMBERS),
)
SAID = st.lists(
    st.tuples(
        PERFORMATIVES,
        st.sampled_from([b"", b"x" * 80, b"y" * 700, seeds.to_section(b"one/a") + seeds.BODY]),
        st.sampled_from([0, 0, 0, 0, 1, 2, 300]),
    ),
    max_size=25,
)
STARTS = st.sampled_from(
    [
        (),
        (
            seeds.receiver(0, "one/a"),
            seeds.flow(0),
            seeds.sender(1, "one/a"),
            seeds.transfer(1, 0),
            seeds.transfer(1, 1, b"begin", more=True),
        ),
        (seeds.receiver(0, "all/a"), seeds.flow(0, 2), seeds.sender(1, "all/a")),
    ]
)


@settings(max_examples=3 * settings().max_examples)
@given(start=STARTS, said=SAID, at_once=FLAGS)
def test_frames_in_any_order(
    start: tuple[bytes, ...], said: list[tuple[Performative, bytes, int]], at_once: bool
) -> None:
    broker = Broker()
    bystander = broker.peer().consumer("one/bystander", credit=5)
    hostile = Peer(broker)
    hostile.is_deaf = True
    hostile.feed(b"AMQP\x00\x01\x00\x00" + seeds.opening() + seeds.begin() + b"".join(start))
    frames = [seeds.frame(*each) for each in said]
    for data in [b"".join(frames)] if at_once else frames:
        hostile.feed(data)
    if hostile.finished:
        assert len(broker.closed) == 1
    else:
        hostile.vanish()
    broker.peer().publisher("one/bystander").send(b"goes on")
    assert bystander.bodies == [b"goes on"]
    bystander.accept_all()
    broker.taken.clear()
    broker.assert_clean()
