"""The state machine of a stream: offsets, epochs, times, trims, snapshots, and their octets."""

import pytest

from cogwork.plugin.engine import sequencer as module
from cogwork.plugin.engine.batch import Batch, Chunk
from cogwork.plugin.engine.contract import Appended, Bounds, Snapshot
from cogwork.plugin.engine.errors import (
    BeyondEnd,
    Fenced,
    InvalidAppend,
    InvalidSnapshot,
    Malformed,
    OutOfSequence,
    SequenceReused,
    Truncated,
)
from cogwork.plugin.engine.sequencer import (
    Append,
    Command,
    Fence,
    KeepSnapshot,
    Sequencer,
    Trim,
    decode,
    encode,
)

AB = Batch.of([b"a", b"b"])
P0 = Batch.of([b"p0", b"p1"], b"p", 0)


def test_batches_get_their_places_one_after_the_other() -> None:
    stream = Sequencer()
    assert stream.append(AB, None, 7) == (Appended(0, 0), Chunk(0, 0, 7, AB))
    assert stream.append(P0, None, 8) == (Appended(0, 2), Chunk(2, 0, 8, P0))
    assert stream.bounds == Bounds(0, 4)


def test_time_never_goes_back() -> None:
    stream = Sequencer()
    chunks = [stream.append(AB, None, time_ms)[1] for time_ms in (10, 5, 11)]
    assert [each.time_ms for each in chunks if each is not None] == [10, 10, 11]


def test_a_repetition_is_answered_and_gives_no_chunk() -> None:
    stream = Sequencer()
    stream.append(AB, None, 1)
    stream.append(P0, None, 1)
    before = stream.to_bytes()
    assert stream.append(P0, None, 9) == (Appended(0, 2, is_repeated=True), None)
    assert stream.to_bytes() == before


def test_a_batch_that_is_partly_new_is_stored_from_there() -> None:
    stream = Sequencer()
    stream.append(P0, None, 1)
    stream.append(AB, None, 1)
    longer = Batch.of([b"p0", b"p1", b"p2"], b"p", 0)
    answer, chunk = stream.append(longer, None, 2)
    assert answer == Appended(0, 0, is_repeated=False)
    assert chunk == Chunk(4, 0, 2, Batch.of([b"p2"], b"p", 2))


def test_an_old_epoch_is_refused_for_ever() -> None:
    stream = Sequencer()
    assert stream.append(AB, 0, 1)[0] == Appended(0, 0)
    assert stream.fence() == 1
    for _ in range(2):
        with pytest.raises(Fenced) as caught:
            stream.append(AB, 0, 1)
        assert caught.value.epoch == 1
    with pytest.raises(Fenced):
        stream.append(AB, 2, 1)
    assert stream.append(AB, 1, 1) == (Appended(1, 2), Chunk(2, 1, 1, AB))
    assert stream.append(AB, None, 1)[0] == Appended(1, 4)


def test_who_was_fenced_still_learns_what_was_appended_before() -> None:
    stream = Sequencer()
    stream.append(P0, 0, 1)
    stream.fence()
    assert stream.append(P0, 0, 1) == (Appended(1, 0, is_repeated=True), None)
    with pytest.raises(Fenced):
        stream.append(Batch.of([b"p0", b"p1", b"p2"], b"p", 0), 0, 1)
    with pytest.raises(SequenceReused):
        stream.append(Batch.of([b"x0", b"p1"], b"p", 0), 0, 1)


def test_what_is_refused_changes_nothing() -> None:
    stream = Sequencer()
    stream.append(P0, None, 1)
    before = stream.to_bytes()
    for batch, error in (
        (Batch.of([b"p9"], b"p", 9), OutOfSequence),
        (Batch.of([b"x0"] * 2, b"p", 0), SequenceReused),
        (Batch(b"", 0), InvalidAppend),
    ):
        answer, chunk = stream.apply(Append(batch, None, 99))
        assert (type(answer), chunk) == (error, None)
    assert stream.to_bytes() == before


def test_trimming_moves_the_first_offset_forward_only() -> None:
    stream = Sequencer()
    stream.append(AB, None, 1)
    assert [stream.trim(before) for before in (1, 0, 99)] == [1, 1, 2]
    assert stream.bounds == Bounds(2, 2)


def test_the_newest_snapshot_stays() -> None:
    stream = Sequencer()
    stream.append(AB, None, 1)
    for offset, data in ((1, b"one"), (2, b"two"), (1, b"late"), (2, b"two again")):
        stream.keep_snapshot(Snapshot(offset, data))
    assert stream.snapshot == Snapshot(2, b"two again")


def test_a_snapshot_of_what_is_not_there_is_refused() -> None:
    with pytest.raises(BeyondEnd) as caught:
        Sequencer().keep_snapshot(Snapshot(1, b""))
    assert caught.value.next == 0
    assert isinstance(caught.value, ValueError)


def test_a_snapshot_is_refused_when_what_follows_it_has_been_given_up() -> None:
    stream = Sequencer()
    stream.append(AB, None, 1)
    stream.trim(1)
    with pytest.raises(Truncated) as caught:
        stream.keep_snapshot(Snapshot(0, b"early"))
    assert caught.value.first == 1
    assert stream.snapshot is None
    stream.keep_snapshot(Snapshot(2, b"new"))
    stream.keep_snapshot(Snapshot(0, b"late"))  # nobody lacks it: a newer one is there
    assert stream.snapshot == Snapshot(2, b"new")


def test_a_snapshot_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SNAPSHOT_BYTES_MAX", 3)
    stream = Sequencer()
    answer, _ = stream.apply(KeepSnapshot(Snapshot(0, b"four")))
    assert isinstance(answer, InvalidSnapshot)
    assert stream.snapshot is None


COMMANDS: list[Command] = [
    Append(AB, None, 1),
    Append(P0, 0, 2),
    Fence(),
    Append(P0, 0, -3),
    Trim(1),
    KeepSnapshot(Snapshot(3, b"state")),
    KeepSnapshot(Snapshot(0, b"")),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda each: type(each).__name__)
def test_commands_come_back_from_their_octets(command: Command) -> None:
    assert decode(encode(command)) == command


def test_replicas_that_are_fed_octets_agree() -> None:
    one, other = Sequencer(), Sequencer()
    for command in COMMANDS:
        assert str(one.apply(command)) == str(other.apply(decode(encode(command))))
        other = Sequencer.from_bytes(other.to_bytes())
    assert one.to_bytes() == other.to_bytes()
    assert one.snapshot == other.snapshot == Snapshot(3, b"state")


@pytest.mark.parametrize(
    "data", [b"", b"\1", b"\2\1", b"\1\0", b"\1\7", b"\1\3\0", b"\1\1\0", encode(COMMANDS[0])[:25]]
)
def test_octets_that_are_no_command_are_told(data: bytes) -> None:
    with pytest.raises(Malformed):
        decode(data)


def test_octets_that_are_no_state_are_told() -> None:
    stream = Sequencer()
    for command in COMMANDS:
        stream.apply(command)
    data = stream.to_bytes()
    for length in range(len(data)):
        with pytest.raises(Malformed):
            Sequencer.from_bytes(data[:length])
    with pytest.raises(Malformed, match="version is 9"):
        Sequencer.from_bytes(b"\x09" + data[1:])
