"""A backup as files: what a run that ended in the middle leaves, and what later runs share."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from cogwork.container.backup.errors import BackupDamaged, BackupError, NoBackup
from cogwork.container.backup.folder import BackupFile, BackupFolder, Manifest, Part

if TYPE_CHECKING:
    from pathlib import Path

LENGTH_BYTES = 64


def part(folder: BackupFolder, run: int, name: str, octets: bytes) -> Part:
    """Store octets as a run does."""
    stored = f"{run:06d}/{name}"
    path = folder.path / stored
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(octets)
    return Part(stored, len(octets), hashlib.sha256(octets).hexdigest())


def manifest(run: int, *files: BackupFile) -> Manifest:
    return Manifest("a/b", "uuid", "key", "1", 5, run, list(files), {"orders": 3}, [], [])


@pytest.fixture
def folder(tmp_path: Path) -> BackupFolder:
    """Return a place for the backup of a container whose id is no file's name."""
    made = BackupFolder.of(tmp_path / "to", "a/b")
    made.demand_place()
    made.begin_run(1)
    return made


def test_parts_make_the_file_and_zeros_follow(folder: BackupFolder, tmp_path: Path) -> None:
    parts = [part(folder, 1, "wal/1", b"one"), part(folder, 2, "wal/1", b"two")]
    written = manifest(2, BackupFile("wal/1", LENGTH_BYTES, 0, parts))
    folder.commit(written)
    assert folder.read() == written
    folder.lay_out(written, tmp_path / "data")
    expected = b"onetwo".ljust(LENGTH_BYTES, b"\0")
    assert (tmp_path / "data" / "wal" / "1").read_bytes() == expected


def test_what_is_named_no_more_goes_and_the_rest_stays(folder: BackupFolder) -> None:
    kept, gone = part(folder, 1, "wal/1", b"one"), part(folder, 1, "streams/17/state", b"old")
    folder.commit(
        manifest(1, BackupFile("wal/1", 3, 0, [kept]), BackupFile("streams/17/state", 3, 0, [gone]))
    )
    folder.commit(manifest(2, BackupFile("wal/1", 3, 0, [kept])))
    assert not (folder.path / gone.stored).exists()
    assert not (folder.path / gone.stored).parent.exists()
    assert list(folder.problems(folder.demand())) == []


def test_a_run_that_ends_in_the_middle_leaves_the_backup(folder: BackupFolder) -> None:
    before = manifest(1, BackupFile("wal/1", 3, 0, [part(folder, 1, "wal/1", b"one")]))
    folder.commit(before)
    folder.begin_run(2)
    part(folder, 2, "wal/1", b"half")
    assert folder.read() == before
    folder.begin_run(2)
    assert [*(folder.path / "000002").iterdir()] == [], "the next run begins with nothing of it"


def test_other_octets_are_found(folder: BackupFolder) -> None:
    stored = part(folder, 1, "wal/1", b"one")
    written = manifest(1, BackupFile("wal/1", 3, 0, [stored]))
    folder.commit(written)
    (folder.path / stored.stored).write_bytes(b"two")
    (problem,) = folder.problems(written)
    assert str(folder.path / stored.stored) in str(problem)
    manifest_path = folder.path / "backup.json"
    manifest_path.write_bytes(manifest_path.read_bytes()[:-10])
    with pytest.raises(BackupDamaged):
        folder.read()


def test_a_place_with_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("dear")
    with pytest.raises(BackupError, match="holds no backup"):
        BackupFolder.of(tmp_path, "a").demand_place()
    with pytest.raises(NoBackup):
        BackupFolder.all_in(tmp_path)
