"""How a backup is taken: what is new of a container's files comes over one connection."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from cogwork.client import ClientError
from cogwork.container.backup.errors import BackupError
from cogwork.container.backup.folder import (
    DIRECTORY_MODE,
    BackupFile,
    BackupFolder,
    Manifest,
    Part,
    run_name,
)
from cogwork.log.directory import Directory, opened_privately

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cogwork.cli.management.manager import Manager

    Tell = Callable[[int, int], object]

__all__ = ("TYPE", "Taken", "take_backup")

TYPE = "org.cogwork.backup"

CONTENT_BYTES = 1 << 20
"""Octets asked for in one request."""


class Listed(NamedTuple):
    """A file as the container lists it: see `BackupFile`."""

    path: str
    size_bytes: int
    length_bytes: int
    modified_ns: int


class Taken(NamedTuple):
    """What a run did.

    Attributes:
        manifest: Of the backup as it is now.
        folder: Where it is.
        copied_bytes: What came over the connection.
        is_first: Whether there was nothing to begin with.
    """

    manifest: Manifest
    folder: Path
    copied_bytes: int
    is_first: bool


class Copying:
    """One run of a backup."""

    def __init__(
        self, manager: Manager, folder: BackupFolder, name: str, run: int, tell: Tell
    ) -> None:
        """Initialize it.

        Args:
            manager: Asks the container.
            folder: Where the backup is to be.
            name: The container's name of the backup.
            run: The number of the run.
            tell: Called with the octets that have come, and all that are to come.
        """
        self._manager = manager
        self._folder = folder
        self._name = name
        self._run = run
        self._tell = tell
        self._total_bytes = 0
        self.copied_bytes = 0

    async def copy_all(self, listed: list[Listed], before: list[BackupFile]) -> list[BackupFile]:
        """Copy what is new; return all files as they are in the backup now."""
        known = {each.path: each for each in before}
        kept = [_kept_parts(each, known.get(each.path)) for each in listed]
        pairs = list(zip(listed, kept, strict=True))
        self._total_bytes = sum(each.size_bytes - _size_of(parts) for each, parts in pairs)
        found = []
        for number, (each, parts) in enumerate(pairs):
            offset = _size_of(parts)
            is_whole = offset == each.size_bytes
            fresh = [] if is_whole else [await self._copy(number, each, offset)]
            all_parts = [*parts, *fresh]
            found.append(BackupFile(each.path, each.length_bytes, each.modified_ns, all_parts))
        return found

    async def _copy(self, number: int, file: Listed, offset: int) -> Part:
        stored = f"{run_name(self._run)}/{file.path}"
        path = self._folder.path / stored
        path.parent.mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)
        digest, begin = hashlib.sha256(), offset
        with open(path, "wb", opener=opened_privately) as output:
            while offset < file.size_bytes:
                asked = {"file": number, "offset": offset, "count": CONTENT_BYTES}
                octets: bytes = await self._manager.get("CONTENT", TYPE, self._name, asked)
                if not octets:
                    left = file.size_bytes - offset
                    raise BackupError(file.path, f"it ends {left} octets before it should")
                digest.update(octets)
                output.write(octets)
                offset += len(octets)
                self.copied_bytes += len(octets)
                self._tell(self.copied_bytes, self._total_bytes)
            output.flush()
            os.fsync(output.fileno())
        return Part(stored, offset - begin, digest.hexdigest())


async def take_backup(manager: Manager, to: Path, tell: Tell) -> Taken:
    """Bring the backup of a container up to what it has now.

    Args:
        manager: Asks the container.
        to: Takes the backups of containers, each in a folder of its own.
        tell: Called with the octets that have come, and all that are to come.

    Raises:
        BackupError: There is something else, or what is there cannot be used.
        LogLocked: Another process writes to it.
        LinkRefused: The container refuses.
    """
    own: str = (await manager.get("READ", "container"))["name"]
    folder = BackupFolder.of(to, own)
    folder.demand_place()
    before = folder.read()
    folder.path.mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)
    with Directory(folder.path) as directory:
        directory.lock()
        facts = await manager.ask("CREATE", TYPE)
        try:
            return await _run(manager, folder, before, _plain(facts.body), tell)
        finally:
            await _let_go(manager, _plain(facts.body)["name"])


async def _run(
    manager: Manager,
    folder: BackupFolder,
    before: Manifest | None,
    facts: dict[str, Any],
    tell: Tell,
) -> Taken:
    """Copy what is new since another manifest, and have the new one count."""
    run = 1 if before is None else before.run + 1
    # With another log it is another data directory, in which nothing is what it was.
    is_same = before is not None and before.log == facts["log"]
    folder.begin_run(run)
    copying = Copying(manager, folder, facts["name"], run, tell)
    listed = await _listed(manager, facts["name"], facts["files"])
    files = await copying.copy_all(listed, before.files if before is not None and is_same else [])
    wanted = {key: facts[key] for key in Manifest.__struct_fields__ if key in facts}
    manifest = msgspec.convert(wanted | {"run": run, "files": files}, Manifest)
    folder.commit(manifest)
    return Taken(manifest, folder.path, copying.copied_bytes, before is None)


async def _listed(manager: Manager, name: str, count: int) -> list[Listed]:
    found: list[Listed] = []
    while len(found) < count:
        page = await manager.get("FILES", TYPE, name, {"index": len(found)})
        found += [Listed(str(each[0]), *map(int, each[1:])) for each in page["files"]]
    return found


async def _let_go(manager: Manager, name: str) -> None:
    """Let the container go on without it; it does so by itself, but later."""
    with suppress(ClientError):
        await manager.ask("DELETE", TYPE, name)


def _kept_parts(file: Listed, before: BackupFile | None) -> list[Part]:
    """Return what an earlier run has of a file that is good still."""
    if before is None:
        return []
    if file.path.startswith("wal/"):  # it only grows
        return before.parts if before.size_bytes <= file.size_bytes else []
    is_same = (before.size_bytes, before.modified_ns) == (file.size_bytes, file.modified_ns)
    return before.parts if is_same else []


def _size_of(parts: list[Part]) -> int:
    return sum(each.size_bytes for each in parts)


def _plain(body: Any) -> dict[str, Any]:  # noqa: ANN401  # what AMQP has as a map
    return {str(key): value for key, value in body.items()}
