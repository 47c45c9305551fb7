"""Learns a stream's state from the server's log: the newest checkpoint, and what follows it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from cogwork.consensus.errors import Malformed
from cogwork.consensus.shared.chain import Chain, Gap
from cogwork.consensus.shared.entry import Entry, Kind, Part
from cogwork.consensus.shared.head import Head
from cogwork.consensus.shared.search import Found

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.consensus.shared.search import Search
    from cogwork.consensus.shared.server import ServerLog

__all__ = ("catch_up", "load", "load_parts")

SINGLY = 8
"""So many entries are fetched one by one before a reader is worth its while."""

WAIT_S = 0.5


async def load(log: ServerLog, search: Search) -> Head:
    """Returns the state behind the last entry.

    Raises:
        Gap: The log is damaged.
        Malformed: The log is damaged.
        ServerDown: The server does not answer.
    """
    first, last = await log.ends()
    newest = await search.until(last, first)
    head = Head()
    if newest is None:
        head.chain.seen = last
        return head
    begin = await _begin(log, search, max(newest.entry.checkpoint, first))
    if begin is None:
        return head
    head.begin(*begin)
    if begin.entry.kind is Kind.CHECKPOINT:
        state = await load_parts(log, begin)
        if state is not None:
            head.restore(state)
    await catch_up(log, head, last)
    return head


async def _begin(log: ServerLog, search: Search, position: int) -> Found | None:
    got = await log.fetch(position)
    if got is not None and got[0] == position:
        try:
            return Found(position, Entry.from_bytes(got[1]))
        except Malformed:
            pass
    return await search.first()


async def load_parts(log: ServerLog, first: Found) -> bytes | None:
    """Returns what the parts from this one on are together; None where some are missing.

    Raises:
        Gap: The log is damaged.
        Malformed: The log is damaged.
        ServerDown: The server does not answer.
    """
    part = Part.from_bytes(first.entry.body)
    if part.index:
        return None
    pieces = [part.data]
    if part.count == 1:
        return part.data
    chain = Chain.before(*first)
    position = first.position
    while len(pieces) < part.count:
        got = await log.fetch(position)
        if got is None:
            return None
        position = got[0] + 1
        chain.skip_to(got[0])
        entry = chain.take(*got)
        if entry is None or entry.kind is not first.entry.kind:
            continue
        piece = Part.from_bytes(entry.body)
        if piece.first == first.position and piece.index == len(pieces):
            pieces.append(piece.data)
    return b"".join(pieces)


async def catch_up(
    log: ServerLog, head: Head, last: int, on_entry: Callable[[int, Entry], None] | None = None
) -> None:
    """Goes on to a position that the log has.

    Raises:
        Gap: The log is damaged.
        Malformed: The log is damaged.
        ServerDown: The server does not answer.
    """

    def take(position: int, data: bytes) -> None:
        entry = head.take(position, data)
        if entry is not None and on_entry is not None:
            on_entry(position, entry)

    while head.chain.seen < last:
        for _ in range(SINGLY):
            got = await log.fetch(head.chain.seen + 1)
            if got is None:
                # Nothing but holes up to there.
                head.chain.skip_to(last + 1)
                return
            head.chain.skip_to(got[0])
            take(*got)
            if head.chain.seen >= last:
                return
        reader = await log.reader(head.chain.seen + 1)
        try:
            # What the reader has lost on the way is fetched.
            with contextlib.suppress(Gap):
                while head.chain.seen < last:
                    entries = await reader.next(WAIT_S)
                    if not entries:
                        break
                    for position, data in entries:
                        take(position, data)
        finally:
            await reader.close()
