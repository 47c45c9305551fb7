"""The one line by which a nearcast and a broadcast differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

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


def broadcast(engine: Engine) -> Broadcast:
    """Makes a cast over a stream; use it in `async with`.

    Args:
        engine: The stream, open on an engine; it stays open.
    """
    return Broadcast(EngineLine(engine))
