"""What a replica keeps in memory and in segments, while records are given up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cogwork.dataplane.disk import Disk
from cogwork.log.directory import Directory
from cogwork.log.disk_queue import DiskQueue
from cogwork.plugin.engine.batch import Batch
from cogwork.plugin.engine.errors import Unavailable
from cogwork.plugin.engine.sequencer import Append, Sequencer, Trim, encode
from cogwork.raft.membership import Membership
from cogwork.raft.snapshot import Snapshot
from cogwork.replication.entry import encode_entry
from cogwork.replication.files import Declared, KeptState, ReplicaFiles, tag_of
from cogwork.replication.replica import Replica

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MEMBERS = Membership(("a",))


class Kept:
    """A replica with a directory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.queue = DiskQueue(Disk())
        self.failures: list[Exception] = []
        self.reports: list[str] = []
        self.open()
        self.queue.start(self.files.declaring(Declared("s", 17, ["a"])), _ignore, _ignore)
        self.queue.finish()

    def open(self) -> None:
        self.files = ReplicaFiles(Directory(self.path), self.queue)
        state = self.files.state
        known = (Sequencer.from_bytes(state.content), state.snapshot.index) if state else (None, 0)
        self.replica = Replica(
            self.files.segments, self.reports.append, state=known[0], applied=known[1]
        )

    def append(self, *bodies: bytes) -> None:
        self._apply(encode(Append(Batch.of(bodies), None, 1_000)))

    def trim(self, before: int) -> None:
        self._apply(encode(Trim(before)))

    def _apply(self, command: bytes) -> None:
        self.replica.apply(self.replica.applied + 1, encode_entry([command], 1_000))

    def begin_sealing(self) -> None:
        sealing = self.replica.begin_sealing()
        snapshot = Snapshot(sealing.index, 1, MEMBERS, len(sealing.state), tag_of(sealing.state))
        steps = self.files.sealing(sealing.chunks, KeptState(snapshot, sealing.state))
        self.queue.start(steps, lambda _: self.replica.sealed(), self._failed)

    def seal(self) -> None:
        self.begin_sealing()
        self.queue.finish()

    def _failed(self, error: Exception) -> None:
        self.failures.append(error)
        self.replica.not_sealed()

    def bodies(self) -> list[bytes]:
        """Read all of it, as a reader would."""
        found: list[bytes] = []
        offset = self.replica.state.first_offset
        while chunks := self.replica.read(offset, 1):
            for chunk in chunks:
                found += chunk.batch.records()
                offset = chunk.next_offset
        return found


def _ignore(_: object) -> None:
    """Nothing follows."""


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    made = Kept(tmp_path / "replica")
    yield made
    made.files.close()
    made.queue.close()


@pytest.mark.parametrize("fetched", [(6,), (6, 9), (3, 6, 12)])
def test_what_is_fetched_while_entries_go_on_leaves_no_gap(
    kept: Kept, fetched: tuple[int, ...]
) -> None:
    """A leader's snapshot has records up to 12; its last ones are fetched after entries came."""
    records = [b"%d" % number for number in range(12)]
    other = Replica(kept.files.segments, kept.reports.append)
    for index, record in enumerate(records):
        command = encode(Append(Batch.of([record]), None, 1_000))
        other.apply(index + 1, encode_entry([command], 1_000))
    chunks = other.read(0, 1 << 20)
    kept.append(records[0])
    kept.append(records[1])
    before = 0
    for end in fetched:
        steps = kept.files.segments.sealing(kept.files.blocks(chunks[before:end]))
        kept.queue.start(steps, _ignore, kept.failures.append)
        kept.queue.finish()
        for number in range(kept.replica.state.next_offset, end - 1):
            kept.append(records[number])
            assert kept.bodies()[: number + 1] == records[: number + 1]
        before = end
    for number in range(kept.replica.state.next_offset, 12):
        kept.append(records[number])
        assert kept.bodies()[: number + 1] == records[: number + 1]
    assert (kept.failures, kept.reports) == ([], [])


def test_a_gap_is_no_end_and_others_are_asked(kept: Kept) -> None:
    """While it seals, nothing of what memory has is let go."""
    other = Replica(kept.files.segments, kept.reports.append)
    commands = [encode(Append(Batch.of([b"%d" % number]), None, 1_000)) for number in range(6)]
    for index, command in enumerate(commands):
        other.apply(index + 1, encode_entry([command], 1_000))
    kept.append(b"0")
    steps = kept.files.segments.sealing(kept.files.blocks(other.read(0, 1 << 20)[:4]))
    kept.queue.start(steps, _ignore, kept.failures.append)
    kept.queue.finish()
    kept.replica.begin_sealing()
    for number, next_offset in ((1, 2), (2, 3), (3, 4), (4, 5)):
        kept.append(b"%d" % number)
        assert kept.replica.state.next_offset == next_offset
        with pytest.raises(Unavailable):
            kept.replica.read(1, 1 << 20)
    assert [chunk.offset for chunk in kept.replica.read(4, 1 << 20)] == [4]


@pytest.mark.parametrize("before", [1, 2, 3, 4, 5, 6, 7])
def test_what_is_given_up_before_it_is_sealed_leaves_a_segment_that_follows(
    kept: Kept, before: int
) -> None:
    kept.append(b"0", b"1", b"2")
    kept.seal()
    kept.append(b"3", b"4")
    kept.append(b"5", b"6")
    kept.trim(before)
    left = [b"%d" % number for number in range(before, 7)]
    assert kept.bodies() == left
    kept.seal()
    assert kept.bodies() == left
    kept.append(b"7", b"8")
    kept.seal()
    assert kept.failures == []
    assert kept.bodies() == [*left, b"7", b"8"]
    kept.files.close()
    kept.open()
    assert kept.bodies() == [*left, b"7", b"8"]


def test_what_is_given_up_while_a_segment_is_made_goes_when_it_is_there(kept: Kept) -> None:
    kept.append(b"0", b"1", b"2")
    kept.seal()
    kept.append(b"3", b"4")
    kept.begin_sealing()
    kept.append(b"5", b"6")
    kept.trim(6)
    kept.queue.finish()
    assert kept.bodies() == [b"6"]
    kept.seal()
    kept.append(b"7")
    kept.seal()
    assert kept.failures == []
    assert kept.bodies() == [b"6", b"7"]


def test_what_was_cleared_up_to_the_middle_of_a_chunk_goes_on_there(kept: Kept) -> None:
    kept.append(b"0", b"1", b"2")
    kept.seal()
    # A leader's snapshot began with the last record of the next chunk, and was never taken.
    kept.files.segments.clear(4)
    kept.append(b"3", b"4")
    kept.append(b"5", b"6")
    kept.trim(4)
    kept.seal()
    assert kept.failures == []
    while kept.replica.let_go(1):
        pass
    kept.append(b"7")
    kept.seal()
    assert kept.failures == []
    assert kept.bodies() == [b"4", b"5", b"6", b"7"]
