"""Items that may be violations, read again by their names.

Theory of operation. All events of possible violations are read, and those of one item brought
together by its queue and its name, so that two items whose hashes collide are told apart. Events of
the same attempt and outcome are one that was told again.
"""

from __future__ import annotations

import json
from collections import defaultdict
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from cogwork.pipeline.audit.events import LAST, NAMED
from cogwork.pipeline.audit.gathering import find

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Row

    from cogwork.pipeline.audit.events import Events

__all__ = ("Found", "Kind", "look_at")

ROWS_MAX = 20_000
"""Events that are read."""

EVENTS_MAX = 20
"""Events of one item that are shown."""


class Kind(StrEnum):
    """What is wrong with an item."""

    LOST = "lost"
    TWICE = "processed-twice"
    SETTLED_TWICE = "settled-twice"
    UNACCEPTED = "never-accepted"


Found = dict[Kind, list[dict[str, Any]]]
"""What is wrong with which items of a queue."""


def look_at(events: Events, violations: Sequence[int], lost_before: int) -> dict[str, Found]:
    """Read the events of possible violations, and say by queue what is wrong.

    Args:
        events: The events.
        violations: The hashes of queue and item.
        lost_before: An item whose last event has a lower offset than this should not be open.
    """
    if not violations:
        return {}
    # Where they are, first: that needs few columns, and their offsets few parts of the files. They
    # are shuffled, so that all tasks look at once.
    places = events.mapped(find(violations), "offset bigint", NAMED).repartition(1)
    offsets = [row["offset"] for row in places.take(ROWS_MAX)]
    told = events.table.where("event in ('accepted', 'settled', 'held')")
    rows = told.where(told["offset"].isin(offsets)).collect()
    items: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row["offset"]):
        items[row["queue"], row["item"]].append(row)
    found: dict[str, Found] = {}
    for (queue, item), happened in items.items():
        for kind in _kinds(happened, lost_before):
            shown = [_shown(each) for each in happened[:EVENTS_MAX]]
            found.setdefault(queue, {}).setdefault(kind, []).append(
                {"kind": str(kind), "queue": queue, "item": item, "events": shown}
            )
    return found


def _kinds(events: list[Row], lost_before: int) -> list[Kind]:
    kinds: list[Kind] = []
    happened = {each["event"] for each in events}
    ends = {(each["attempt"], each["outcome"]) for each in events if each["outcome"] in LAST}
    is_over = ends or "held" in happened or events[-1]["offset"] >= lost_before
    if "accepted" in happened and not is_over:
        kinds.append(Kind.LOST)
    known = [outcome for _, outcome in ends if outcome != "unknown"]
    if known.count("accepted") > 1:
        kinds.append(Kind.TWICE)
    elif len(known) > 1:
        kinds.append(Kind.SETTLED_TWICE)
    if ends and "accepted" not in happened:
        kinds.append(Kind.UNACCEPTED)
    return kinds


def _shown(event: Row) -> dict[str, Any]:
    try:
        said = json.loads(event["body"])
    except ValueError:
        said = {}
    return {
        "offset": event["offset"],
        "time_us": event["time"],
        "event": event["event"],
        "outcome": event["outcome"],
        "container": said.get("container"),
        "attempt": event["attempt"],
        "consumer": said.get("consumer"),
    }
