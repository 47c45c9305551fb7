"""Page files: what is written comes back, and what is damaged is told of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from paged_queues import PagedQueue

from cogwork.container.journals.page_files import PageFiles
from cogwork.log.errors import FileMissing, ForeignFile, LogCorrupt, LogError

if TYPE_CHECKING:
    from pathlib import Path

    from cogwork.dataplane.queue.pages import Block


def run_of(queue: PagedQueue) -> tuple[int, list[Block], bytes]:
    """A run that is being written: its level, its blocks and its index."""
    queue.send(*(f"m{at}" for at in range(40)))
    blocks = queue.pages.gather(queue.journal, 2_000)
    assert blocks
    return queue.pages.run_level, blocks, queue.pages.index()


def test_a_file_says_what_was_written(tmp_path: Path) -> None:
    level, blocks, index = run_of(PagedQueue())
    files = PageFiles(tmp_path / "pages", 17)
    places = files.write(3, level, blocks, index)
    assert files.numbers() == [3]
    opened = files.open(3)
    assert (opened.level, opened.index) == (level, index)
    assert opened.blocks == places
    assert [opened.read(at) for at in range(len(blocks))] == [each.data for each in blocks]
    files.remove([3])
    assert files.numbers() == []


@pytest.mark.parametrize(
    "at", [8, 20, 70, 110, -1], ids=["version", "head", "table", "index", "block"]
)
def test_damage_is_found(tmp_path: Path, at: int) -> None:
    files = PageFiles(tmp_path / "pages", 17)
    files.write(3, *run_of(PagedQueue()))
    path = tmp_path / "pages" / "17" / "0000000003.page"
    octets = bytearray(path.read_bytes())
    octets[at] ^= 0x40
    path.write_bytes(octets)
    with pytest.raises(LogError, match=r"0000000003\.page"):
        files.open(3).read(0)


def test_a_file_that_ends_too_early_is_damaged(tmp_path: Path) -> None:
    files = PageFiles(tmp_path / "pages", 17)
    files.write(3, *run_of(PagedQueue()))
    path = tmp_path / "pages" / "17" / "0000000003.page"
    octets = path.read_bytes()
    for size in (0, 10, 80, len(octets) - 1):
        path.write_bytes(octets[:size])
        with pytest.raises(LogCorrupt):
            files.open(3).read(0)


def test_another_queues_file_is_refused(tmp_path: Path) -> None:
    files, others = PageFiles(tmp_path / "pages", 17), PageFiles(tmp_path / "pages", 18)
    files.write(3, *run_of(PagedQueue()))
    (tmp_path / "pages" / "18").mkdir()
    (tmp_path / "pages" / "17" / "0000000003.page").rename(others.path_of(3))
    with pytest.raises(ForeignFile):
        others.open(3)
    with pytest.raises(FileMissing):
        files.open(3)
