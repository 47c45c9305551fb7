"""What can be asked of a stream's sequencer; `chunks` has the octets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from cogwork.plugin.engine.batch import Batch
    from cogwork.plugin.engine.contract import Snapshot

__all__ = ("Append", "Command", "Fence", "KeepSnapshot", "Trim")


class Append(msgspec.Struct, frozen=True, gc=False):
    """Appends a batch.

    Attributes:
        batch: The records.
        epoch: Under this epoch only; None takes any.
        time_ms: When it was proposed, in milliseconds since 1970 (UTC).
    """

    batch: Batch
    epoch: int | None
    time_ms: int


class Fence(msgspec.Struct, frozen=True, gc=False):
    """Begins a new epoch."""


class Trim(msgspec.Struct, frozen=True, gc=False):
    """Gives up records.

    Attributes:
        before: Those below this offset.
    """

    before: int


class KeepSnapshot(msgspec.Struct, frozen=True, gc=False):
    """Keeps an application's snapshot instead of an earlier one.

    Attributes:
        snapshot: The snapshot.
    """

    snapshot: Snapshot


Command = Append | Fence | Trim | KeepSnapshot
