"""How much a stream's records survive, from least to most."""

from __future__ import annotations

from enum import Enum

__all__ = ("Durability",)


class Durability(Enum):
    """What has happened to a record by the time its append is answered."""

    MEMORY = "memory"
    """One process holds it."""

    REPLICATED_MEMORY = "replicated-memory"
    """A majority of processes holds it; a power cut to all of them loses it."""

    DISK = "disk"
    """One disk holds it, synchronised."""

    QUORUM_DISK = "quorum-disk"
    """The disks of a majority hold it, synchronised."""
