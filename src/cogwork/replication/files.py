"""What a replica keeps on disk beside the write-ahead log: segments, and its state as of the last.

A replica's directory holds segments, `declaration.json` with what it is a replica of, and
`state`, which is replaced as a whole: the checksum of the rest (4), the version (1), the index and
the term of the last entry in it (8 each), the length of the membership (4), the membership, and the
sequencer's state.
"""

from __future__ import annotations

import struct
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from google_crc32c import value as crc32c

from cogwork.log.block import Block
from cogwork.log.disk_queue import Operation
from cogwork.log.errors import FileMissing
from cogwork.log.segment import SUFFIX
from cogwork.log.segment_store import SegmentStore
from cogwork.plugin.engine.chunks import chunk_parts
from cogwork.plugin.engine.errors import Malformed
from cogwork.raft.membership import Membership
from cogwork.raft.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from cogwork.log.directory import Directory
    from cogwork.log.disk_queue import DiskQueue
    from cogwork.plugin.engine.batch import Chunk

__all__ = (
    "Declared",
    "KeptState",
    "ReplicaFiles",
    "declared_in",
    "remove",
    "state_in",
    "tag_of",
)

VERSION = 1
STATE_NAME = "state"
DECLARATION_NAME = "declaration.json"
GIVEN_UP_NAME = "given-up"
"""What a declaration is called once nothing that it stands for is wanted any more."""

WRITE_BYTES = 1 << 20

_HEAD = struct.Struct(">IBQQI")
_CHECKSUM_BYTES = 4


class Declared(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a replica is one of.

    Attributes:
        stream: The stream's name.
        group: The group's number.
        voters: The first members; none for a replica that joined later.
        floor: Of one that began again: see `raft.core.Recovered`.
    """

    stream: str
    group: int
    voters: list[str]
    floor: tuple[int, int] = (0, 0)


class _KeptDeclaration(Declared, frozen=True):
    """The same as it is written: a name that is another one must not be taken for a member's.

    Attributes:
        checksum: Of the JSON text of the rest; None in those of before.
    """

    checksum: int | None = None

    def declared(self) -> Declared:
        """Return what it says.

        Raises:
            ValueError: It has been changed.
        """
        bare = Declared(self.stream, self.group, self.voters, self.floor)
        if self.checksum not in (None, tag_of(msgspec.json.encode(bare))):
            raise ValueError("its checksum is another one")
        return bare


class KeptState(NamedTuple):
    """A replica's state, and what the group calls it.

    Attributes:
        snapshot: Index, term and membership; size and tag of the content.
        content: The sequencer's state.
    """

    snapshot: Snapshot
    content: bytes

    @classmethod
    def of(cls, index: int, term: int, membership: Membership, content: bytes) -> KeptState:
        """Name a content."""
        return cls(Snapshot(index, term, membership, len(content), tag_of(content)), content)


def tag_of(content: bytes) -> int:
    """Return what a snapshot's tag says of its content."""
    checksum: int = crc32c(content)
    return checksum


class ReplicaFiles:
    """A replica's directory.

    Attributes:
        segments: What is sealed.
        state: The last one that was kept; None before the first.
    """

    def __init__(self, directory: Directory, queue: DiskQueue) -> None:
        """Open what is there; what is left of a replica that was given up goes.

        Raises:
            FileMissing: There is no declaration of what is there.
            LogError: A segment cannot be used.
            Malformed: The state cannot be used.
        """
        self._directory = directory
        names = directory.names()
        if DECLARATION_NAME not in names:
            if GIVEN_UP_NAME not in names and any(map(_is_kept, names)):
                raise FileMissing(directory.path_of(DECLARATION_NAME))
            directory.clear(last=GIVEN_UP_NAME)
        self.segments = SegmentStore(directory, queue)
        self.state = state_in(directory)

    def declared(self) -> Declared | None:
        """Read what this is a replica of; None where that was not written.

        Raises:
            Malformed: It cannot be read.
        """
        return declared_in(self._directory)

    @property
    def state_path(self) -> str:
        """Where the state is, or would be."""
        return self._directory.path_of(STATE_NAME)

    def declaring(self, declared: Declared) -> Generator[Operation, None, None]:
        """Write what this is a replica of."""
        checksum = tag_of(msgspec.json.encode(declared))
        kept = _KeptDeclaration(
            declared.stream, declared.group, declared.voters, declared.floor, checksum
        )
        yield from self._replacing(DECLARATION_NAME, msgspec.json.encode(kept))

    def sealing(
        self, chunks: Iterable[Chunk], state: KeptState
    ) -> Generator[Operation, None, KeptState]:
        """Make a segment of chunks, if there are any, then keep the state as of their end."""
        blocks = self.blocks(chunks)
        first = next(blocks, None)
        if first is not None:
            yield from self.segments.sealing(chain((first,), blocks))
        yield from self._replacing(STATE_NAME, _encode(state))
        self.state = state
        return state

    def nothing(self) -> Operation:
        """Do nothing, but let others have their turn."""
        return Operation(self._directory.fd)

    @staticmethod
    def blocks(chunks: Iterable[Chunk]) -> Iterator[Block]:
        """Yield what a segment stores of chunks."""
        for chunk in chunks:
            front, payload = chunk_parts(chunk)
            yield Block(chunk.offset, chunk.batch.count, chunk.time_ms, payload, front)

    def _replacing(self, name: str, data: bytes) -> Generator[Operation, None, None]:
        temporary = name + ".tmp"
        fd = self._directory.create(temporary)
        try:
            for position in range(0, len(data), WRITE_BYTES):
                yield Operation(fd, position, data[position : position + WRITE_BYTES])
            yield Operation.sync_of(fd)
        finally:
            self._directory.close_file(fd)
        self._directory.rename(temporary, name)
        yield Operation.sync_of(self._directory.fd)

    def remove(self) -> None:
        """Remove everything, the directory too."""
        remove(self._directory)

    def close(self) -> None:
        """Let the directory go."""
        self._directory.close()


def declared_in(directory: Directory) -> Declared | None:
    """Return what a directory is a replica of; None where that was not written.

    Raises:
        Malformed: It cannot be read.
    """
    if DECLARATION_NAME not in directory.names():
        return None
    try:
        data = directory.read(DECLARATION_NAME)
        return msgspec.json.decode(data, type=_KeptDeclaration).declared()
    except ValueError as error:  # of the text, or of what it says
        path = directory.path_of(DECLARATION_NAME)
        raise Malformed(f"a replica's declaration ({path})", str(error)) from error


def state_in(directory: Directory) -> KeptState | None:
    """Return the newest state that a directory has; None before the first.

    Raises:
        Malformed: It cannot be read.
    """
    if STATE_NAME not in directory.names():
        return None
    return _decode(directory.read(STATE_NAME), directory.path_of(STATE_NAME))


def remove(directory: Directory) -> None:
    """Remove a replica's directory, which from the first step on is known to be given up."""
    if DECLARATION_NAME in directory.names():
        directory.rename(DECLARATION_NAME, GIVEN_UP_NAME)
        directory.sync()
    directory.remove_all(last=GIVEN_UP_NAME)


def _is_kept(name: str) -> bool:
    """Return whether a file has something of a stream."""
    return name == STATE_NAME or name.endswith(SUFFIX)


def _encode(state: KeptState) -> bytes:
    membership = state.snapshot.membership.to_bytes()
    index, term = state.snapshot.index, state.snapshot.term
    rest = _HEAD.pack(0, VERSION, index, term, len(membership))[_CHECKSUM_BYTES:]
    rest += membership + state.content
    return tag_of(rest).to_bytes(_CHECKSUM_BYTES, "big") + rest


def _decode(data: bytes, path: str) -> KeptState:
    if len(data) < _HEAD.size:
        raise Malformed(f"a replica's state ({path})", "it is cut short")
    checksum, version, index, term, length = _HEAD.unpack_from(data)
    if tag_of(data[_CHECKSUM_BYTES:]) != checksum:
        raise Malformed(f"a replica's state ({path})", "its checksum is another one")
    if version != VERSION:
        raise Malformed(f"a replica's state ({path})", f"its version is {version}, not {VERSION}")
    end = _HEAD.size + length
    return KeptState.of(index, term, Membership.from_bytes(data[_HEAD.size : end]), data[end:])
