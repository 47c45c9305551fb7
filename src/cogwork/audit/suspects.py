"""A second look at items that are not as they should be, by their names.

Theory of operation. All events of the suspects are read, and those of one item brought together by
its queue and its name, so that two items whose hashes collide are told apart. An event that is in
the stream twice, word for word, was written down twice and happened once.
"""

from __future__ import annotations

import json
from collections import defaultdict
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, Row

__all__ = ("Found", "Kind", "look_at")

LAST = ("accepted", "rejected", "parked", "expired")
"""The outcomes after which an item is gone."""

EVENTS_MAX = 20
"""Events of one item that are shown."""


class Kind(StrEnum):
    """What is wrong with an item."""

    LOST = "lost"
    TWICE = "processed-twice"
    SETTLED_AGAIN = "settled-twice"
    RECORDED_TWICE = "recorded-twice"
    UNKNOWN = "never-accepted"
    ACCEPTED_AGAIN = "accepted-twice"


Found = dict[Kind, list[dict[str, Any]]]
"""What is wrong with which items of a queue."""


def look_at(events: DataFrame, suspects: Sequence[int], lost_before_us: int) -> dict[str, Found]:
    """Reads the events of suspects, and says by queue what is wrong.

    Args:
        events: From `events_of`.
        suspects: The hashes of queue and item.
        lost_before_us: An item that is open since before this time is lost.
    """
    if not suspects:
        return {}
    wanted = f"xxhash64(queue, item) in ({', '.join(map(str, suspects))})"
    rows = events.where("event in ('accepted', 'settled', 'held')").where(wanted).collect()
    items: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row["offset"]):
        items[row["queue"], row["item"]].append(row)
    found: dict[str, Found] = {}
    for (queue, item), happened in items.items():
        for kind in _kinds(happened, lost_before_us):
            shown = [_shown(each) for each in happened[:EVENTS_MAX]]
            found.setdefault(queue, {}).setdefault(kind, []).append(
                {"kind": str(kind), "queue": queue, "item": item, "events": shown}
            )
    return found


def _kinds(events: list[Row], lost_before_us: int) -> list[Kind]:
    kinds: list[Kind] = []
    accepted = {bytes(each["body"]) for each in events if each["event"] == "accepted"}
    last = [each for each in events if each["event"] == "settled" and each["outcome"] in LAST]
    ends = {bytes(each["body"]): each["outcome"] for each in last}
    is_held = any(each["event"] == "held" for each in events)
    if accepted and not last and not is_held and events[-1]["time"] < lost_before_us:
        kinds.append(Kind.LOST)
    if list(ends.values()).count("accepted") > 1:
        kinds.append(Kind.TWICE)
    elif len(ends) > 1:
        kinds.append(Kind.SETTLED_AGAIN)
    elif len(last) > 1:
        kinds.append(Kind.RECORDED_TWICE)
    if last and not accepted:
        kinds.append(Kind.UNKNOWN)
    if len(accepted) > 1:
        kinds.append(Kind.ACCEPTED_AGAIN)
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
        "attempt": said.get("attempt"),
        "consumer": said.get("consumer"),
    }
