"""Learns a stream's state from the server's log: the newest checkpoint, and what follows it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from cogwork.engines.shared.chain import Chain, Gap
from cogwork.engines.shared.entry import Kind, Part
from cogwork.engines.shared.head import Head
from cogwork.engines.shared.search import Found
from cogwork.engines.shared.server import ServerDown

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.engines.shared.entry import Entry
    from cogwork.engines.shared.search import Search
    from cogwork.engines.shared.server import ServerLog

__all__ = ("catch_up", "load", "load_parts")

SINGLY = 8
"""So many entries are fetched one by one before a reader is worth its while."""

WAIT_S = 0.5

ATTEMPTS = 8
"""So often it is begun, where others trim the log meanwhile."""


async def load(log: ServerLog, search: Search) -> Head:
    """Return the state behind the last entry.

    Raises:
        Gap: The log is damaged.
        Malformed: The log is damaged.
        ServerDown: The server does not answer.
    """
    for _ in range(ATTEMPTS):
        first, last = await log.ends()
        try:
            head, is_whole = await _load(log, search, first, last)
        except Gap:
            if await _begins_at(log, first):
                raise
            continue
        # What is missing was given up meanwhile, behind a newer checkpoint; or else it is damaged,
        # and who has appended what is not known any more.
        if is_whole or await _begins_at(log, first):
            return head
    raise ServerDown("the log is trimmed faster than it can be read", may_have_happened=False)


async def _load(log: ServerLog, search: Search, first: int, last: int) -> tuple[Head, bool]:
    """Return the state, and whether nothing is missing that it should begin with."""
    newest = await search.until(last, first)
    head = Head()
    if newest is None:
        head.chain.seen = last
        return head, last < first
    checkpoint = _checkpoint(newest)
    place = max(checkpoint, first)
    begin = await search.at(place)
    is_whole = isinstance(begin, Found) and begin.position == place and checkpoint in (0, place)
    if not isinstance(begin, Found) or begin.position != place:
        begin = await search.first()
    if begin is None:
        return head, False
    head.begin(*begin)
    if begin.entry.kind is Kind.CHECKPOINT:
        state = await load_parts(log, begin)
        is_whole = is_whole and state is not None
        if state is not None:
            head.restore(state)
    await catch_up(log, head, last)
    return head, is_whole


def _checkpoint(newest: Found) -> int:
    """Return where the newest complete checkpoint begins: the newest entry may complete it."""
    if newest.entry.kind is Kind.CHECKPOINT:
        part = Part.from_bytes(newest.entry.body)
        if part.is_last:
            return part.first or newest.position
    return newest.entry.checkpoint


async def _begins_at(log: ServerLog, first: int) -> bool:
    return (await log.ends())[0] == first


async def load_parts(log: ServerLog, first: Found) -> bytes | None:
    """Return what the parts from this one on are together; None where some are missing.

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
    """Go on to a position that the log has.

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
            got = await _next(log, head.chain.seen + 1, last)
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


async def _next(log: ServerLog, position: int, last: int) -> tuple[int, bytes] | None:
    """Return the first entry at a position or above; None where there are only holes up to `last`.

    Raises:
        ServerDown: The server has told of `last`, and does not have it yet: it may compare with
            what it is about to store, and that is no hole.
    """
    got = await log.fetch(position)
    if got is not None:
        return got
    if (await log.ends())[1] < last:
        raise ServerDown("what others append is not stored yet", may_have_happened=False)
    return await log.fetch(position)
