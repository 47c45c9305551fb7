"""What became of the items of queues: a part of all items, which one task evaluates.

Theory of operation. All that is known of the items of a part is there; so each is evaluated. What
is as it should be is counted by shards; the others are counted by what is wrong with them, and some
of these are kept as possible violations. The places of the items are sorted by when they went out,
and cut into chunks, for `cogwork.pipeline.audit.account` to merge.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from cogwork.pipeline.audit.events import LAST
from cogwork.pipeline.audit.items import (
    AGAIN,
    AT,
    BACK,
    CAME,
    CAME_AT,
    CODE,
    HASH,
    HELD,
    NEVER,
    NOT_YET,
    OUTCOMES,
    SHARD,
    UNTOLD,
    WENT_AT,
    merged,
    unpacked,
)
from cogwork.pipeline.spark.worker import keep_loaded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from cogwork.pipeline.audit.items import Table

    Evaluated = tuple[int, int, Table]

__all__ = ("COUNTED", "COUNTS", "EVALUATED", "PLACED", "Settings", "evaluate")

GONE = sum(OUTCOMES.values())

COUNTS = ("items", *LAST, "given_back", "open", "held", "lost", "twice", "unaccepted", "untold")
VIOLATIONS = ("lost", "twice", "unaccepted")
"""The counts of items that may be violations."""

COUNTED, PLACED, VIOLATING = range(3)
"""Kinds of rows that are made of a part of a shard's items: their counts, and a sample; the places
of some, when they went out and when they had come; the hashes of possible violations, each kind of
them with one more."""

EVALUATED = "shard bigint, kind int, first bigint, numbers binary"

CHUNK_ITEMS = 8192
"""Items whose places are cut off at a time."""

SHORT_MAX = 1 << 16
"""Numbers that fit sixteen bits, which are sorted by digits."""


class Settings(NamedTuple):
    """What is counted as lost, and how much is kept.

    Attributes:
        lost_before: An item whose last event has a lower offset than this should not be open.
        violations_max: How many possible violations of each kind are kept of each shard.
    """

    lost_before: int
    violations_max: int


def evaluate(
    settings: Settings,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Make the function that evaluates the items of a part, and makes rows of `EVALUATED`.

    Args:
        settings: What is counted as lost, and how much is kept.
    """
    return partial(_evaluate_part, settings)


def _evaluate_part(
    settings: Settings, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    keep_loaded()
    shards: dict[int, Evaluation] = {}
    for items in merged(unpacked(batches)):
        for shard, own in _by_shard(items):
            shards.setdefault(shard, Evaluation(settings)).add(own)
    for shard, evaluation in shards.items():
        yield _evaluated(evaluation.rows(), shard)


def _by_shard(items: Table) -> Iterator[tuple[int, Table]]:
    encoded = pa.array(items[SHARD]).dictionary_encode()
    shards, index = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
    if len(shards) == 1:
        yield shards[0], items
        return
    if len(shards) <= SHORT_MAX:
        index = index.astype(np.uint16)
    order = np.argsort(index, kind="stable")
    ends = np.cumsum(np.bincount(index))
    for shard, start, end in zip(shards, [0, *ends[:-1]], ends, strict=True):
        yield shard, items[:, order[start:end]]


class Evaluation:
    """What became of the items of one shard."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._counts = dict.fromkeys(COUNTS, 0)
        self._violations: dict[str, list[int]] = {name: [] for name in VIOLATIONS}
        self._sample = (NEVER, 0)
        self._places: list[Table] = []

    def add(self, items: Table) -> None:
        """Evaluate complete items."""
        came, went = items[CAME_AT], items[WENT_AT]
        known = (came > 0) & (went > 0) & (came < NEVER) & (went < NEVER)
        self._places.append(np.stack((went[known], came[known])))
        first = int(np.argmax(went))
        sample = (-max(int(went[first]), 0), int(items[AT][first]))
        self._sample = min(self._sample, sample)  # one that is open, if there is any
        tally = np.bincount(items[CODE])
        for code in np.flatnonzero(tally).tolist():
            names = findings_of(code)
            for name in names:
                self._counts[name] += int(tally[code])
            if not names.isdisjoint(VIOLATIONS):
                self._add_violations(items[:, items[CODE] == code], names)

    def _add_violations(self, items: Table, names: frozenset[str]) -> None:
        """Keep some of the items of one code; they are lost only if they are old enough."""
        for name in names.intersection(VIOLATIONS):
            hashes = items[HASH]
            if name == "lost":
                hashes = hashes[items[AT] < self._settings.lost_before]
                self._counts[name] -= items.shape[1] - len(hashes)
            kept = self._violations[name]
            kept += hashes[: self._settings.violations_max - len(kept)].tolist()

    def rows(self) -> Iterator[Evaluated]:
        """Return what the rows of `EVALUATED` have besides the shard."""
        yield COUNTED, NOT_YET, np.array([*self._counts.values(), *self._sample])
        for at, hashes in enumerate(self._violations.values()):
            if hashes:
                yield VIOLATING + at, NOT_YET, np.array(hashes)
        places = np.concatenate(self._places, axis=1)
        places = places[:, np.argsort(places[0])]
        for start in range(0, places.shape[1], CHUNK_ITEMS):
            chunk = places[:, start : start + CHUNK_ITEMS]
            yield PLACED, int(chunk[0][0]), chunk


@cache
def findings_of(code: int) -> frozenset[str]:
    """Return what an item counts as by what happened; `lost` is one that is if it is old enough."""
    came, is_gone, is_held = (bool(code & bits) for bits in (CAME, GONE, HELD))
    is_open = came and not is_gone
    findings = {
        "items": came,
        **{name: code & bit for name, bit in OUTCOMES.items()},
        "given_back": code & BACK,
        "open": is_open,
        "held": is_open and is_held,
        "lost": is_open and not is_held,
        "twice": code & AGAIN,
        "unaccepted": is_gone and not came,
        "untold": code & UNTOLD,
    }
    return frozenset(name for name, holds in findings.items() if holds)


def _evaluated(rows: Iterable[Evaluated], shard: int) -> pa.RecordBatch:
    kinds, firsts, numbers = zip(*rows, strict=True)
    columns = {
        "shard": pa.array([shard] * len(kinds), pa.int64()),
        "kind": pa.array(kinds, pa.int32()),
        "first": pa.array(firsts, pa.int64()),
        "numbers": pa.array([each.tobytes() for each in numbers], pa.binary()),
    }
    return pa.RecordBatch.from_pydict(columns)
