"""The least disk that a data directory needs, on file systems of some MiB."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.bench.servers.process import free_ports
from cogwork.log.wal import LEAST_BYTES

from .meshes import Member
from .served import READY_TIMEOUT_S, done, ran, within
from .small_disks import MIB, SmallDisk, small_disk

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path


class Box:
    """A container on a disk of a given size."""

    def __init__(self, folder: Path, size_bytes: int) -> None:
        self._disk: AbstractContextManager[SmallDisk] = small_disk(folder / "disk", size_bytes)
        self.member = Member("box", free_ports(1)[0], [], folder)

    def __enter__(self) -> Member:
        self._disk.__enter__().give_to(self.member)
        self.member.start()
        return self.member

    def __exit__(self, *_: object) -> None:
        self.member.kill()
        self._disk.__exit__(None, None, None)


def is_over(box: Member) -> bool:
    assert box.process is not None
    return box.process.poll() is not None


def test_the_least_disk_is_enough_to_begin_with(tmp_path: Path) -> None:
    with Box(tmp_path, LEAST_BYTES) as box:
        within(READY_TIMEOUT_S, box.listens, "it listens")
        done("send", box.url, "queue/jobs", "job", "--count", "100")
        done("stream", "create", box.url, "orders", "--engine", "raft")
        done("send", box.url, "stream/orders", "record", "--count", "100")
        take = ("receive", box.url, "queue/jobs", "--count", "100", "--timeout", "20")
        assert done(*take).stdout.splitlines() == ["job"] * 100
        assert "no space" not in box.log()


def test_with_less_queues_take_nothing_and_the_log_says_how_much_is_needed(tmp_path: Path) -> None:
    with Box(tmp_path, LEAST_BYTES - 3 * MIB) as box:
        within(READY_TIMEOUT_S, box.listens, "it listens")
        within(
            READY_TIMEOUT_S,
            lambda: "a data directory needs at least 130 MiB in all, and 6" in box.log(),
            "it says so",
        )
        assert ran("send", box.url, "queue/jobs", "job", "--timeout", "2").returncode != 0


def test_with_too_little_to_begin_it_does_not_start_and_says_how_much(tmp_path: Path) -> None:
    with Box(tmp_path, 40 * MIB) as box:
        within(READY_TIMEOUT_S, lambda: is_over(box), "it ends")
        assert box.process is not None
        assert box.process.returncode == 1
        told = box.log()
        assert "MiB are free, and a data directory needs at least 130 MiB" in told
        assert "Traceback" not in told
