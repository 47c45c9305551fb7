"""What the files of the write-ahead log are called."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cogwork.log.position import NUMBER_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ("TEMPORARY_NAME", "file_name", "file_number", "file_numbers")

TEMPORARY_NAME = "next.tmp"
"""The file that is being made ready."""

_PATTERN = re.compile(r"(\d{10})\.wal")


def file_name(number: int) -> str:
    """Return the name of a file."""
    return f"{number:010d}.wal"


def file_number(name: str) -> int | None:
    """Return the number of the file of a name; None where it is none of the log's."""
    match = _PATTERN.fullmatch(name)
    number = int(match[1]) if match is not None else 0
    return number if 1 <= number <= NUMBER_MAX else None


def file_numbers(names: Iterable[str]) -> list[int]:
    """Return the numbers of the log's files among these, sorted."""
    return sorted(number for name in names if (number := file_number(name)) is not None)
