"""A disk: what is written stays in doubt until it is synchronised.

A write joins the next synchronisation, and one runs at a time: the group commit of a real one.
Where the replica dies, what was not synchronised is lost from some point on, and the record at
that point may be torn. Records rot, synchronisation stalls or fails, the disk fills up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from cogwork.sim.clock import Clock
    from cogwork.sim.raft.store import Store

__all__ = ("Damaged", "Disk", "DiskFull", "Record")

Record = tuple[Any, ...]
"""What a replica writes; the first item says what it is."""

SYNC_MIN_S, SYNC_MAX_S = 0.0002, 0.003

SEAM_SHARE = 0.5
"""So many crashes that meet a hard state with entries behind it keep the one alone."""


class Damaged(Exception):
    """A record in the middle has the wrong checksum: what it said, somebody may rely on."""


class DiskFull(Exception):
    """There is no room for the records; none was written."""


class Disk:
    """The disk of one replica.

    Attributes:
        records: What was written, in order.
        durable: So many of them are synchronised.
        slow_s: Added to each synchronisation.
        is_full: Whether writes are refused.
        fails_next: Whether the next synchronisation fails, and what it was to keep is lost.
        rotten: Positions of records with a wrong checksum.
        store: Takes what has become durable.
    """

    __slots__ = (
        "_asked",
        "_clock",
        "_is_syncing",
        "_life",
        "_on_durable",
        "_on_failure",
        "_random",
        "durable",
        "fails_next",
        "is_full",
        "records",
        "rotten",
        "slow_s",
        "store",
    )

    def __init__(self, clock: Clock, random: Random, store: Store) -> None:
        self.records: list[Record] = []
        self.durable = 0
        self.slow_s = 0.0
        self.is_full = False
        self.fails_next = False
        self.rotten: set[int] = set()
        self.store = store
        self._clock = clock
        self._random = random
        self._is_syncing = False
        self._asked = 0
        self._life = 0
        self._on_durable: Callable[[int], None] = _nobody
        self._on_failure: Callable[[], None] = _nobody

    def open(self, on_durable: Callable[[int], None], on_failure: Callable[[], None]) -> None:
        """Read it anew: cut a torn record off, and synchronise what it found.

        From then on somebody is told how many records are durable, or that no more will be.

        Raises:
            Damaged: A record in the middle cannot be read.
        """
        if self.rotten:
            first = min(self.rotten)
            if self.rotten != set(range(first, len(self.records))):
                raise Damaged(f"record {first} of {len(self.records)} has a wrong checksum")
            del self.records[first:]
            self.rotten.clear()
        self._on_durable, self._on_failure = on_durable, on_failure
        self._asked = len(self.records)
        self._keep(self._asked)

    def write(self, records: list[Record]) -> int:
        """Take records for the next synchronisation; return how many have been written.

        Raises:
            DiskFull: There is no room.
        """
        if self.is_full:
            raise DiskFull
        self.records += records
        self._asked = len(self.records)
        if not self._is_syncing:
            self._sync()
        return self._asked

    def crash(self) -> None:
        """Lose what was not synchronised, or the end of it."""
        self._life += 1
        self._is_syncing = False
        self._on_durable, self._on_failure = _nobody, _nobody
        if (seams := self.seams) and self._random.random() < SEAM_SHARE:
            kept = self._random.choice(seams)
        else:
            kept = self._random.randint(self.durable, len(self.records))
        is_torn = kept < len(self.records) and self._random.random() < 0.5
        del self.records[kept + is_torn :]
        if is_torn:
            self.rotten.add(kept)

    @property
    def seams(self) -> list[int]:
        """Where a hard state ends whose entries follow, and nothing of that is synchronised."""
        kinds = [record[0] for record in self.records[self.durable :]]
        return [
            self.durable + at
            for at in range(1, len(kinds))
            if (kinds[at - 1], kinds[at]) == ("hard", "entry")
        ]

    def rot(self) -> bool:
        """Damage a synchronised record that others follow; tell whether there was one."""
        if self.durable < 2:
            return False
        self.rotten.add(self._random.randrange(self.durable - 1))
        return True

    def _keep(self, target: int) -> None:
        for record in self.records[self.durable : target]:
            self.store.take(record)
        self.durable = target

    def _sync(self) -> None:
        self._is_syncing = True
        life, target = self._life, self._asked
        takes_s = self._random.uniform(SYNC_MIN_S, SYNC_MAX_S) + self.slow_s

        def done() -> None:
            if self._life != life:
                return
            if self.fails_next:
                self.fails_next = False
                self._on_failure()
                return
            self._keep(target)
            self._is_syncing = False
            if self._asked > target:
                self._sync()
            self._on_durable(target)

        self._clock.at(self._clock.now_s + takes_s, done)


def _nobody(*_: object) -> None:
    """Nobody listens."""
