"""What a replica begins with: what its directory and the write-ahead log have kept of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.log.errors import FileMissing
from cogwork.log.segment import segment_name
from cogwork.plugin.engine.errors import Malformed
from cogwork.plugin.engine.sequencer import Sequencer
from cogwork.raft.membership import Membership
from cogwork.raft.snapshot import Snapshot
from cogwork.replication.files import Declared
from cogwork.replication.replica import Replica
from cogwork.replication.steps import run

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cogwork.log.disk_queue import DiskQueue
    from cogwork.raft.core import Recovered
    from cogwork.raft.group import Group
    from cogwork.replication.files import ReplicaFiles
    from cogwork.replication.journal import Journal
    from cogwork.replication.member_storage import MemberStorage
    from cogwork.replication.replayed import Replayed
    from cogwork.replication.stream import Stream

__all__ = ("declare", "recover", "replica_of")


async def declare(
    stream: Stream,
    own: str,
    files: ReplicaFiles,
    queue: DiskQueue,
    void: Callable[[], Awaitable[None]],
    *,
    rejoin: Callable[[], Awaitable[tuple[int, int] | None]],
) -> Declared:
    """See that a directory is of a stream; return what it is a replica of.

    Args:
        stream: Which one.
        own: The container's id.
        files: The directory.
        queue: The way to the disk.
        void: Has the log say that what it has is of a replica that was given up. Called for one
            that joins, which has no first members: once it is declared, the log is its own.
        rejoin: Tells with which floor a replica begins again in a new directory; None where it
            was never there before.

    Raises:
        Malformed: It is another one's.
        Unavailable: The log takes nothing now.
        OSError: It could not be written.
    """
    declared = files.declared()
    if declared is None:
        floor = await rejoin()
        voters = stream.placement.first_voters(own) if floor is None else []
        declared = Declared(stream.name, stream.number, voters, floor or (0, 0))
        if not declared.voters:
            await void()
        await run(queue, files.declaring(declared))
    elif (declared.stream, declared.group) != (stream.name, stream.number):
        raise Malformed(f"a replica of {stream.name}", f"it is one of {declared.stream}")
    return declared


def recover(
    replayed: Replayed,
    journal: Journal,
    storage: MemberStorage,
    files: ReplicaFiles,
    voters: list[str],
) -> Recovered:
    """Return what the group begins with: its newest snapshot, and the entries that follow.

    Raises:
        FileMissing: There is no state, and the log does not begin with the first entry.
        Malformed: They do not fit.
    """
    first = Snapshot(0, 0, Membership(tuple(voters)))
    try:
        replayed.begin_at(first if files.state is None else files.state.snapshot)
    except Malformed:
        if files.state is None:
            raise FileMissing(files.state_path) from None
        raise
    return replayed.recovered(journal, storage)


def replica_of(files: ReplicaFiles, group: Group, report: Callable[[str], None]) -> Replica:
    """Return the stream's state as of the snapshot.

    Raises:
        FileMissing: The last segment is not there: its records are in no entry of the log.
    """
    segments = files.segments
    state = None if files.state is None else Sequencer.from_bytes(files.state.content)
    if state is not None and segments.segments:
        end = segments.segments[-1].next_offset
        if end < state.next_offset:
            raise FileMissing(f"{segments.path}/{segment_name(end)}")
    return Replica(
        segments, report, state=state, applied=group.applied, replays_to=group.last_index
    )
