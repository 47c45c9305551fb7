"""Queues: nothing lost, nothing processed twice, and how far out of order they were.

Theory of operation. Two passes over the events. The first one counts them by queue, writer and
event: so little that the driver has it. The second one brings the events of each item together,
once, by a 64-bit hash of queue and item, as five numbers: what happened as counts in the bits of
one number, the item's two positions, who wrote of it, and when that was last. Sorted by writer and
by the order of going out, the items then stream through `cogwork.audit.books`, which counts them
and picks out those that are not as they should be.

Hashes that collide add up to counts that are not right, and are picked out too; what is picked out
is read again, by its name, before it is called a violation. So a collision costs a look, and can
neither hide anything nor make anything up.

What is missing depends on what is still there. A queue's containers write from time to time how
many items they hold (`state`), and anybody may write which ones these are (`held`). An item that is
neither settled nor held is lost, once it has been so for longer than the grace time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from cogwork.audit.books import SCHEMA, Books, Settings, keep_books
from cogwork.audit.events import events_of, json_of
from cogwork.audit.report import LISTED_MAX, Check
from cogwork.audit.suspects import Kind, look_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, Row

    from cogwork.audit.suspects import Found

__all__ = ("GRACE_S", "check_queues")

GRACE_S = 60.0
"""How long an item may be neither settled nor held: longer than any event is under way."""

STATE = (
    "queue string, container string, incarnation string, sample double, missed bigint, "
    "accepted bigint, settled bigint, depth bigint, time_us bigint"
)

CODE = """case
  when event = 'held' then -1
  when event = 'accepted' then 1
  when outcome = 'accepted' then 1048576
  when outcome in ('rejected', 'parked', 'expired') then 1099511627776
  else 0 end as code"""

WRITER = "xxhash64(queue, writer)"

ITEMS = """
select hash, sum(greatest(code, 0)) as code, max(held) as held,
  min(case when code = 1 then position end) as came,
  min(case when code <> 1 and code >= 0 then position end) as went,
  min(writer) as writer, max(writer) as other, max(time) as time
from {events} group by hash
"""


class Overview(NamedTuple):
    """What the first pass tells.

    Attributes:
        writers: The queue that each hash of a writer is about.
        events: How many events of each kind each queue has.
        outcomes: How many there are of each outcome.
        end_us: The time of the last event.
        first: The first offset.
    """

    writers: dict[int, str]
    events: dict[str, dict[str, int]]
    outcomes: dict[str, dict[str, int]]
    end_us: int
    first: int


class Shelf(NamedTuple):
    """What a queue's containers say of it.

    Attributes:
        depth: How many items they hold; None where they do not say.
        missed: How many events could not be written.
        sample: The least part of the items whose events are written.
    """

    depth: int | None = None
    missed: int = 0
    sample: float = 1.0


def check_queues(
    rows: DataFrame, names: Sequence[str] = (), *, grace_s: float = GRACE_S
) -> list[Check]:
    """Looks at what became of the items of audited queues.

    Args:
        rows: The records of the audit's stream.
        names: Those that are looked at; none is all.
        grace_s: How long an item may be neither settled nor held.
    """
    events = events_of(rows)
    overview = _overview(events)
    queues = [queue for queue in sorted(overview.events) if not names or queue in names]
    if not queues:
        return []
    lost_before_us = overview.end_us - int(grace_s * 1_000_000)
    books = _books(events, overview, queues, lost_before_us)
    found = look_at(events, books.suspects, lost_before_us)
    shelves = _shelves(events)
    checks: list[Check] = []
    for queue in queues:
        own = {writer for writer, name in overview.writers.items() if name == queue}
        shelf = shelves.get(queue, Shelf())
        checks += _checks_of(queue, overview, books.of(own), found.get(queue, {}), shelf)
    return checks


# -- passes


def _overview(events: DataFrame) -> Overview:
    counted = (
        events.selectExpr("queue", "event", "outcome", f"{WRITER} as writer", "time", "offset")
        .where("event in ('accepted', 'settled')")
        .groupBy("queue", "event", "outcome", "writer")
        .agg({"*": "count", "time": "max", "offset": "min"})
        .collect()
    )
    overview = Overview({}, {}, {}, max((row["max(time)"] for row in counted), default=0), 0)
    for row in counted:
        overview.writers[row["writer"]] = row["queue"]
        kinds = overview.events.setdefault(row["queue"], {})
        kinds[row["event"]] = kinds.get(row["event"], 0) + row["count(1)"]
        if row["event"] == "settled":
            outcomes = overview.outcomes.setdefault(row["queue"], {})
            name = row["outcome"] or "none"
            outcomes[name] = outcomes.get(name, 0) + row["count(1)"]
    return overview._replace(first=min((row["min(offset)"] for row in counted), default=0))


def _books(
    events: DataFrame, overview: Overview, queues: Sequence[str], lost_before_us: int
) -> Books:
    chosen = events.where("event in ('accepted', 'settled', 'held')")
    if set(queues) != set(overview.events):
        chosen = chosen.where(chosen["queue"].isin(list(queues)))
    coded = chosen.selectExpr(
        "xxhash64(queue, item) as hash",
        CODE,
        "case when event = 'held' then 1 else 0 end as held",
        "position",
        f"case when event <> 'held' then {WRITER} end as writer",
        "time",
    )
    items = events.sparkSession.sql(ITEMS, events=coded)
    ordered = items.repartition("writer").sortWithinPartitions("writer", "went")
    settings = Settings(lost_before_us, LISTED_MAX)
    return Books.from_rows(ordered.mapInArrow(keep_books(settings), SCHEMA).collect())


def _shelves(events: DataFrame) -> dict[str, Shelf]:
    """Takes what each container said last in each of its incarnations."""
    said = json_of(events, "state", STATE).collect()
    last: dict[tuple[str, str, str], Row] = {}
    for row in sorted(said, key=lambda row: row["offset"]):
        last[row["queue"], row["container"], row["incarnation"] or ""] = row
    depths: dict[tuple[str, str], int | None] = {}
    shelves: dict[str, Shelf] = {}
    for (queue, container, _), row in last.items():
        depths[queue, container] = row["depth"]
        before = shelves.get(queue, Shelf())
        sample = 1.0 if row["sample"] is None else row["sample"]
        shelves[queue] = before._replace(
            missed=before.missed + (row["missed"] or 0), sample=min(before.sample, sample)
        )
    for queue, shelf in shelves.items():
        known = [depth for (name, _), depth in depths.items() if name == queue]
        if all(depth is not None for depth in known):
            shelves[queue] = shelf._replace(depth=sum(depth or 0 for depth in known))
    return shelves


# -- checks


def _checks_of(
    queue: str,
    overview: Overview,
    books: Books,
    found: Found,
    shelf: Shelf,
) -> list[Check]:
    checks = [
        _check_lost(queue, overview, books, found.get(Kind.LOST, []), shelf),
        _check_twice(queue, books, found),
        _check_unknown(queue, overview, books, found, shelf),
        _order(queue, books, shelf),
    ]
    for check in checks:
        if shelf.sample < 1:
            check.doubt(f"only {shelf.sample:.2%} of the items are audited: no proof")
    return checks


def _check_lost(
    queue: str, overview: Overview, books: Books, rows: list[dict[str, Any]], shelf: Shelf
) -> Check:
    check = Check(queue, "every accepted item settled or still there")
    check.figures = {
        "items": books.total("items"),
        **dict(sorted(overview.outcomes.get(queue, {}).items())),
        "open": books.total("open"),
        "open_beyond_grace": books.total("lost"),
        "held": books.total("held"),
        "depth": shelf.depth,
    }
    lost = _confirmed(books.total("lost"), rows)
    there = min(lost, (shelf.depth or 0)) if shelf.sample >= 1 else 0
    if there:
        check.remark = f"{there} of them still there by the queue's depth, not by name"
    if shelf.missed and lost - there <= shelf.missed:
        check.doubt(f"{shelf.missed} events were missed: no proof")
        check.figures["not_settled"] = lost - there
        return check
    if lost > there:
        check.violate(rows, lost - there)
    return check


def _check_twice(queue: str, books: Books, found: Found) -> Check:
    check = Check(queue, "nothing processed twice")
    twice, again = found.get(Kind.TWICE, []), found.get(Kind.SETTLED_AGAIN, [])
    check.figures = {
        "processed": books.total("processed"),
        "parked_or_expired": books.total("ended"),
    }
    if found.get(Kind.RECORDED_TWICE, []):
        check.figures["recorded_twice"] = len(found.get(Kind.RECORDED_TWICE, []))
        check.remark = "some events are in the stream twice, word for word; that is no second time"
    check.violate(
        twice + again,
        _confirmed(books.total("twice"), twice + again, found.get(Kind.RECORDED_TWICE, [])),
    )
    return check


def _check_unknown(
    queue: str,
    overview: Overview,
    books: Books,
    found: Found,
    shelf: Shelf,
) -> Check:
    check = Check(queue, "nothing settled that was never accepted")
    rows = found.get(Kind.UNKNOWN, [])
    count = _confirmed(books.total("unknown"), rows)
    if overview.first > 0 and count:
        check.figures["before_the_archive"] = count
        check.doubt("the archive does not begin with the stream: earlier acceptances are unknown")
    elif shelf.missed >= count and count:
        check.doubt(f"{shelf.missed} events were missed: no proof")
    else:
        check.violate(rows, count)
    again = found.get(Kind.ACCEPTED_AGAIN, [])
    check.violate(again, _confirmed(books.total("again"), again))
    return check


def _order(queue: str, books: Books, shelf: Shelf) -> Check:
    check = Check(queue, "how far out of order")
    check.figures = {
        "measured": books.total("measured"),
        "disorder_p50": books.greatest("disorder_p50"),
        "disorder_p99": books.greatest("disorder_p99"),
        "disorder_max": books.greatest("disorder_max"),
    }
    if shelf.sample < 1:
        check.remark = "among the audited items"
    return check


def _confirmed(
    counted: int, rows: list[dict[str, Any]], dropped: Sequence[dict[str, Any]] = ()
) -> int:
    """Takes those that a second look confirmed, as far as it went, and the rest as counted."""
    if counted <= LISTED_MAX:
        return len(rows)
    return counted - len(dropped)
