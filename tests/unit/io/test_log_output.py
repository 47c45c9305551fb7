"""A log whose reader stands still, comes back, or leaves."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from typing import TYPE_CHECKING

from cogwork.io.log_output import LogOutput

if TYPE_CHECKING:
    import pytest

LINE = b"x" * 99 + b"\n"
PIPE_BYTES = 4096


def small_pipe() -> tuple[int, int]:
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    return reader, writer


def read_until(reader: int, wanted: bytes) -> bytes:
    found = b""
    while wanted not in found:
        found += os.read(reader, 65_536)
    return found


def test_lines_are_written_in_order() -> None:
    reader, writer = small_pipe()
    output = LogOutput(writer)
    for number in range(10):
        output.write(b"%d\n" % number)
    assert output.flush(30)
    assert os.read(reader, 1000) == b"".join(b"%d\n" % number for number in range(10))


def test_a_reader_that_stands_still_blocks_nobody_and_hears_how_much_was_dropped() -> None:
    reader, writer = small_pipe()
    output = LogOutput(writer, buffer_bytes=10 * len(LINE))
    lines = 1
    output.write(LINE)
    while output.flush(0.5):  # until the pipe is full
        output.write(LINE)
        lines += 1
    for _ in range(100):
        output.write(LINE)
    lines += 100
    assert output.dropped > 0
    found = read_until(reader, b"lines of the log were dropped")
    written = found.count(LINE)
    assert written + output.dropped == lines
    assert f"cogwork: {output.dropped:,} lines of the log were dropped".encode() in found
    output.write(b"on\n")
    assert b"on\n" in read_until(reader, b"on\n")


def test_what_is_larger_than_the_buffer_is_written_whole() -> None:
    reader, writer = small_pipe()
    output = LogOutput(writer, buffer_bytes=10)
    output.write(LINE * 100)
    assert read_until(reader, LINE * 100) == LINE * 100


def test_a_reader_that_has_left_is_counted() -> None:
    reader, writer = small_pipe()
    output = LogOutput(writer)
    os.close(reader)
    output.write(LINE)
    assert output.flush(30)
    assert output.dropped == 1, "nothing is told to nobody, again and again"


def test_many_threads_write_whole_lines() -> None:
    reader, writer = os.pipe()
    output = LogOutput(writer)
    found: list[bytes] = []

    def read() -> None:
        while data := os.read(reader, 65_536):
            found.append(data)

    reading = threading.Thread(target=read)
    reading.start()

    def write() -> None:
        for _ in range(500):
            output.write(LINE)

    writers = [threading.Thread(target=write) for _ in range(4)]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    assert output.flush(60)
    os.close(writer)
    reading.join()
    assert b"".join(found) == LINE * 2000


def test_a_line_that_a_full_disk_has_cut_off_spoils_no_other_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reader, writer = os.pipe()
    whole = os.write
    left = [4, 0]

    def write(descriptor: int, data: bytes) -> int:
        """Have room for four bytes, then for none, then for everything."""
        if not left:
            return whole(descriptor, data)
        room = left.pop(0)
        if not room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return whole(descriptor, data[:room])

    monkeypatch.setattr(os, "write", write)
    output = LogOutput(writer, line_of="{} lost".format)
    output.write(b"first line\n")
    assert output.flush(30)
    output.write(b"second\n")
    assert output.close(30)
    assert os.read(reader, 1000) == b"firs\nsecond\n1 lost\n"


def test_nothing_is_written_after_the_end() -> None:
    reader, writer = os.pipe()
    output = LogOutput(writer)
    output.write(b"one\n")
    assert output.close(30)
    output.write(b"two\n")
    os.close(writer)
    assert os.read(reader, 1000) == b"one\n"
