"""Making a new cluster of one container whose others are lost for good, from its data directory.

Theory of operation. The container is stopped. Each of its replicas gets two entries more: a
membership in which this container is alone, and a fence, which begins a new epoch of the stream.
The records of a queue get one more, which says that its items may have been given out and settled
by those that are lost: they are parked or redelivered, and their attempts have higher numbers.
What its log has counts as committed from then on, whether or not a majority had it; what the others
had beyond that is lost. `$cluster` gets a record that says so: what is held here is placed here
alone. The directory gets a new UUID, so that none of the lost containers is taken for a member, if
it comes back after all.
"""

from __future__ import annotations

import secrets
import time
import uuid
from typing import TYPE_CHECKING, NamedTuple, cast

from cogwork.cluster.declarations import Recover, encode
from cogwork.config.errors import DataDirectoryError
from cogwork.container.cluster.cluster import GROUP
from cogwork.container.cluster.identity import Kept, read_kept, write_kept
from cogwork.container.cluster.raft import FIRST_GROUP, QUEUES
from cogwork.container.journals.records import CHANGES, END, GONE
from cogwork.container.journals.records import FIRST_GROUP as FIRST_QUEUE
from cogwork.dataplane.disk import Disk
from cogwork.dataplane.queue.journal import recovered_entry
from cogwork.log.directory import Directory
from cogwork.log.disk_queue import DiskQueue
from cogwork.log.wal import Wal
from cogwork.plugin.engine.batch import Batch
from cogwork.plugin.engine.commands import Append, Fence
from cogwork.plugin.engine.sequencer import encode as encode_command
from cogwork.raft.entries import Entry, Kind
from cogwork.raft.membership import Membership
from cogwork.raft.ready import HardState, Write
from cogwork.replication.entry import encode_entry
from cogwork.replication.journal import Journal
from cogwork.replication.offline import KeptReplica, container_of, kept_replicas

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from cogwork.log.record import Record
    from cogwork.raft.storage import Storage

__all__ = ("Recovered", "recover")


class Recovered(NamedTuple):
    """What became of a cluster.

    Attributes:
        uuid: The new one's.
        streams: What is held by name, with the offset after the last record.
        problems: Why replicas could not be recovered; they are left as they are.
    """

    uuid: str
    streams: dict[str, int]
    problems: list[str]


def recover(data_dir: Path, only: str, *, has_own_queues: bool = False) -> Recovered:
    """Make a new cluster of one container; what it has stays.

    Args:
        data_dir: Its data directory; no process uses it.
        only: The container's id.
        has_own_queues: Whether items of queues on its own disk may have been settled since, too:
            the directory is an older copy.

    Raises:
        DataDirectoryError: It is another container's, or has nothing of a cluster.
        LogError: It is in use, or damaged.
    """
    found = container_of(data_dir)
    if found != only:
        raise DataDirectoryError(str(data_dir), f"it is container {found!r}'s, not {only!r}'s")
    cluster = str(uuid.uuid4())
    queue = DiskQueue(Disk())
    try:
        wal = Wal(Directory(data_dir / "wal"), queue, only)
        try:
            queues = _own_queues(wal.recover())
            made = _append_all(data_dir, only, wal, cluster)
            if has_own_queues:
                for group in queues:
                    wal.append(group, CHANGES, 0, 0, recovered_entry(_now_ms()))
                wal.flush()
        finally:
            wal.close()
    finally:
        queue.close()
    if wal.durable_lsn < wal.end_lsn:
        raise DataDirectoryError(str(data_dir), wal.shortage or "it cannot be written to")
    kept = read_kept(data_dir) or Kept(secrets.token_hex(8))
    kept.uuid, kept.is_empty, kept.is_joined, kept.known_before = cluster, False, False, None
    kept.founders, kept.is_recovered, kept.primaries = {only: kept.token}, True, None
    write_kept(data_dir, kept)
    return made


def _own_queues(records: Iterable[Record]) -> list[int]:
    """Read a log; return the groups of the queues on the container's own disk."""
    ended: dict[int, int] = {}
    for record in records:
        if record.group >= FIRST_QUEUE and record.kind in (END, GONE):
            ended[record.group] = record.kind
    return [group for group, kind in ended.items() if kind == END]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _append_all(data_dir: Path, only: str, wal: Wal, cluster: str) -> Recovered:
    """Append to each replica what makes the container its only member."""
    replicas = kept_replicas(data_dir)
    sound = {group: each for group, each in replicas.items() if isinstance(each, KeptReplica)}
    if GROUP not in sound:
        raise DataDirectoryError(
            str(data_dir), f"it has no replica of $cluster: {replicas.get(GROUP, 'none is there')}"
        )
    problems = [str(each) for each in replicas.values() if isinstance(each, Exception)]
    held = sorted(group - FIRST_GROUP for group in sound if group > FIRST_GROUP)
    present = sound[GROUP].voters
    streams = {}
    for group, replica in sound.items():
        records = []
        if group == GROUP:
            records = [encode(Recover(cluster, only, held, present))]
        elif replica.declared.stream.startswith(QUEUES):
            records = [bytes((CHANGES,)) + recovered_entry(_now_ms())]
        _append(Journal(wal, group), replica, only, [Batch.of([each]) for each in records])
        if group != GROUP:
            streams[replica.declared.stream] = replica.next_offset
    wal.flush()
    return Recovered(cluster, streams, problems)


def _append(journal: Journal, replica: KeptReplica, only: str, records: list[Batch]) -> None:
    """Append the entries that make a container a replica's only member."""
    replayed = replica.replayed
    recovered = replayed.recovered(journal, cast("Storage", None))
    last = recovered.entries[-1] if recovered.entries else recovered.snapshot
    floor = replica.declared.floor[0]
    term = max(recovered.hard_state.term, last.term, floor) + 1
    now_ms = _now_ms()
    commands = [encode_command(Fence())]
    commands += [encode_command(Append(each, None, now_ms)) for each in records]
    membership = Membership((only,)).to_bytes()
    entries = (
        Entry(last.index + 1, term, Kind.MEMBERS, membership),
        Entry(last.index + 2, term, Kind.COMMAND, encode_entry(commands, now_ms)),
    )
    hard_state = HardState(term, None, recovered.hard_state.commit)
    journal.write(Write(1, hard_state, None, entries))
