"""The one line by which a nearcast and a broadcast differ."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, overload

from cogwork.cast.broadcast import Broadcast
from cogwork.cast.engine_line import EngineLine
from cogwork.cast.orb import RETENTION, Orb

if TYPE_CHECKING:
    from cogwork.client.connection.url import Urls
    from cogwork.plugin.engine.contract import Engine
    from cogwork.plugin.engine.retention import Retention

__all__ = ("broadcast", "nearcast")


def nearcast(retention: Retention = RETENTION) -> Orb:
    """Make a cast within this thread; use it in `async with`.

    Args:
        retention: How much cogs that are added late are given.
    """
    return Orb(retention)


@overload
def broadcast(where: Urls, stream: str, **options: Any) -> Broadcast: ...


@overload
def broadcast(where: Engine) -> Broadcast: ...


def broadcast(where: Urls | Engine, stream: str = "", **options: Any) -> Broadcast:
    """Make a cast over a stream; use it in `async with`.

    Args:
        where: A container's URL, or a list of URLs, of which the first that answers is taken, now
            and after each loss; or a stream that is open on an engine here, and stays open.
        stream: The stream's address, where URLs are given.
        **options: As for `cogwork.connect`, where URLs are given.

    Raises:
        InvalidUrlError: A URL is wrong, or the list is empty.
    """
    if not isinstance(where, str | Iterable):
        return Broadcast(EngineLine(where))
    if not stream:
        raise ValueError("a stream's address is expected: broadcast(url, 'stream/orders')")
    # Without a network nobody needs the client.
    from cogwork.cast.stream_line import StreamLine  # noqa: PLC0415  # nearcasts need no client
    from cogwork.client import connect  # noqa: PLC0415  # nor this
    from cogwork.client.connection.url import endpoints_of  # noqa: PLC0415  # nor this

    endpoints = endpoints_of(where)
    return Broadcast(StreamLine(lambda: connect(endpoints, **options), stream))
