"""A container's part in a backup: its data directory as of one moment, kept while it is copied.

Theory of operation. First every replica here is brought to what anybody may have been told of, and
that to the disk. Then, in one turn of the event loop, the end of the write-ahead log is noted, its
files from the oldest that is needed on are held, and all other files get hard links in
`DIR/backup`: they are replaced and removed under their names, and never changed. A process that is
killed at that moment leaves the same behind, so what opens a data directory after a crash opens a
copy of it, too. The log is copied up to the noted end only. One backup is taken at a time; one that
nobody asks for any more is let go.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cogwork import __version__
from cogwork.container.cluster.raft import is_replicated, stream_name
from cogwork.log.errors import FileMissing
from cogwork.log.file_header import FileHeader
from cogwork.log.file_name import file_name
from cogwork.log.position import number_of, position_of
from cogwork.plugin.engine.errors import ConsensusError, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.container.cluster.replication import Replication
    from cogwork.container.cluster.storage import Storage
    from cogwork.plugin.management import Row
    from cogwork.replication.member import Member

__all__ = ("BACKUP", "BackupSource")

BACKUP = "backup"
"""The folder of hard links in a data directory."""

WAL, STREAMS = "wal", "streams"

LEFT_OUT = frozenset({WAL, BACKUP, "sent", "state.json"})
"""The log is copied for itself; `sent` is about attempts that are in doubt after a restore anyway;
`state.json` is a dump for people."""

TEMPORARY = (".tmp", ".new")

CATCH_UP_S = 5.0
"""So long a replica may take to have what its leader has."""

PAUSE_S = 0.005
"""How often it is looked whether that is on the disk."""

FORGOTTEN_AFTER_S = 60.0
"""A backup is let go after so long without a request: its log would grow for ever."""


class _File(NamedTuple):
    """A file that is to be copied.

    Attributes:
        path: Below the data directory.
        size_bytes: How much of it is to be copied.
        length_bytes: How long the copy is to be: zeros follow.
        modified_ns: When it was changed last; a part of the log grows without that.
    """

    path: str
    size_bytes: int
    length_bytes: int
    modified_ns: int


class BackupSource:
    """Owned by the container."""

    def __init__(self, container_id: str, replication: Replication) -> None:
        """Initialize it; no backup is under way.

        Args:
            container_id: The container's id.
            replication: Has the data directory, and the replicas in it.
        """
        self._container_id = container_id
        self._replication = replication
        self._name = ""
        self._files: list[_File] = []
        self._since_s = self._asked_s = 0.0
        self._timer: asyncio.TimerHandle | None = None

    # -- for `$management`

    def rows(self) -> Iterator[Row]:
        """Yield the backup that is under way, if there is one."""
        if self._files:
            yield {
                "name": self._name,
                "files": len(self._files),
                "size_bytes": sum(each.size_bytes for each in self._files),
                "age_s": round(time.monotonic() - self._since_s, 3),
            }

    async def begin(self) -> Row:
        """Keep the data directory as it is now; return what there is to know of it.

        Raises:
            ValueError: There is no data directory, or another backup is under way.
            OSError: Files cannot be linked there.
        """
        storage = self._replication.storage
        if storage is None:
            raise ValueError(
                "this container has no data directory (data_dir, or --data DIR): it keeps nothing "
                "that could be backed up"
            )
        if self._name:
            raise ValueError(f"backup {self._name} of this container is under way: try again later")
        self._name = secrets.token_hex(8)
        try:
            behind = await self._catch_up()
            await self._make_durable(storage)
            return self._keep(storage) | {"behind": behind}
        except BaseException:
            self.end(self._name)
            raise

    def files(self, name: str, index: int, count: int) -> list[list[object]]:
        """Return some files: path, octets to copy, length, and the time of the last change.

        Raises:
            ValueError: There is no such backup.
        """
        self._demand(name)
        return [list(each) for each in self._files[index : index + count]]

    async def read(self, name: str, number: int, offset: int, size_bytes: int) -> bytes:
        """Return a part of a file.

        Args:
            name: The backup's.
            number: The file's place in the list, from 0.
            offset: From where on.
            size_bytes: How much; less comes at its end.

        Raises:
            ValueError: There is no such backup or file.
            OSError: It cannot be read.
        """
        storage = self._demand(name)
        if number >= len(self._files):
            raise ValueError(f"backup {name} has {len(self._files)} files, none is {number}")
        file = self._files[number]
        is_log = file.path.startswith(f"{WAL}/")
        path = storage.path / file.path if is_log else storage.path / BACKUP / file.path
        left = max(0, file.size_bytes - offset)
        return await asyncio.to_thread(_read, path, offset, min(size_bytes, left))

    def end(self, name: str) -> bool:
        """Let a backup go; return whether there was one."""
        if not name or name != self._name:
            return False
        self._name, self._files = "", []
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        storage = self._replication.storage
        if storage is not None:
            storage.wal.held_number = None
            shutil.rmtree(storage.path / BACKUP, ignore_errors=True)
        return True

    def close(self) -> None:
        """Let go of what is under way."""
        self.end(self._name)

    # -- how it is done

    async def _catch_up(self) -> list[str]:
        """Have each replica here have what anybody was told of; return which have not.

        Where nobody leads, what is here is copied as it is: nothing new is confirmed meanwhile.
        """
        members = self._members()
        waits = [asyncio.wait_for(_current(each), CATCH_UP_S) for each in members]
        found = await asyncio.gather(*waits, return_exceptions=True)
        for each in found:
            if isinstance(each, BaseException) and not isinstance(
                each, ConsensusError | TimeoutError
            ):
                raise each
        pairs = zip(members, found, strict=True)
        return sorted(each.name for each, problem in pairs if problem is not None)

    def _members(self) -> list[Member]:
        streams = self._replication.service.streams.values()
        return [each.member for each in streams if each.member is not None]

    @staticmethod
    async def _make_durable(storage: Storage) -> None:
        """Wait until the log is durable up to where it ends now."""
        wal = storage.wal
        end_lsn = wal.end_lsn
        wal.flush()
        while wal.durable_lsn < end_lsn:
            if wal.takes_nothing:
                raise ValueError("the disk takes nothing: nothing more can be backed up now")
            await asyncio.sleep(PAUSE_S)

    def _keep(self, storage: Storage) -> Row:
        """Hold the log and link all other files, in this turn."""
        wal = storage.wal
        wal.held_number, end_lsn = wal.oldest_number, wal.durable_lsn
        files = [*_log_files(storage.path / WAL, wal.held_number, end_lsn)]
        link_root = storage.path / BACKUP
        shutil.rmtree(link_root, ignore_errors=True)
        files += _linked(storage.path, link_root)
        self._files = files
        self._since_s = self._asked_s = time.monotonic()
        self._watch()
        cluster = self._replication.cluster.facts()
        return {
            "name": self._name,
            "container": self._container_id,
            "cluster": cluster["uuid"],
            "log": _key_of(storage.path / WAL, end_lsn).hex(),
            "version": __version__,
            "time_ms": time.time_ns() // 1_000_000,
            "end_lsn": end_lsn,
            "files": len(files),
            "size_bytes": sum(each.size_bytes for each in files),
            "streams": {each.name: each.replica.state.next_offset for each in self._members()},
            "absent": self._absent(),
        }

    def _absent(self) -> list[str]:
        """List what is declared in the cluster and has no replica here."""
        declarations = self._replication.cluster.declarations
        here = {each.name for each in self._members()}
        declared = [*declarations.all("stream"), *declarations.all("queue")]
        found = []
        for each in declared:
            name = stream_name(each.kind, each.vhost, each.name)
            if name not in here:
                engine = each.options.get("engine", "raft")
                why = "no replica here" if is_replicated(each) else f"on the engine {engine}"
                found.append(f"{each.kind} {each.name} ({why})")
        return sorted(found)

    def _demand(self, name: str) -> Storage:
        """Return where the files of a backup are.

        Raises:
            ValueError: There is no such backup.
        """
        storage = self._replication.storage
        if not name or name != self._name or storage is None:
            raise ValueError(f"there is no backup {name!r:.80} under way any more: begin again")
        self._asked_s = time.monotonic()
        return storage

    def _watch(self) -> None:
        """Let the backup go where nobody has asked for anything for long."""
        left_s = self._asked_s + FORGOTTEN_AFTER_S - time.monotonic()
        if left_s <= 0:
            self._timer = None
            self.end(self._name)
            return
        self._timer = asyncio.get_running_loop().call_later(left_s, self._watch)


async def _current(member: Member) -> None:
    """Wait until a replica has all that anybody can have been told of.

    Raises:
        ConsensusError: That cannot be found out.
    """
    if not member.is_current:
        raise Unavailable("this replica does not have what the others have")
    reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    member.when_current(partial(_reach, reached))
    await reached


def _reach(reached: asyncio.Future[None]) -> None:
    if not reached.done():
        reached.set_result(None)


def _log_files(folder: Path, oldest: int, end_lsn: int) -> Iterator[_File]:
    """Yield the log's files that are needed, the last one up to where it is durable.

    Raises:
        FileMissing: One is not there.
    """
    last = number_of(end_lsn)
    for number in range(oldest, last + 1):
        path = folder / file_name(number)
        try:
            length = path.stat().st_size
        except FileNotFoundError as error:
            raise FileMissing(str(path)) from error
        size = position_of(end_lsn) if number == last else length
        yield _File(f"{WAL}/{path.name}", size, length, 0)


def _linked(root: Path, link_root: Path) -> list[_File]:
    """Link all files of a data directory but the log's; some 20 µs each.

    Raises:
        OSError: The file system has no hard links, or no room.
    """
    found = []
    for folder, names, files in os.walk(root):
        here = Path(folder)
        if here == root:
            names[:] = [each for each in names if each not in LEFT_OUT]
        below = here.relative_to(root)
        (link_root / below).mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in files:
            is_left_out = name in LEFT_OUT if here == root else False
            if is_left_out or name.endswith(TEMPORARY):
                continue
            status = (here / name).stat()
            os.link(here / name, link_root / below / name)
            size = status.st_size
            found.append(_File((below / name).as_posix(), size, size, status.st_mtime_ns))
    return sorted(found)


def _key_of(folder: Path, end_lsn: int) -> bytes:
    """Return what tells this log from others of the container."""
    path = folder / file_name(number_of(end_lsn))
    with path.open("rb") as file:
        return FileHeader.decode(file.read(1024), str(path)).key


def _read(path: Path, offset: int, size_bytes: int) -> bytes:
    with path.open("rb") as file:
        return os.pread(file.fileno(), size_bytes, offset)
