"""Streams of numbers that are counted up, and digests of what readers got of them."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from typing import TYPE_CHECKING

import cogwork

if TYPE_CHECKING:
    from collections.abc import Callable


def digest_of_all(total: int) -> str:
    """Return the digest of a reader that got each number once, in order."""
    return hashlib.sha256(b"".join(map(_octets, range(total)))).hexdigest()


async def digest_read(url: str, stream: str, total: Callable[[], int | None]) -> str:
    """Read everything at one container; `total()` is how much that is, once it is known."""
    digest, count = hashlib.sha256(), 0
    async with cogwork.connect(url) as client, client.stream(stream).read(start="first") as reader:
        while (end := total()) is None or count < end:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.5):
                    record = await anext(reader)
                digest.update(_octets(record.body))
                count += 1
    return digest.hexdigest()


def _octets(number: object) -> bytes:
    assert isinstance(number, int)
    return number.to_bytes(8, "big")
