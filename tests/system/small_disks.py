"""File systems of some MiB, to run full: mounted here if that is allowed, else in a namespace."""

from __future__ import annotations

import contextlib
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from .served import SETTLE_TIMEOUT_S, within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .meshes import Member

__all__ = ("MIB", "SmallDisk", "small_disk")

MIB = 1 << 20


class SmallDisk:
    """A file system of its own, whose size can be changed.

    Attributes:
        path: Where whoever is on it finds it.
        wrapper: What runs a command on it.
    """

    def __init__(self, path: Path, size_bytes: int, wrapper: list[str]) -> None:
        self.path = path
        self.wrapper = wrapper
        self._size_bytes = size_bytes

    def give_to(self, member: Member) -> None:
        """Have a container keep its data here from its next start on."""
        member.head = f'data_dir = "{self.path}/data"\n{member.head}'
        member.wrapper = self.wrapper

    def fill(self, left_bytes: int) -> None:
        """Leave so much free, and no more; wait until what is being written allows that."""
        within(SETTLE_TIMEOUT_S, lambda: self._leave(left_bytes), "the disk is full")

    def free(self) -> None:
        """Give back what `fill` took."""
        assert self._resize(self._size_bytes)

    def _leave(self, left_bytes: int) -> bool:
        command = ["stat", "--file-system", "--format=%b %f %S", str(self.path)]
        found = subprocess.run(
            [*self.wrapper, *command], capture_output=True, text=True, check=True
        )
        blocks, free, block_bytes = map(int, found.stdout.split())
        return self._resize((blocks - free) * block_bytes + left_bytes)

    def _resize(self, size_bytes: int) -> bool:
        command = ["mount", "-o", f"remount,size={size_bytes}", str(self.path)]
        done = subprocess.run([*self.wrapper, *command], capture_output=True, check=False)
        return done.returncode == 0


@contextlib.contextmanager
def small_disk(path: Path, size_bytes: int) -> Iterator[SmallDisk]:
    """Make a file system for the length of a `with` block; skips the test where that cannot be.

    Args:
        path: Where; a new directory.
        size_bytes: How large it is.
    """
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "cogwork-test", str(path)]
    is_forced = os.environ.get("COGWORK_DISK_NAMESPACE") == "1"
    if not is_forced and subprocess.run(mount, capture_output=True, check=False).returncode == 0:
        try:
            yield SmallDisk(path, size_bytes, [])
        finally:
            subprocess.run(["umount", "--lazy", str(path)], check=True)
        return
    with _namespace(path, mount) as holder:
        enter = ["nsenter", "--preserve-credentials", "-U", "-m", "-t", str(holder.pid), "--"]
        yield SmallDisk(path, size_bytes, enter)


@contextlib.contextmanager
def _namespace(path: Path, mount: list[str]) -> Iterator[subprocess.Popen[str]]:
    """Run a process that has the file system in a namespace of its own."""
    script = '"$@" && echo ready && exec sleep infinity'
    try:
        holder = subprocess.Popen(
            ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "-", *mount],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
    except FileNotFoundError:
        pytest.skip("neither mount nor unshare gives this test a file system of its own")
    try:
        assert holder.stdout is not None
        if holder.stdout.readline() != "ready\n":
            pytest.skip(f"no file system can be mounted at {path}, and no namespace be made")
        yield holder
    finally:
        holder.kill()
        holder.communicate()
