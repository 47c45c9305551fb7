"""The queue before the disk thread: who waits is told, whatever becomes of the others."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from cogwork.dataplane.disk import Disk
from cogwork.log.disk_queue import DiskQueue, Operation

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from cogwork.log.disk_queue import Octets


class GatheringDisk:
    """A disk thread that tells what is done once everything is: all at once."""

    def __init__(self) -> None:
        self._disk = Disk()
        self._open: set[int] = set()
        self._done: list[tuple[int, int, int]] = []

    def fileno(self) -> int:
        return self._disk.fileno()

    def submit(self, fd: int, offset: int, data: Octets, sync: bool) -> int:
        job_id = self._disk.submit(fd, offset, data, sync)
        self._open.add(job_id)
        return job_id

    def allocate(self, fd: int, size_bytes: int, sync: bool) -> int:
        return self._disk.allocate(fd, size_bytes, sync)

    def completed(self) -> list[tuple[int, int, int]]:
        self._done += self._disk.completed()
        self._open -= {job_id for job_id, _, _ in self._done}
        if self._open:
            return []
        done, self._done = self._done, []
        return done

    def close(self) -> None:
        self._disk.close()


class Waiting:
    """A queue before a file, and the names of those who were told, in order."""

    def __init__(self, path: Path) -> None:
        self.queue = DiskQueue(GatheringDisk())
        self.fd = os.open(path / "file", os.O_RDWR | os.O_CREAT)
        self.told: list[str] = []

    def write(self, name: str, problem: Exception | None = None) -> None:
        def then(error: OSError | None) -> None:
            assert error is None
            self.told.append(name)
            if problem is not None:
                raise problem

        assert self.queue.write(self.fd, 0, b"x", then)

    def dispatch(self, count: int = 1) -> None:
        """Wait until so many were told, not longer than that can take."""
        deadline_s = time.monotonic() + 5.0
        while len(self.told) < count and time.monotonic() < deadline_s:
            self.queue.wait(0.5)


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[Waiting]:
    made = Waiting(tmp_path)
    yield made
    made.queue.disk.close()
    os.close(made.fd)


def test_a_callback_that_raises_keeps_nobody_else_from_being_told(waiting: Waiting) -> None:
    waiting.write("a", RuntimeError("broken"))
    waiting.write("b")
    waiting.write("c")
    with pytest.raises(RuntimeError, match="broken"):
        waiting.dispatch()
    assert waiting.told == ["a", "b", "c"]
    assert waiting.queue.is_idle


def test_of_several_that_raise_all_is_told(waiting: Waiting) -> None:
    waiting.write("a", RuntimeError("one"))
    waiting.write("b")
    waiting.write("c", ValueError("two"))
    with pytest.raises(ExceptionGroup) as caught:
        waiting.dispatch()
    assert [str(error) for error in caught.value.exceptions] == ["one", "two"]
    assert waiting.told == ["a", "b", "c"]


def test_work_in_steps_goes_on_where_a_callback_before_it_raises(waiting: Waiting) -> None:
    def steps() -> Generator[Operation, None, str]:
        yield Operation(waiting.fd, 0, b"1")
        yield Operation(waiting.fd, 1, b"2", sync=True)
        return "steps"

    waiting.write("a", RuntimeError("broken"))
    waiting.queue.start(steps(), waiting.told.append, lambda error: pytest.fail(str(error)))
    with pytest.raises(RuntimeError, match="broken"):
        waiting.dispatch()
    waiting.dispatch(2)
    assert waiting.told == ["a", "steps"]
    assert os.pread(waiting.fd, 10, 0) == b"12"


def test_a_callback_may_wait_for_the_others(waiting: Waiting) -> None:
    def then(error: OSError | None) -> None:
        assert error is None
        waiting.dispatch(2)
        waiting.told.append("last")

    waiting.queue.write(waiting.fd, 0, b"x", then)
    waiting.write("a")
    waiting.write("b")
    waiting.dispatch()
    assert waiting.told == ["a", "b", "last"]


def test_whatever_ends_work_in_steps_is_told(waiting: Waiting) -> None:
    def steps() -> Generator[Operation, None, str]:
        yield Operation(waiting.fd, 0, b"1")
        raise MemoryError("no room")

    waiting.queue.start(steps(), waiting.told.append, lambda error: waiting.told.append(str(error)))
    waiting.dispatch()
    assert waiting.told == ["no room"]
