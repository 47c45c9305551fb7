"""What an engine declares of itself, so that nobody has to find out by losing something."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cogwork.plugin.engine.batch import BATCH_BYTES_MAX

if TYPE_CHECKING:
    from cogwork.plugin.engine.durability import Durability

__all__ = ("Capabilities",)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The conformance kit skips by these, and by nothing else.

    Attributes:
        durability: What an answered append has behind it.
        is_uniform: Whether what one subscriber was given is never taken back from the others, even
            where the one that gave it out is lost at once (uniform agreement).
        deduplicates: Whether the engine itself drops what a producer repeats, however late.
        fences: Whether an append can be refused because its epoch is an old one.
        seeks_time: Whether a reader can start at a time.
        trims: Whether old records can be given up.
        keeps_snapshots: Whether an application can leave a snapshot in the stream.
        changes_members: Whether replicas can be added and removed while it runs.
        survives_close: Whether a stream is still there after its host was closed and made anew.
        batch_bytes_max: The largest payload of a batch.
    """

    durability: Durability
    is_uniform: bool = True
    deduplicates: bool = True
    fences: bool = True
    seeks_time: bool = True
    trims: bool = True
    keeps_snapshots: bool = True
    changes_members: bool = False
    survives_close: bool = True
    batch_bytes_max: int = BATCH_BYTES_MAX
