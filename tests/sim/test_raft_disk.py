"""The disk of a simulated replica."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, cast

import pytest

from cogwork.sim.clock import Clock
from cogwork.sim.raft.disk import SYNC_MAX_S, Damaged, Disk, DiskFull, Record

if TYPE_CHECKING:
    from cogwork.sim.raft.store import Store


class Owner:
    """Whoever writes."""

    def __init__(self, seed: int = 1) -> None:
        self.clock = Clock()
        self.kept: list[str] = []
        self.disk = Disk(self.clock, Random(seed), cast("Store", self))
        self.durable: list[int] = []
        self.failures = 0
        self.open()

    def take(self, record: Record) -> None:
        self.kept.append(record[0])

    def open(self) -> None:
        self.disk.open(self.durable.append, self.fail)

    def fail(self) -> None:
        self.failures += 1

    def run(self, seconds: float) -> None:
        self.clock.run_until(self.clock.now_s + seconds)


@pytest.fixture
def owner() -> Owner:
    return Owner()


def test_what_is_written_is_durable_later(owner: Owner) -> None:
    assert owner.disk.write([("a",), ("b",)]) == 2
    assert (owner.disk.durable, owner.durable) == (0, [])
    owner.run(SYNC_MAX_S)
    assert (owner.disk.durable, owner.durable) == (2, [2])


def test_writes_during_a_synchronisation_share_the_next(owner: Owner) -> None:
    for record in "abc":
        owner.disk.write([(record,)])
    owner.run(2 * SYNC_MAX_S)
    assert owner.durable == [1, 3]


def test_a_crash_loses_the_end_of_what_is_not_synchronised() -> None:
    kept = set()
    for seed in range(40):
        owner = Owner(seed)
        owner.disk.write([("a",)])
        owner.run(SYNC_MAX_S)
        owner.disk.write([("b",), ("c",)])
        owner.disk.crash()
        owner.run(1)
        owner.open()
        assert owner.durable == [1]
        kept.add("".join(owner.kept))
        assert owner.disk.durable == len(owner.disk.records)
    assert kept == {"a", "ab", "abc"}


def test_a_crash_often_keeps_a_hard_state_without_the_entries_behind_it() -> None:
    kept = 0
    for seed in range(100):
        owner = Owner(seed)
        owner.disk.write([("hard",), *[("entry",)] * 9])
        assert owner.disk.seams == [1]
        owner.disk.crash()
        owner.open()
        kept += len(owner.disk.records) == 1
    assert 25 < kept < 75


def test_a_torn_record_is_cut_off() -> None:
    torn = 0
    for seed in range(40):
        owner = Owner(seed)
        owner.disk.write([("a",)])
        owner.disk.crash()
        torn += bool(owner.disk.rotten)
        if owner.disk.rotten:
            owner.open()
            assert owner.disk.records == owner.kept == []
    assert torn > 0


def test_a_rotten_record_before_others_is_refused(owner: Owner) -> None:
    owner.disk.write([("a",), ("b",)])
    owner.run(SYNC_MAX_S)
    assert owner.disk.rot()
    owner.disk.crash()
    with pytest.raises(Damaged, match="record 0 of 2 has a wrong checksum"):
        owner.open()


def test_nothing_rots_where_nothing_follows(owner: Owner) -> None:
    owner.disk.write([("a",)])
    owner.run(SYNC_MAX_S)
    assert not owner.disk.rot()


def test_a_stall_delays(owner: Owner) -> None:
    owner.disk.slow_s = 1.0
    owner.disk.write([("a",)])
    owner.run(0.9)
    assert owner.durable == []
    owner.run(0.2)
    assert owner.durable == [1]


def test_a_full_disk_takes_nothing(owner: Owner) -> None:
    owner.disk.is_full = True
    with pytest.raises(DiskFull):
        owner.disk.write([("a",)])
    assert owner.disk.records == []


def test_a_failed_synchronisation_is_told_and_nothing_is_durable(owner: Owner) -> None:
    owner.disk.fails_next = True
    owner.disk.write([("a",)])
    owner.run(1)
    assert (owner.failures, owner.durable, owner.disk.durable) == (1, [], 0)
