"""Containers with readers, which give streams as Arrow record batches, and what is in those."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

import cogwork
from cogwork import sync
from cogwork.amqp.types import UInt
from cogwork.client import Message
from cogwork.pipeline.arrow import session as sessions

from .clusters import command
from .meshes import Member, meshed
from .processes import children_of
from .served import READY_TIMEOUT_S, within

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    import pyarrow as pa

RECORDS = 100_000
"""More than is on its way at a time; some are in segments, and some are not."""

BODY = bytes(range(256))


def publish(url: str, stream: str, count: int, start: int = 0) -> None:
    """Append records that differ."""
    with sync.connect(url) as client:
        for at in range(start, start + count, 10_000):
            client.stream(stream).append(
                Message(
                    BODY + b"%d" % number,
                    subject="even" if number % 2 == 0 else None,
                    to="stream/orders",
                    message_id=number,
                    properties={"number": UInt(number), "none": None},
                )
                for number in range(at, min(at + 10_000, start + count))
            )


def readers_of(member: Member) -> list[int]:
    """Find the processes of a container's readers."""
    assert member.process is not None
    return children_of(member.process.pid)


def has_readers(url: str) -> bool:
    """Return whether a container offers readers."""

    async def offered() -> bool:
        async with cogwork.connect(url, force=True) as client:
            return "cogwork:arrow" in client.container.offered_capabilities

    return asyncio.run(offered())


@contextmanager
def stocked(folder: Path, configuration: str) -> Iterator[Member]:
    """Run a container with readers for the length of a `with` block.

    It has a stream, `orders`, with records of which a part is sealed.

    Args:
        folder: Takes its configuration, log and data.
        configuration: What `cogwork.toml` says of its readers.
    """
    data_dir = f'data_dir = "{folder / "a"}"\n'
    with meshed(folder, ("a",), (), configuration, head=lambda _name: data_dir) as members:
        member = members["a"]
        within(READY_TIMEOUT_S, lambda: has_readers(member.url), "a has readers")
        command("stream", "create", member.url, "orders", "--engine", "raft")
        publish(member.url, "orders", RECORDS)
        yield member


class WithoutReaders(AssertionError):
    """A client took a container's records for itself, where it was to ask a reader."""


@contextmanager
def readers_only() -> Iterator[None]:
    """Have clients fail where readers do."""

    async def none(*_: object) -> AsyncIterator[None]:
        raise WithoutReaders("this was to be read from a reader")
        yield

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sessions.Session, "_by_records", none)
        yield


def same(one: list[pa.RecordBatch], other: list[pa.RecordBatch]) -> bool:
    """Return whether two reads gave the same batches."""
    return len(one) == len(other) and all(map(lambda a, b: a.equals(b), one, other))


def offsets(batches: list[pa.RecordBatch]) -> list[int]:
    """List the offsets of all records."""
    return [offset for batch in batches for offset in batch.column("offset").to_pylist()]
