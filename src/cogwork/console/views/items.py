"""Messages: the items of a queue, and the records of a stream."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from cogwork.console.actions.action import Shown, number_of
from cogwork.console.rendering import page
from cogwork.plugin.engine.contract import FromOffset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from cogwork.client import Client
    from cogwork.console.session import Session
    from cogwork.dataplane.client.stream_records import Record

__all__ = ("items", "records")

PAGE_ITEMS = 20
TIME = "%Y-%m-%d %H:%M:%S.%f%z"
FIRST_WAIT_S = 2.0
"""For the first record; an engine may be a server elsewhere."""

NEXT_WAIT_S = 0.2


async def items(request: Request, session: Session) -> Response:
    """Show items of a queue, and leave them there."""
    name = request.query_params.get("name", "")
    index = number_of(request.query_params.get("from") or "0", "From")
    found: list[dict[str, Any]] = await session.get(
        "PEEK", "queue", name, index=index, count=PAGE_ITEMS + 1
    )
    shown = [_shown(each) for each in found[:PAGE_ITEMS]]
    return page(
        request,
        "items.html",
        session,
        title=f"Items of {name}",
        up=("/queue", name),
        shown=shown,
        first=index,
        start="From the item at",
        before=max(0, index - PAGE_ITEMS) if index else None,
        after=index + PAGE_ITEMS if len(found) > PAGE_ITEMS else None,
    )


def _shown(item: dict[str, Any]) -> Shown:
    facts = {key: value for key, value in item.items() if key not in ("message", "item")}
    return Shown(f"item {item.get('item')}", facts, item["message"])


async def records(request: Request, session: Session) -> Response:
    """Show records of a stream, from an offset on or from a time."""
    name = request.query_params.get("name", "")
    bounds = await session.get("BOUNDS", "stream", name)
    offset = _offset(request, int(bounds["first"]), int(bounds["next"]))
    found: Sequence[Record] = ()
    if offset < bounds["next"]:
        async with session.reaching() as client:
            found = await _read(client, name, offset)
    first = found[0].offset if found else offset
    after = found[-1].offset + 1 if found else offset
    shown = [
        Shown(
            f"record {each.offset}", {"time": f"{each.time:%Y-%m-%d %H:%M:%S.%f%z}"}, each.encode()
        )
        for each in found
    ]
    return page(
        request,
        "items.html",
        session,
        title=f"Records of {name}",
        up=("/stream", name),
        shown=shown,
        first=first,
        start="From the offset",
        before=max(0, first - PAGE_ITEMS) if first else None,
        after=after if found and after < bounds["next"] else None,
    )


def _offset(request: Request, first: int, after_last: int) -> int:
    """Return where to begin: at what is asked for, or with the last page of records."""
    asked = request.query_params.get("from", "")
    return number_of(asked, "Offset") if asked else max(first, after_last - PAGE_ITEMS)


async def _read(client: Client, name: str, offset: int) -> Sequence[Record]:
    """Read what there is, at most a page, without waiting for more to come."""
    found: list[Record] = []
    stream = client.stream(name)
    with suppress(TimeoutError):
        reader = stream.read(FromOffset(offset), credit=PAGE_ITEMS, on_truncated="first")
        async with reader:
            while len(found) < PAGE_ITEMS and not (found and reader.is_caught_up):
                async with asyncio.timeout(NEXT_WAIT_S if found else FIRST_WAIT_S):
                    batch = await reader.take(PAGE_ITEMS - len(found))
                if not batch:
                    break
                found += batch
    return found
