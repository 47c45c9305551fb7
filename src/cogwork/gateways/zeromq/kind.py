"""The three kinds of queues, each with a socket of its own."""

from __future__ import annotations

from enum import StrEnum

__all__ = ("Kind",)


class Kind(StrEnum):
    """What a socket is for; values are the names of options, too."""

    PEER2PEER = "peer2peer"
    ROUNDROBIN = "roundrobin"
    PUBSUB = "pubsub"
