"""The disk thread: order, group commit, errors by job, bounds."""

from __future__ import annotations

import errno
import os
import re
import resource
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import sandbox

from cogwork.dataplane.disk import SYNC, WRITE, Disk

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def disk() -> Iterator[Disk]:
    made = Disk()
    yield made
    made.close()


@pytest.fixture
def fd(tmp_path: Path) -> Iterator[int]:
    made = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    yield made
    os.close(made)


def wait(disk: Disk, count: int) -> list[tuple[int, int, int]]:
    done: list[tuple[int, int, int]] = []
    while len(done) < count:
        assert select.select([disk], [], [], 10)[0]
        done += disk.completed()
    return done


def test_nothing_is_done_and_nothing_told_at_first(disk: Disk) -> None:
    assert disk.completed() == []
    assert select.select([disk], [], [], 0)[0] == []


def test_writes_are_done_in_order_and_told_in_order(disk: Disk, fd: int) -> None:
    job_ids = [disk.submit(fd, 0, b"%04d" % number, False) for number in range(500)]
    job_ids.append(disk.submit(fd, 4, b"end", True))
    done = wait(disk, 501)
    assert [job_id for job_id, _, _ in done] == job_ids == sorted(set(job_ids))
    assert [step for _, error, step in done if error == 0] == [WRITE] * 500 + [SYNC]
    assert os.pread(fd, 100, 0) == b"0499end"
    assert select.select([disk], [], [], 0)[0] == []


def test_a_group_synchronises_each_file_once(disk: Disk, tmp_path: Path) -> None:
    files = [os.open(tmp_path / name, os.O_RDWR | os.O_CREAT) for name in "ab"]
    for number in range(2000):
        disk.submit(files[number % 2], number * 8, b"%08d" % number, True)
    done = wait(disk, 2000)
    assert {(error, step) for _, error, step in done} == {(0, SYNC)}
    assert disk.write_count == 2000
    assert 2 <= disk.sync_count < 2000
    for each in files:
        os.close(each)


def test_space_is_reserved(disk: Disk, fd: int) -> None:
    disk.allocate(fd, 1 << 20, True)
    assert [done[1:] for done in wait(disk, 1)] == [(0, SYNC)]
    assert os.fstat(fd).st_size == 1 << 20
    assert os.fstat(fd).st_blocks * 512 >= 1 << 20


WITHOUT_SPACE = """
import os, select, sys
import sandbox
from cogwork.dataplane.disk import Disk

try:
    sandbox.refuse(sandbox.FALLOCATE, int(sys.argv[1]))
except OSError as error:
    sys.exit(str(error))
fd = os.open(sys.argv[2], os.O_RDWR | os.O_CREAT)
disk = Disk()
disk.allocate(fd, 1 << 20, True)
select.select([disk], [], [], 10)
print(*disk.completed()[0][1:], os.fstat(fd).st_size)
"""


@pytest.mark.skipif(sandbox.FALLOCATE is None, reason="not known which system call that is here")
@pytest.mark.parametrize(
    ("refusal", "told"),
    [
        *((each, (0, SYNC, 1 << 20)) for each in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EPERM)),
        (errno.ENOSPC, (errno.ENOSPC, WRITE, 0)),
    ],
)
def test_where_no_space_can_be_reserved_a_file_gets_its_size(
    tmp_path: Path, refusal: int, told: tuple[int, int, int]
) -> None:
    made = subprocess.run(
        [sys.executable, "-c", WITHOUT_SPACE, str(refusal), str(tmp_path / "file")],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    if "no seccomp" in made.stderr:
        pytest.skip(made.stderr)
    assert made.returncode == 0, made.stderr
    assert tuple(map(int, made.stdout.split())) == told


def test_errors_are_those_of_the_job(disk: Disk, fd: int) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    good = disk.submit(fd, 0, b"x", True)
    no_space = disk.submit(full, 0, b"x", True)
    closed = disk.submit(987, 0, b"x", True)
    reading = os.open(os.devnull, os.O_RDONLY)
    read_only = disk.submit(reading, 0, b"x", False)
    pipe = os.pipe()
    no_sync = disk.submit(pipe[1], 0, b"", True)
    found = {job_id: (error, step) for job_id, error, step in wait(disk, 5)}
    assert found == {
        good: (0, SYNC),
        no_space: (errno.ENOSPC, WRITE),
        closed: (errno.EBADF, WRITE),
        read_only: (errno.EBADF, WRITE),
        no_sync: (errno.EINVAL, SYNC),
    }
    for each in (full, reading, *pipe):
        os.close(each)


def test_a_limit_on_the_size_of_files_is_an_error_like_others(disk: Disk, fd: int) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        disk.submit(fd, 0, bytes(5000), True)
        disk.allocate(fd, 8192, False)
        assert [done[1:] for done in wait(disk, 2)] == [(errno.EFBIG, WRITE)] * 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_what_it_holds_is_bounded_until_it_is_told(fd: int) -> None:
    disk = Disk(1000)
    assert disk.submit(fd, 0, bytes(5000), False), "a single one may be larger"
    assert disk.held_bytes == 5000
    assert disk.submit(fd, 0, b"x", False) == 0
    wait(disk, 1)
    assert disk.held_bytes == 0
    assert disk.submit(fd, 0, bytes(600), False)
    assert disk.submit(fd, 0, bytes(600), False) == 0
    assert disk.submit(fd, 0, bytes(400), False)
    wait(disk, 2)
    disk.close()


def test_closing_does_what_is_queued(fd: int) -> None:
    disk = Disk()
    for number in range(100):
        disk.submit(fd, number, b"x", False)
    disk.close()
    disk.close()
    assert os.pread(fd, 200, 0) == b"x" * 100
    assert disk.completed() == []
    with pytest.raises(ValueError, match="stopped"):
        disk.submit(fd, 0, b"x", False)


def test_one_that_is_forgotten_ends_its_thread(fd: int) -> None:
    tasks = Path("/proc/self/task")
    before = len(list(tasks.iterdir()))
    disk = Disk()
    assert len(list(tasks.iterdir())) == before + 1
    disk.submit(fd, 0, b"x" * 100, True)
    del disk
    assert len(list(tasks.iterdir())) == before
    assert os.pread(fd, 200, 0) == b"x" * 100


def test_signals_stay_with_the_threads_of_python() -> None:
    tasks = Path("/proc/self/task")
    before = set(tasks.iterdir())
    disk = Disk()
    (task,) = set(tasks.iterdir()) - before
    blocked = re.search(r"SigBlk:\s*(\w+)", (task / "status").read_text())
    assert blocked is not None
    mask = int(blocked[1], 16)
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGALRM):
        assert mask & 1 << each - 1
    disk.close()


@pytest.mark.parametrize("count", [0, 1, 3, 1023, 1024, 1025, 5000])
def test_parts_are_written_behind_one_another(disk: Disk, fd: int, count: int) -> None:
    parts = tuple(b"%d," % number * (number % 7) for number in range(count))
    whole = b"".join(parts)
    job_id = disk.submit(fd, 10, parts, True)
    assert disk.held_bytes == len(whole)
    assert wait(disk, 1) == [(job_id, 0, SYNC)]
    assert os.pread(fd, len(whole) + 20, 10) == whole
    assert disk.held_bytes == 0


def test_parts_that_the_file_system_does_not_take_whole_are_an_error(disk: Disk, fd: int) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        disk.submit(fd, 0, (b"a" * 3000, b"b" * 3000, b"c"), True)
        assert [done[1:] for done in wait(disk, 1)] == [(errno.EFBIG, WRITE)]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert os.pread(fd, 9000, 0) == b"a" * 3000 + b"b" * 1096


def test_parts_count_for_what_is_held(fd: int) -> None:
    disk = Disk(1000)
    assert disk.submit(fd, 0, (bytes(500), bytes(400)), False)
    assert disk.submit(fd, 0, (bytes(50), bytes(51)), False) == 0
    assert disk.submit(fd, 0, (bytes(50), bytes(50)), False)
    wait(disk, 2)
    disk.close()


@pytest.mark.parametrize(
    "data", [None, "text", bytearray(3), memoryview(b"abc"), (b"x", None), (b"x", "y"), [b"x"]]
)
def test_only_octets_that_cannot_change_are_taken(disk: Disk, fd: int, data: object) -> None:
    with pytest.raises(TypeError):
        disk.submit(fd, 0, data, False)  # type: ignore[arg-type]  # what is wrong
