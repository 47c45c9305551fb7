"""Messages of Raft to octets and back; and octets of strangers, which never do harm."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from cogwork.raft.entries import Entry, Kind
from cogwork.raft.errors import Malformed
from cogwork.raft.frames import FRAME_BYTES, Frames
from cogwork.raft.heartbeats import Beat
from cogwork.raft.membership import Membership
from cogwork.raft.messages import (
    Append,
    AppendReply,
    Commit,
    Heartbeat,
    HeartbeatReply,
    ReadIndex,
    ReadIndexReply,
    SnapshotPart,
    SnapshotReply,
    TimeoutNow,
    Vote,
    VoteReply,
)
from cogwork.raft.snapshot import Snapshot
from cogwork.raft.wire import FRAME_BYTES_MAX, decode

if TYPE_CHECKING:
    from cogwork.raft.messages import Message

numbers = st.integers(0, 2**64 - 1)
indexes = st.integers(0, 2**62)
groups = st.integers(0, 2**32 - 1)
ids = st.lists(st.text(min_size=1, max_size=16), unique=True, max_size=8)


@st.composite
def memberships(draw: st.DrawFn) -> Membership:
    members = draw(ids)
    if not members:
        return Membership()
    cut = draw(st.integers(1, len(members)))
    old = tuple(draw(st.permutations(members)))[: draw(st.integers(0, 3))]
    return Membership(tuple(members[:cut]), tuple(members[cut:]), old)


@st.composite
def appends(draw: st.DrawFn) -> Append:
    prev_index = draw(indexes)
    terms = sorted(draw(st.lists(numbers, min_size=2, max_size=12)))
    entries = [
        Entry(prev_index + place, term, draw(st.sampled_from(Kind)), draw(st.binary(max_size=40)))
        for place, term in enumerate(terms[1:-1], 1)
    ]
    return Append(terms[-1], prev_index, terms[0], draw(numbers), entries, draw(numbers))


messages: st.SearchStrategy[Message | Beat] = st.one_of(
    st.builds(Vote, numbers, numbers, numbers, st.booleans(), st.booleans()),
    st.builds(VoteReply, numbers, st.booleans(), st.booleans()),
    appends(),
    st.builds(AppendReply, numbers, numbers, numbers, numbers, numbers),
    st.builds(Commit, numbers, numbers),
    st.builds(Heartbeat, numbers, numbers, numbers, st.booleans()),
    st.builds(HeartbeatReply, numbers, numbers, st.booleans()),
    st.builds(
        SnapshotPart,
        numbers,
        st.builds(Snapshot, indexes, numbers, memberships(), numbers, numbers),
        numbers,
        st.binary(max_size=40),
    ),
    st.builds(SnapshotReply, numbers, numbers, numbers),
    st.builds(TimeoutNow, numbers),
    st.builds(ReadIndex, numbers, numbers),
    st.builds(ReadIndexReply, numbers, numbers, numbers),
    st.builds(Beat, numbers, numbers, numbers, numbers, groups),
)


def frame_of(sent: list[tuple[int, Message | Beat]]) -> bytes:
    frames = Frames()
    for group, message in sent:
        frames.add("b", group, message)
    ((to, parts),) = frames.take()
    data = b"".join(parts)
    assert to == "b"
    return data


@given(st.lists(st.tuples(groups, messages), min_size=1, max_size=6))
def test_what_was_sent_is_what_comes(sent: list[tuple[int, Message | Beat]]) -> None:
    assert list(decode(frame_of(sent))) == sent


@given(st.binary(max_size=200))
def test_octets_of_strangers_are_messages_or_malformed(data: bytes) -> None:
    for start in (b"", b"\1"):
        with suppress(Malformed):
            list(decode(start + data))


@given(messages, st.integers(0, 10_000), st.integers(0, 255))
def test_a_changed_octet_gives_a_message_or_malformed(
    message: Message | Beat, place: int, octet: int
) -> None:
    data = bytearray(frame_of([(1, message)]))
    data[place % len(data)] = octet
    with suppress(Malformed):
        list(decode(bytes(data)))


@given(messages)
def test_a_message_that_was_cut_short_is_malformed(message: Message | Beat) -> None:
    data = frame_of([(1, message)])
    for end in range(2, len(data)):
        with pytest.raises(Malformed):
            list(decode(data[:end]))


@pytest.mark.parametrize("data", [b"", b"\0", b"\2", b"\1\0\0\0\0", b"\1" + b"\xff" * 17])
def test_what_is_no_frame_is_malformed(data: bytes) -> None:
    with pytest.raises(Malformed):
        list(decode(data))


def test_a_frame_that_is_too_large_is_not_even_looked_at() -> None:
    with pytest.raises(Malformed, match="at most"):
        list(decode(bytes(FRAME_BYTES_MAX + 1)))


@pytest.mark.parametrize(
    "append",
    [
        Append(5, 1, 3, 0, [Entry(2, 2, Kind.COMMAND, b"")]),
        Append(5, 1, 3, 0, [Entry(2, 4, Kind.COMMAND, b""), Entry(3, 3, Kind.COMMAND, b"")]),
        Append(5, 1, 3, 0, [Entry(2, 6, Kind.COMMAND, b"")]),
        Append(5, 2**63 - 1, 3, 0, [Entry(2**63, 3, Kind.COMMAND, b"")]),
    ],
)
def test_entries_whose_terms_or_places_cannot_be_are_malformed(append: Append) -> None:
    with pytest.raises(Malformed):
        list(decode(frame_of([(1, append)])))


def test_a_message_for_two_is_encoded_once_and_frames_are_bounded() -> None:
    frames = Frames()
    entry = Entry(1, 1, Kind.COMMAND, bytes(FRAME_BYTES // 2 + 1))
    for _ in range(3):
        append = Append(1, 0, 0, 0, [entry])
        frames.add("b", 1, append)
        frames.add("c", 1, append)
    sent = frames.take()
    assert sorted(to for to, _ in sent) == ["b"] * 3 + ["c"] * 3
    assert len({b"".join(parts) for _, parts in sent}) == 1
    assert all(parts[-1] is entry.payload for _, parts in sent), "large octets are not copied"
    assert frames.take() == []


def test_small_messages_for_two_are_joined_once() -> None:
    frames = Frames()
    for index in range(1, 100):
        append = Append(1, index - 1, 1, 0, [Entry(index, 1, Kind.COMMAND, b"x" * 100)])
        frames.add("b", 1, append)
        frames.add("c", 1, append)
    ((_, (one,)), (_, (other,))) = frames.take()
    assert one is other


@pytest.mark.parametrize("number", [-1, 2**64])
@pytest.mark.parametrize(
    "message",
    [Commit(1, 0, 0), Append(1, 0, 0, 0, [Entry(1, 1, Kind.COMMAND, b"x")]), Beat(1, 0)],
)
def test_a_number_that_has_no_place_is_no_message(message: Message | Beat, number: int) -> None:
    for field in message.__struct_fields__:
        if field != "entries":
            wrong = structs.replace(message, **{field: number})
            with pytest.raises(OverflowError):
                Frames().add("b", 1, wrong)
    with pytest.raises(OverflowError):
        Frames().add("b", number, message)


@pytest.mark.parametrize(
    "entry", [Entry(1, -1, 0, b""), Entry(1, 2**64, 0, b""), Entry(1, 1, 256, b"")]
)
def test_an_entry_whose_numbers_have_no_place_is_no_entry(entry: Entry) -> None:
    for entries in ([entry], [Entry(0, 1, 0, b""), entry]):
        with pytest.raises(OverflowError):
            Frames().add("b", 1, Append(1, 0, 0, 0, entries))


def test_what_is_no_number_and_no_message_is_not_encoded() -> None:
    with pytest.raises(TypeError):
        Frames().add("b", 1, Commit(1, "2"))  # type: ignore[arg-type]  # that is the test
    with pytest.raises(KeyError):
        Frames().add("b", 1, object())  # type: ignore[arg-type]  # that is the test


@given(st.lists(st.tuples(groups, messages), max_size=3), st.binary(max_size=30))
def test_what_came_whole_is_there_before_the_rest_is_malformed(
    sent: list[tuple[int, Message | Beat]], rest: bytes
) -> None:
    """Wherever the octets lie: here behind others, as in a parcel."""
    data = b"..." + (frame_of(sent) if sent else b"\1") + b"\0\0\0\1" + rest
    with pytest.raises(Malformed):
        list(decode(memoryview(data)[3:]))
    found = decode(memoryview(data)[3:])
    assert [next(found) for _ in sent] == sent
