"""The files of a write-ahead log: found, filled and damaged."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from logs import Log

SMALL = 4096


def file_of(path: Path, number: int = 1) -> Path:
    return path / f"{number:010d}.wal"


def damage(file: Path, position: int) -> None:
    data = bytearray(file.read_bytes())
    data[position] ^= 0x10
    file.write_bytes(data)


def fill(log: Log, count: int, group: int = 1) -> list[int]:
    """Append records of 512 octets, one a flush."""
    return [log.put(bytes([number % 256]) * 512, group=group)[0] for number in range(count)]
