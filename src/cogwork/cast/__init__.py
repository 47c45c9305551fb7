"""Casts: cogs that send aspiring messages and are pushed canonical ones, all in one order.

A *cog* is a node in this process, in one thread. A *cast* is the cogs and what orders their
messages. Nearcast: the order is made here, by an `Orb`, in memory, without a network. Broadcast: it
is made by a stream on an engine, and the cogs of all processes that share it see the same.
"""

from __future__ import annotations

from cogwork.cast.broadcast import Broadcast
from cogwork.cast.canonical import CanonicalBatch, CanonicalMessage
from cogwork.cast.cast import Cast, CogFailed
from cogwork.cast.cog import Cog
from cogwork.cast.opening import broadcast, nearcast
from cogwork.cast.orb import Orb

__all__ = (
    "Broadcast",
    "CanonicalBatch",
    "CanonicalMessage",
    "Cast",
    "Cog",
    "CogFailed",
    "Orb",
    "broadcast",
    "nearcast",
)
