"""The numbers of shards, which the tags of their items begin with."""

from __future__ import annotations

from zlib import crc32

__all__ = ("DURABLE_LIFE", "shard_of")

DURABLE_LIFE = 0
"""The incarnation by which the shards of queues on disk are numbered: they outlive others."""


def shard_of(container: str, incarnation: int) -> int:
    """Return the number of a container's shards, which its items' tags begin with."""
    return crc32(f"{container}.{incarnation:x}".encode())
