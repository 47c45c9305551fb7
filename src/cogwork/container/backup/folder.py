"""A backup as files: `DIR/CONTAINER/backup.json`, and what it names beside itself.

Theory of operation. Each run has a folder of its own for what it has copied: `000001`, `000002`.
`backup.json` says of each file of the data directory in which parts it is there, each with its
SHA-256. A file that has not changed is the part of an earlier run; the write-ahead log only grows,
so of each of its files a run adds what came since the one before. `backup.json` is replaced when
all that it names is on the disk: a run that ends in the middle leaves the backup as it was. What it
names no more goes after that.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec

from cogwork.container.backup.errors import BackupDamaged, BackupError, NoBackup, UnknownFormat
from cogwork.log.directory import opened_privately

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("FORMAT", "BackupFile", "BackupFolder", "Manifest", "Part")

FORMAT = 1
"""The version of `backup.json`."""

MANIFEST_NAME = "backup.json"
DIRECTORY_MODE = 0o700
READ_BYTES = 1 << 20


class Part(msgspec.Struct, frozen=True):
    """Some octets of a file.

    Attributes:
        stored: Where they are, below the backup's folder.
        size_bytes: How many.
        sha256: Of them, in hexadecimal.
    """

    stored: str
    size_bytes: int
    sha256: str


class BackupFile(msgspec.Struct, frozen=True):
    """A file of the data directory.

    Attributes:
        path: Below the data directory.
        length_bytes: How long it was: zeros follow its parts.
        modified_ns: When it was changed last, as the container says.
        parts: What it is made of, in order.
    """

    path: str
    length_bytes: int
    modified_ns: int
    parts: list[Part]

    @property
    def size_bytes(self) -> int:
        """Of all parts."""
        return sum(each.size_bytes for each in self.parts)


class Manifest(msgspec.Struct, frozen=True):
    """What a backup is.

    Attributes:
        container: Whose data directory it is of.
        cluster: The UUID of its cluster.
        log: The key of its write-ahead log, in hexadecimal: another one is another data directory.
        version: Of cogwork, which made the files.
        time_ms: As of when it is, in milliseconds since 1970 (UTC).
        run: The number of the newest run.
        files: All files.
        streams: The offset after the last record of each replica.
        absent: What the cluster has declared and this container has no replica of.
        behind: Replicas that may not have had all that others had.
    """

    container: str
    cluster: str
    log: str
    version: str
    time_ms: int
    run: int
    files: list[BackupFile]
    streams: dict[str, int]
    absent: list[str]
    behind: list[str]


class _Written(msgspec.Struct):
    """The same as it is written.

    Attributes:
        format: The version.
        sha256: Of the octets of `backup`.
        backup: The manifest.
    """

    format: int
    sha256: str
    backup: msgspec.Raw


class _Format(msgspec.Struct):
    """As much as every version of the file says."""

    format: int


class BackupFolder:
    """The backup of one container.

    Attributes:
        path: Where it is.
    """

    def __init__(self, path: Path) -> None:
        """Initialize it; nothing is read or made.

        Args:
            path: Where it is, or will be.
        """
        self.path = path

    @classmethod
    def of(cls, folder: Path, container: str) -> BackupFolder:
        """Return where a container's is below a folder for backups."""
        return cls(folder / quote(container, safe=" "))

    @classmethod
    def all_in(cls, folder: Path) -> list[BackupFolder]:
        """List the backups below a folder.

        Raises:
            NoBackup: There is none.
        """
        found = sorted(each.parent for each in folder.glob(f"*/{MANIFEST_NAME}"))
        if not found:
            what = "there is no backup" if folder.is_dir() else "there is no such directory"
            raise NoBackup(
                str(folder), f"{what} (expected what `cogwork backup create --to` has written)"
            )
        return [cls(each) for each in found]

    def read(self) -> Manifest | None:
        """Return what is there; None for nothing.

        Raises:
            BackupDamaged: It cannot be read.
            UnknownFormat: It was made by a later version.
        """
        path = self.path / MANIFEST_NAME
        try:
            octets = path.read_bytes()
            found = msgspec.json.decode(octets, type=_Format).format
            if found > FORMAT:
                raise UnknownFormat(
                    str(path),
                    f"the backup has format {found}, and this version of cogwork knows {FORMAT}: "
                    "use the version that made it, or a later one",
                )
            written = msgspec.json.decode(octets, type=_Written)
            if hashlib.sha256(written.backup).hexdigest() != written.sha256:
                raise BackupDamaged(str(path), "it is not what was written (its SHA-256 differs)")
            return msgspec.json.decode(written.backup, type=Manifest)
        except FileNotFoundError:
            return None
        except msgspec.MsgspecError as error:
            raise BackupDamaged(str(path), f"it is not what was written ({error})") from error

    def demand(self) -> Manifest:
        """Return what is there.

        Raises:
            BackupError: It cannot be read.
            NoBackup: Nothing is there.
        """
        found = self.read()
        if found is None:
            raise NoBackup(str(self.path), f"there is no backup (no {MANIFEST_NAME})")
        return found

    # -- writing

    def demand_place(self) -> None:
        """See that this can be a backup's place: it is empty, or has one.

        Raises:
            BackupError: It has something else.
        """
        above = self.path.parent
        others = above.is_dir() and any(above.iterdir())
        if others and not any(above.glob(f"*/{MANIFEST_NAME}")):
            text = "it is not empty and holds no backup (expected an empty directory)"
            raise BackupError(str(above), text)

    def begin_run(self, run: int) -> None:
        """Make the folder of a run, and remove what one left that never ended."""
        folder = self.path / run_name(run)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(DIRECTORY_MODE, parents=True)

    def commit(self, manifest: Manifest) -> None:
        """Have a manifest count from now on, and remove what it does not name."""
        octets = msgspec.json.encode(manifest)
        digest = hashlib.sha256(octets).hexdigest()
        written = _Written(FORMAT, digest, msgspec.Raw(octets))
        new = self.path / f"{MANIFEST_NAME}.new"
        with open(new, "wb", opener=opened_privately) as file:
            file.write(msgspec.json.encode(written))
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path / MANIFEST_NAME)
        _synchronise(self.path)
        self._sweep(manifest)

    def _sweep(self, manifest: Manifest) -> None:
        named = {part.stored for file in manifest.files for part in file.parts}
        for folder, _, names in os.walk(self.path, topdown=False):
            here = Path(folder)
            for name in names:
                path = here / name
                if here != self.path and path.relative_to(self.path).as_posix() not in named:
                    path.unlink()
            if here != self.path and not any(here.iterdir()):
                here.rmdir()

    # -- reading

    def problems(self, manifest: Manifest) -> Iterator[BackupDamaged]:
        """Yield what is wrong with the parts; every octet is read."""
        for file in manifest.files:
            for part in file.parts:
                try:
                    for _ in self.octets_of(part):
                        pass
                except BackupDamaged as problem:
                    yield problem

    def octets_of(self, part: Part) -> Iterator[bytes]:
        """Yield a part's octets; the last ones come before it is known whether all are right.

        Raises:
            BackupDamaged: They are not what was written.
        """
        path, digest, left = self.path / part.stored, hashlib.sha256(), part.size_bytes
        try:
            with path.open("rb") as file:
                while left > 0 and (octets := file.read(min(left, READ_BYTES))):
                    digest.update(octets)
                    left -= len(octets)
                    yield octets
        except OSError as error:
            raise BackupDamaged(str(path), error.strerror or "it cannot be read") from error
        if left:
            raise BackupDamaged(str(path), f"it is cut short, {left} octets are missing")
        if digest.hexdigest() != part.sha256:
            raise BackupDamaged(str(path), "it is not what was written (its SHA-256 differs)")

    def lay_out(self, manifest: Manifest, data_dir: Path) -> None:
        """Write all files, as a data directory has them.

        Raises:
            BackupDamaged: A part is not what was written.
            OSError: The files cannot be written.
        """
        for each in manifest.files:
            path = data_dir / each.path
            path.parent.mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)
            with open(path, "wb", opener=opened_privately) as file:
                for part in each.parts:
                    file.writelines(self.octets_of(part))
                file.truncate(each.length_bytes)
                file.flush()
                os.fsync(file.fileno())


def run_name(run: int) -> str:
    """Return what the folder of a run is called."""
    return f"{run:06d}"


def _synchronise(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
