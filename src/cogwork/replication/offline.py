"""What the replicas in a data directory hold, read without their container.

Theory of operation. A replica's segments have its older records, the write-ahead log has the
entries that follow the newest snapshot. Both are read as a start reads them, and nothing is
changed. What the newest entries say may not have been committed: only the other members know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cogwork.log.directory import Directory
from cogwork.log.errors import FileMissing
from cogwork.log.file_header import FileHeader
from cogwork.log.recovery import Recovery
from cogwork.log.segment import SUFFIX, Segment
from cogwork.plugin.engine.chunks import decode_chunk
from cogwork.plugin.engine.errors import Malformed
from cogwork.plugin.engine.sequencer import Sequencer
from cogwork.raft.entries import Kind
from cogwork.raft.membership import Membership
from cogwork.raft.snapshot import Snapshot
from cogwork.replication.entry import decode_entry
from cogwork.replication.files import Declared, KeptState, declared_in, state_in
from cogwork.replication.replayed import Replayed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cogwork.plugin.engine.batch import Chunk

__all__ = ("KeptRecord", "KeptReplica", "container_of", "kept_replicas")

WAL, STREAMS = "wal", "streams"
READ_BYTES = 1 << 20


class KeptRecord(NamedTuple):
    """One record.

    Attributes:
        offset: Its place.
        time_ms: When it was appended, in milliseconds since 1970 (UTC).
        epoch: The stream's when it was.
        is_certain: Whether it is known here to have been committed.
        data: The record.
    """

    offset: int
    time_ms: int
    epoch: int
    is_certain: bool
    data: bytes


class KeptReplica:
    """A replica's files, and what the write-ahead log has of it.

    Attributes:
        declared: What it is a replica of.
        replayed: Its entries in the log.
        state: The sequencer's, as of its newest segment; None before the first.
    """

    def __init__(self, folder: Path, replayed: Replayed) -> None:
        """Read what begins it.

        Raises:
            FileMissing: It has no declaration, or what comes before the log's entries is missing.
            Malformed: A file is damaged.
        """
        with Directory(folder, is_to_be_made=False) as directory:
            declared = declared_in(directory)
            if declared is None:
                raise FileMissing(directory.path_of("declaration.json"))
            self.declared: Declared = declared
            self.state: KeptState | None = state_in(directory)
        self.replayed = replayed
        self._folder = folder
        first = Snapshot(membership=Membership(tuple(declared.voters)))
        replayed.begin_at(first if self.state is None else self.state.snapshot)

    def records(self) -> Iterator[KeptRecord]:
        """Yield what it holds, in order.

        Raises:
            LogError: A segment is damaged.
        """
        sequencer = self.sequencer()
        for _ in self._tail(sequencer):  # what is given up at its end is not yielded
            pass
        first = sequencer.first_offset
        for chunk in self._sealed(first):
            yield from _records(chunk, first, is_certain=True)
            first = chunk.next_offset
        for chunk, is_certain in self._tail(self.sequencer()):
            yield from _records(chunk, first, is_certain=is_certain)

    @property
    def voters(self) -> list[str]:
        """Who votes, by the newest membership that it has."""
        state = self.state.snapshot.membership if self.state is not None else None
        found = tuple(self.declared.voters) if state is None else state.voters
        for entry in self.replayed.entries:
            if entry.kind == Kind.MEMBERS:
                found = Membership.from_bytes(entry.payload).voters
        return list(found)

    @property
    def next_offset(self) -> int:
        """The offset after its last record."""
        sequencer = self.sequencer()
        for _ in self._tail(sequencer):
            pass
        return sequencer.next_offset

    def _tail(self, sequencer: Sequencer) -> Iterator[tuple[Chunk, bool]]:
        """Apply the log's entries; yield what they append, and whether that is committed."""
        commit = self.replayed.hard_state.commit
        for entry in self.replayed.entries:
            if entry.kind == Kind.COMMAND:
                for command in decode_entry(entry.payload):
                    _, chunk = sequencer.apply(command)
                    if chunk is not None:
                        yield chunk, entry.index <= commit

    def sequencer(self) -> Sequencer:
        """Return the stream's state as of the newest segment."""
        return Sequencer() if self.state is None else Sequencer.from_bytes(self.state.content)

    def _sealed(self, first: int) -> Iterator[Chunk]:
        names = sorted(each.name for each in self._folder.glob(f"*{SUFFIX}"))
        with Directory(self._folder, is_to_be_made=False) as directory:
            for name in names:
                segment = Segment(directory, name)
                offset = max(first, segment.first_offset)
                while offset < segment.next_offset:
                    for block in segment.read(offset, READ_BYTES):
                        chunk = decode_chunk(block.data)
                        offset = chunk.next_offset
                        yield chunk


def _records(chunk: Chunk, first: int, *, is_certain: bool) -> Iterator[KeptRecord]:
    for offset, record in enumerate(chunk.batch.records(), chunk.offset):
        if offset >= first:
            yield KeptRecord(offset, chunk.time_ms, chunk.epoch, is_certain, record)


def container_of(data_dir: Path) -> str:
    """Return the id of the container that a data directory belongs to.

    Raises:
        FileMissing: There is no write-ahead log.
        LogError: Its newest file is damaged.
    """
    files = sorted((data_dir / WAL).glob("*.wal"))
    if not files:
        raise FileMissing(str(data_dir / WAL))
    return FileHeader.decode(files[-1].read_bytes(), str(files[-1])).container_id


def kept_replicas(data_dir: Path) -> dict[int, KeptReplica | Exception]:
    """Return the replicas in a data directory by group; in place of one, why it cannot be read.

    Raises:
        LogError: The write-ahead log is missing or damaged.
        Malformed: It has records that say nothing.
    """
    folder = data_dir / STREAMS
    names = [each.name for each in folder.iterdir()] if folder.is_dir() else []
    groups = sorted(int(name) for name in names if name.isdecimal())
    replayed = {group: Replayed() for group in groups}
    container = container_of(data_dir)
    with Directory(data_dir / WAL, is_to_be_made=False) as directory:
        for record in Recovery(directory, container).records():
            if record.group in replayed:
                replayed[record.group].take(record)
    found: dict[int, KeptReplica | Exception] = {}
    for group in groups:
        try:
            found[group] = KeptReplica(folder / str(group), replayed[group])
        except (FileMissing, Malformed, OSError) as error:
            found[group] = error
    return found
