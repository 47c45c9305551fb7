"""The one line by which a nearcast and a broadcast differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from cogwork.cast.broadcast import Broadcast
from cogwork.cast.engine_line import EngineLine
from cogwork.cast.orb import RETENTION, Orb

if TYPE_CHECKING:
    from cogwork.consensus.engine import Engine
    from cogwork.consensus.retention import Retention

__all__ = ("broadcast", "nearcast")


def nearcast(retention: Retention = RETENTION) -> Orb:
    """Makes a cast within this thread; use it in `async with`.

    Args:
        retention: How much cogs that are added late are given.
    """
    return Orb(retention)


@overload
def broadcast(where: str, stream: str, **options: Any) -> Broadcast: ...


@overload
def broadcast(where: Engine) -> Broadcast: ...


def broadcast(where: str | Engine, stream: str = "", **options: Any) -> Broadcast:
    """Makes a cast over a stream; use it in `async with`.

    Args:
        where: A container's URL; or a stream that is open on an engine here, and stays open.
        stream: The stream's address, where a URL is given.
        **options: As for `cogwork.connect`, where a URL is given.
    """
    if not isinstance(where, str):
        return Broadcast(EngineLine(where))
    if not stream:
        raise ValueError("a stream's address is expected: broadcast(url, 'stream/orders')")
    # Without a network nobody needs the client.
    from cogwork.cast.stream_line import StreamLine  # noqa: PLC0415  # nearcasts need no client
    from cogwork.client import connect  # noqa: PLC0415  # nor this

    return Broadcast(StreamLine(lambda: connect(where, **options), stream))
