"""Numbers that should count up by one: runs of them, and what the breaks between runs mean.

Theory of operation. Offsets of a stream, sequences of a producer and what a subscriber saw are all
numbers that go up by one. A *run* is a stretch in which they do. Each batch of rows is folded into
its runs where it is read, in any order and without a shuffle: a batch in order is one row. What is
left is so little that one window over it finds the *breaks*, runs that do not continue what came
before. A break upwards says which numbers are missing. One downwards has come late, if its numbers
were missing until then (two were swapped), or once more than it should.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

__all__ = ("Break", "Runs", "explain", "fold")


class Runs(NamedTuple):
    """Runs as columns.

    Attributes:
        key: Whose numbers these are.
        first: The first number of each.
        last: The last one.
        place_first: The offset of the record that has the first number.
        place_last: That of the last one.
        time_first: Its time.
        time_last: That of the last one.
    """

    key: NDArray[np.integer[Any]]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    place_first: NDArray[np.int64]
    place_last: NDArray[np.int64]
    time_first: NDArray[np.int64]
    time_last: NDArray[np.int64]


class Break(NamedTuple):
    """A run that does not continue what came before it.

    Attributes:
        key: Whose numbers these are.
        before: The greatest number before; None where there is none.
        first: The run's first number.
        last: Its last one.
        place: The offset of the record with the first one.
    """

    key: int
    before: int
    first: int
    last: int
    place: int


def fold(
    key: NDArray[np.integer[Any]],
    number: NDArray[np.int64],
    place: NDArray[np.int64],
    time: NDArray[np.int64],
    *,
    times_rise: bool,
) -> Runs:
    """Fold rows into runs.

    Args:
        key: Whose number each is.
        number: The numbers.
        place: The offsets of the records.
        time: Their times.
        times_rise: Whether a run ends also where time goes backwards.
    """
    is_other = key[1:] != key[:-1]
    if not np.all((key[1:] > key[:-1]) | (~is_other & (place[1:] >= place[:-1]))):
        order = np.lexsort((place, key))
        key, number, place, time = key[order], number[order], place[order], time[order]
        is_other = key[1:] != key[:-1]
    breaks = is_other | (np.diff(number) != 1)
    if times_rise:
        breaks |= np.diff(time) < 0
    ends = np.flatnonzero(breaks)
    first = np.concatenate(([0], ends + 1)) if len(number) else ends
    last = np.concatenate((ends, [len(number) - 1])) if len(number) else ends
    return Runs(
        key[first],
        number[first],
        number[last],
        place[first],
        place[last],
        time[first],
        time[last],
    )


def explain(breaks: Iterable[Break]) -> list[dict[str, Any]]:
    """Say of the breaks of one key, in their order, what is missing, late or there twice.

    Returns:
        Dictionaries with `kind` (`missing`, `swapped`, `duplicate`), `first` and `last` number,
        `place`, and `after`, the greatest number that came before.
    """
    missing: list[list[int]] = []
    places: dict[int, tuple[int, int]] = {}
    found: list[dict[str, Any]] = []
    for each in breaks:
        if each.first > each.before + 1:
            missing.append([each.before + 1, each.first - 1])
            places[each.before + 1] = (each.place, each.before)
        for kind, first, last in _late(missing, each):
            found.append(_finding(kind, first, last, each.place + first - each.first, each.before))
    for first, last in missing:
        place, before = places.get(first, (None, first - 1))
        found.append(_finding("missing", first, last, place, before))
    return found


def _finding(kind: str, first: int, last: int, place: int | None, after: int) -> dict[str, Any]:
    return {"kind": kind, "first": first, "last": last, "place": place, "after": after}


def _late(missing: list[list[int]], run: Break) -> list[tuple[str, int, int]]:
    """Split what a run has of numbers that were passed before; take them from the missing."""
    at, last = run.first, min(run.last, run.before)
    parts: list[tuple[str, int, int]] = []
    while at <= last:
        gap = next((each for each in missing if each[0] <= at <= each[1]), None)
        if gap is None:
            after = min((each[0] for each in missing if each[0] > at), default=last + 1)
            end = min(last, after - 1)
            parts.append(("duplicate", at, end))
        else:
            end = min(last, gap[1])
            parts.append(("swapped", at, end))
            missing.remove(gap)
            missing += [piece for piece in ([gap[0], at - 1], [end + 1, gap[1]]) if _is_some(piece)]
            missing.sort()
        at = end + 1
    return parts


def _is_some(piece: list[int]) -> bool:
    return piece[0] <= piece[1]
