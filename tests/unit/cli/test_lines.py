"""Lines that `cogwork send` reads as they come."""

from __future__ import annotations

import asyncio
import os
from codecs import BOM_UTF8
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

import pytest

from cogwork.cli.terminal.lines import READ_BYTES, Lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def piped() -> Iterator[tuple[Lines, BinaryIO]]:
    reads, writes = os.pipe()
    with open(reads, "rb") as there, open(writes, "wb", buffering=0) as here:
        yield Lines(there), here


async def all_of(lines: Lines) -> list[str]:
    found: list[str] = []
    while taken := await lines.take(7):
        assert len(taken) <= 7
        found += taken
    return found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "one",
        "one\n",
        "one\ntwo",
        "\n\n",
        "a\r\nb\rc\n",
        "a\u2028b\x0bc\x85d\n",
        "x" * 3 * READ_BYTES + "\nshort",
        "grün\n" * READ_BYTES,
    ],
    ids=repr,
)
@pytest.mark.parametrize("mark", [b"", BOM_UTF8], ids=["", "with a byte order mark"])
def test_lines_end_with_lf_or_crlf_and_nothing_else(tmp_path: Path, text: str, mark: bytes) -> None:
    file = tmp_path / "lines"
    file.write_bytes(mark + text.encode())
    expected = [line.removesuffix("\r") for line in text.split("\n")]
    with file.open("rb") as opened:
        found = asyncio.run(all_of(Lines(opened)))
    assert found == (expected if expected[-1] else expected[:-1])


def test_others_go_on_while_a_file_is_read(tmp_path: Path) -> None:
    async def story() -> int:
        turns = 0
        with file.open("rb") as opened:
            taking = asyncio.create_task(Lines(opened).take(1))
            while not taking.done():
                turns += 1
                await asyncio.sleep(0)
        assert len((await taking)[0]) == 10 * READ_BYTES
        return turns

    file = tmp_path / "one line"
    file.write_bytes(b"x" * 10 * READ_BYTES)
    assert asyncio.run(story()) > 10


def test_a_line_is_there_before_the_next_one_comes() -> None:
    async def story() -> None:
        with piped() as (lines, pipe):
            pipe.write(b"one\ntw")
            assert await lines.take(10) == ["one"]
            waiting = asyncio.create_task(lines.take(10))
            await asyncio.sleep(0.01)
            assert not waiting.done()
            pipe.write(b"o\r")
            pipe.write(b"\nthree")
            assert await waiting == ["two"]
            pipe.close()
            assert await lines.take(10) == ["three"]
            assert await lines.take(10) == []

    asyncio.run(story())


def test_who_waits_for_a_line_can_be_cancelled_and_wait_again() -> None:
    async def story() -> None:
        with piped() as (lines, pipe):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(lines.take(1), 0.01)
            pipe.write(b"one\n")
            assert await lines.take(1) == ["one"]

    asyncio.run(story())


def test_octets_that_are_no_text_are_told_by_whoever_sends_them() -> None:
    async def story() -> None:
        with piped() as (lines, pipe):
            pipe.write(b"\xc3")
            pipe.write(b"\xbc\xff\n")
            assert await lines.take(1) == ["ü\udcff"]

    asyncio.run(story())
