"""A replica's directory that is given up: what a power cut brings back is nobody's."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest
from replicas import trio

from cogwork.dataplane.disk import Disk
from cogwork.log.directory import Directory
from cogwork.log.disk_queue import DiskQueue
from cogwork.log.errors import FileMissing
from cogwork.plugin.engine.errors import Malformed
from cogwork.replication import member
from cogwork.replication.files import ReplicaFiles, remove

if TYPE_CHECKING:
    from pathlib import Path

FILES = ("00000000000000000000.seg", "declaration.json", "state")


@pytest.fixture
def left(tmp_path: Path) -> Path:
    path = tmp_path / "17"
    path.mkdir()
    for name in FILES:
        (path / name).write_bytes(b"what was")
    return path


def names(path: Path) -> list[str]:
    """What is there, but for what was being written."""
    return sorted(file.name for file in path.iterdir() if file.suffix != ".tmp")


def opened(path: Path) -> list[str]:
    """Open a replica's files; return what is there then."""
    queue = DiskQueue(Disk())
    directory = Directory(path)
    try:
        ReplicaFiles(directory, queue)
        return names(path)
    finally:
        directory.close()
        queue.close()


def steps_of_removal(path: Path) -> list[str]:
    """What becomes of the names, in order: `sync` makes sure of all before it."""
    steps: list[str] = []
    unlink, rename, fsync = os.unlink, os.rename, os.fsync

    def unlinked(name: str, *, dir_fd: int) -> None:
        unlink(name, dir_fd=dir_fd)
        steps.append(name)

    def renamed(name: str, new_name: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        rename(name, new_name, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        steps.append(f"{name} to {new_name}")

    def synced(fd: int) -> None:
        fsync(fd)
        steps.append("sync")

    with (
        patch("os.unlink", unlinked),
        patch("os.rename", renamed),
        patch("os.fsync", synced),
    ):
        remove(Directory(path))
    return steps


def test_whatever_is_left_of_a_removal_goes_when_it_is_opened_again(left: Path) -> None:
    (left / "declaration.json").rename(left / "given-up")
    assert opened(left) == []


def test_a_mark_stays_until_all_that_it_stands_for_has_gone_for_good(left: Path) -> None:
    assert steps_of_removal(left) == [
        "declaration.json to given-up",
        "sync",
        FILES[0],
        "state",
        "sync",
        "given-up",
    ]
    assert not left.exists()


@pytest.mark.parametrize("name", ["state", FILES[0]])
def test_what_has_no_declaration_and_was_not_given_up_stays(left: Path, name: str) -> None:
    for other in FILES:
        if other != name:
            (left / other).unlink()
    with pytest.raises(FileMissing, match=r"declaration\.json is missing"):
        opened(left)
    assert names(left) == [name]


def test_a_new_directory_is_no_ones_yet(tmp_path: Path) -> None:
    assert opened(tmp_path / "17") == []
    (tmp_path / "17" / "declaration.json.tmp").write_bytes(b"half")
    assert opened(tmp_path / "17") == []


def test_a_replica_whose_declaration_is_lost_has_all_once_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(member, "SEAL_ENTRIES", 5)

    async def story() -> None:
        async with trio(tmp_path) as made:
            folder = await made.stopped_with_state("c")
            before = names(folder)
            declaration = (folder / "declaration.json").read_bytes()
            (folder / "declaration.json").write_bytes(declaration.replace(b'"b"', b'"d"'))
            made.start("c")
            with pytest.raises(Malformed, match="its checksum is another one"):
                await made.open("c")
            (folder / "declaration.json").unlink()
            with pytest.raises(FileMissing):
                await made.open("c")
            assert sorted([*names(folder), "declaration.json"]) == before
            (folder / "declaration.json").write_bytes(declaration)
            engine = await made.open("c")
            assert (await engine.bounds()).next == 40

    asyncio.run(asyncio.wait_for(story(), 30))
