"""Calls and answers between containers."""

from __future__ import annotations

import pytest

from cogwork.cluster.members import MemberFacts
from cogwork.plugin.engine.chunks import encode_command
from cogwork.plugin.engine.commands import Fence, Trim
from cogwork.plugin.engine.errors import (
    BeyondEnd,
    Busy,
    ConsensusError,
    Fenced,
    InvalidAppend,
    InvalidSnapshot,
    Malformed,
    NotLeader,
    OutOfSequence,
    SequenceReused,
    Truncated,
    Unavailable,
    Unknown,
)
from cogwork.replication import calls
from cogwork.replication.calls import Failed, decode, encode, error_of, failure_of

ORDERS = calls.StreamKey("orders", 17)

FACTS = MemberFacts(1_796_006_349_704, "1.0", 17, "d1", True, "a", 3, 1_796_006_350_000)

MESSAGES = [
    calls.Proposal(1, ORDERS, [encode_command(Fence()), encode_command(Trim(3))]),
    calls.Read(2, calls.StreamKey("v:orders", 17), 1 << 60, 1 << 20, 2_000),
    calls.GetBounds(3, ORDERS),
    calls.FindTime(4, ORDERS, -1),
    calls.GetSnapshot(5, ORDERS),
    calls.GetMembers(6, ORDERS),
    calls.Results(7, [calls.Place(1, 2, False), calls.Place(1, None, True), 9, Failed("Busy")]),
    calls.Records(8, [b"chunk"], 17),
    calls.Bounded(9, 0, 1 << 62, 1 << 40),
    calls.TimeIs(10, 5),
    calls.SnapshotIs(11, -1, b""),
    calls.MembersAre(12, ["a", "b"], [], None),
    calls.Refused(13, Failed("NotLeader", [], "b")),
    calls.GetIdentity(14, ORDERS, wants_facts=True),
    calls.IdentityIs(15, "", True, "token", {}, 4, FACTS),
    calls.GetApplied(16, calls.StreamKey(""), 1 << 40),
    calls.AppliedIs(17, 9),
]

ERRORS = [
    NotLeader("b"),
    NotLeader(None),
    Fenced(3),
    Truncated(17),
    OutOfSequence(4, 9),
    SequenceReused(8),
    BeyondEnd(9, 5),
    Busy("much"),
    Unavailable("nobody"),
    Unknown("silence"),
    InvalidAppend("empty"),
    InvalidSnapshot(9, 5),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda each: type(each).__name__)
def test_what_is_sent_arrives(message: calls.Call | calls.Answer) -> None:
    assert decode(encode(message)) == message


@pytest.mark.parametrize("message", MESSAGES, ids=lambda each: type(each).__name__)
def test_what_is_cut_short_is_told(message: calls.Call | calls.Answer) -> None:
    data = encode(message)
    for length in range(len(data)):
        with pytest.raises(Malformed, match="call between containers"):
            decode(data[:length])


@pytest.mark.parametrize("data", [b"\x91\xa4Evil", b"\x93\xa8Proposal\x01\x02", b"\xc0", b"\x80"])
def test_what_is_something_else_is_told(data: bytes) -> None:
    with pytest.raises(Malformed):
        decode(data)


@pytest.mark.parametrize("error", ERRORS, ids=lambda each: type(each).__name__)
def test_errors_say_the_same_at_the_other_end(error: ConsensusError) -> None:
    found = error_of(failure_of(error))
    assert type(found) is type(error)
    assert str(found) == str(error)


def test_an_error_of_another_kind_or_without_its_numbers_is_none_that_harms() -> None:
    assert isinstance(error_of(Failed("Nonsense", [], "what")), Unavailable)
    assert isinstance(error_of(Failed("Fenced", [], "")), Unavailable)
