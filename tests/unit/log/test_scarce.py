"""A write-ahead log whose process has no descriptor left for its next file."""

from __future__ import annotations

import os
import resource
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest
from logs import Log, opened
from wal_files import SMALL, file_of, fill

from cogwork.log.errors import DiskFull
from cogwork.log.position import number_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def no_descriptors() -> Iterator[None]:
    """Let nothing be opened."""
    free = os.open("/dev/null", os.O_RDONLY)
    os.close(free)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def fill_up(log: Log) -> int:
    """Append until that is refused; return how many records there were."""
    count = 0
    with suppress(DiskFull):
        while True:
            fill(log, 1)
            count += 1
    with pytest.raises(DiskFull, match="Too many open files"):
        fill(log, 1)
    return count


def test_a_log_without_a_descriptor_for_its_next_file_goes_on_later(tmp_path: Path) -> None:
    log = Log(tmp_path, file_bytes=SMALL)
    with no_descriptors():
        before = fill_up(log)
        log.wal.tick(10.0)
        log.queue.finish()
        assert (log.lows[0], log.lows[-1], log.events) == (True, True, [True])
        assert before > SMALL // 1024
    log.wal.tick(20.0)
    log.queue.finish()
    assert (log.lows[-1], log.events) == (False, [True, False])
    fill(log, 20)
    log.close()
    assert len(opened(tmp_path, file_bytes=SMALL)) == before + 20


def test_a_file_that_was_to_be_used_again_still_is_later(tmp_path: Path) -> None:
    log = Log(tmp_path, file_bytes=SMALL)
    while number_of(log.wal.end_lsn) < 2:
        fill(log, 1)
    log.wal.low_water(1, log.wal.end_lsn)
    fill(log, 1)  # the first one is a spare from here on
    with no_descriptors():
        fill_up(log)
        assert file_of(tmp_path, 1).exists()
    log.wal.tick(20.0)
    log.queue.finish()
    assert not file_of(tmp_path, 1).exists()
    assert file_of(tmp_path, number_of(log.wal.end_lsn) + 1).exists()
    fill(log, 20)
    log.close()
