"""Queues: nothing lost, nothing processed twice, and how far out of order they were.

Theory of operation. One pass brings the events of each item together, by a 64-bit hash of queue and
item, as a few numbers: what happened as bits, its first and last outcome after which it is gone,
its two positions, its shard and its last event (`cogwork.pipeline.audit.gathering`). Complete items
are counted, and those that are not as they should be are picked out
(`cogwork.pipeline.audit.evaluation`); in the order of going out they then stream through
`cogwork.pipeline.audit.account`. What is picked out is read again, by its name, before it is called
a violation: two items whose hashes collide may be taken for one that is wrong, never reported as
one. (That such a pair hides a lost item has a chance of one in a million millions, with ten million
items.)

Events are told at least once: what is told again is the same event, and counts once. What is
missing depends on what is still there: heartbeats say how many items a queue holds, and anybody may
write which ones these are (`held`). An item that is neither gone nor held is lost, once it has been
so for longer than the grace time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cogwork.pipeline.audit.account import SCHEMA, Account, keep_account
from cogwork.pipeline.audit.evaluation import EVALUATED, Settings, evaluate
from cogwork.pipeline.audit.events import LAST, Events, json_of
from cogwork.pipeline.audit.gathering import ENDS, Division, ends, gather
from cogwork.pipeline.audit.items import PACKED
from cogwork.pipeline.audit.report import LISTED_MAX, Check
from cogwork.pipeline.audit.violations import Kind, look_at

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cogwork.pipeline.audit.source import Records
    from cogwork.pipeline.audit.violations import Found

__all__ = ("GRACE_S", "check_queues")

GRACE_S = 60.0
"""How long an item may be neither gone nor held: longer than any event is under way."""

PARTITIONS = "spark.sql.shuffle.partitions"

MISSED = "queue string, container string, count bigint"

RECENT = "select min(offset) as first from {rows} where time >= timestamp_micros({since_us})"
"""Where the grace time begins that has not passed; of files before it, only their ends are read."""

SAMPLE = (
    "cast(regexp_extract(cast(body as string), '\"sample\":([0-9.e+-]+)', 1) as string) as sample"
)


class ItemTable(NamedTuple):
    """What is known of a queue besides its items' events.

    Attributes:
        shards: The hashes of its shards.
        depth: How many items it holds; None where nobody says.
        missed: How many events could not be told.
        sample: The part of the items whose events are told.
    """

    shards: tuple[int, ...] = ()
    depth: int | None = None
    missed: int = 0
    sample: float = 1.0


def check_queues(
    records: Records,
    names: Sequence[str] = (),
    *,
    depths: Mapping[str, int] | None = None,
    grace_s: float = GRACE_S,
) -> list[Check]:
    """Look at what became of the items of audited queues.

    Args:
        records: Those of the audit's stream.
        names: Those that are looked at; none is all.
        depths: How many items each queue holds now, where that is known.
        grace_s: How long an item may be neither gone nor held.
    """
    spark, rows = records.spark, records.rows
    bounds = records.mapped(("offset", "time"), ends, ENDS).collect()
    first = min((row["first"] for row in bounds if row["first"] is not None), default=None)
    if first is None:
        return []
    end_us = max(row["end_us"] for row in bounds if row["end_us"] is not None)
    since_us = end_us - int(grace_s * 1_000_000)
    lost_before = spark.sql(RECENT, rows=rows, since_us=since_us).collect()[0]["first"]
    events = Events(records, with_bodies=False)
    account = _account(events, names, lost_before)
    if account.total("untold"):
        events = Events(records, with_bodies=True)
        account = _account(events, names, lost_before)
    found = look_at(events, account.violations, lost_before)
    shelves = _shelves(events, account, depths or {})
    return [
        check
        for queue, shelf in sorted(shelves.items())
        for check in _checks_of(queue, account.of(shelf.shards), found.get(queue, {}), shelf, first)
    ]


# -- passes


def _account(events: Events, names: Sequence[str], lost_before: int) -> Account:
    parts = int(events.records.spark.conf.get(PARTITIONS) or 1)
    settings = Settings(lost_before, LISTED_MAX)
    gathered = events.mapped(gather(Division(tuple(names), parts)), PACKED)
    evaluated = gathered.repartitionById(parts, "part").mapInArrow(evaluate(settings), EVALUATED)
    ordered = evaluated.repartition("shard").sortWithinPartitions("shard", "first")
    return Account.from_rows(ordered.mapInArrow(keep_account(settings), SCHEMA).collect())


def _shelves(events: Events, account: Account, depths: Mapping[str, int]) -> dict[str, ItemTable]:
    """Find out whose shards these are, by a record of each, and what else is said of them."""
    if not account.shards:
        return {}
    offsets = [each["sample"] for each in account.shards.values()]
    table = events.table
    named = table.where(table["offset"].isin(offsets)).selectExpr("queue", "shard", SAMPLE)
    missed = dict[str, int]()
    for row in json_of(events.records.rows, "missed", MISSED).collect():
        missed[row["queue"]] = missed.get(row["queue"], 0) + (row["count"] or 0)
    shelves: dict[str, ItemTable] = {}
    for row in named.collect():
        queue = row["queue"]
        before = shelves.get(queue, ItemTable())
        shelves[queue] = ItemTable(
            (*before.shards, row["shard"]),
            depths.get(queue),
            missed.get(queue, 0),
            min(before.sample, float(row["sample"] or 1.0)),
        )
    return shelves


# -- checks


def _checks_of(
    queue: str, account: Account, found: Found, shelf: ItemTable, first: int
) -> list[Check]:
    checks = [
        _check_lost(queue, account, found, shelf),
        _check_twice(queue, account, found),
        _check_unaccepted(queue, account, found, shelf, first),
        _order(queue, account),
    ]
    if shelf.sample < 1:
        for check in checks:
            check.doubt(f"only {shelf.sample:.2%} of the items are audited: no proof")
    return checks


def _check_lost(queue: str, account: Account, found: Found, shelf: ItemTable) -> Check:
    check = Check(queue, "every accepted item settled or still there")
    counted = {name: account.total(name) for name in ("items", *LAST, "given_back", "open", "held")}
    must = ("items", "accepted", "open")
    check.figures = {
        "processed" if name == "accepted" else name: count
        for name, count in counted.items()
        if count or name in must
    }
    rows = found.get(Kind.LOST, [])
    lost = _confirmed(account.total("lost"), rows)
    there = min(lost, shelf.depth or 0)
    if shelf.depth is not None and account.total("open"):
        check.figures["depth"] = shelf.depth
    if there:
        check.remark = f"{there} of them still there by the queue's depth, not by name"
    if shelf.missed:
        check.figures["missed_events"] = shelf.missed
        check.doubt(f"{shelf.missed} events were not told: no proof")
    if lost - there > shelf.missed:
        check.violate(rows, lost - there)
    elif lost > there:
        check.figures["not_settled"] = lost - there
    return check


def _check_twice(queue: str, account: Account, found: Found) -> Check:
    check = Check(queue, "nothing processed twice")
    rows = found.get(Kind.TWICE, []) + found.get(Kind.SETTLED_TWICE, [])
    check.figures = {"processed": account.total("accepted")}
    check.violate(rows, _confirmed(account.total("twice"), rows))
    return check


def _check_unaccepted(
    queue: str, account: Account, found: Found, shelf: ItemTable, first: int
) -> Check:
    check = Check(queue, "nothing settled that was never accepted")
    rows = found.get(Kind.UNACCEPTED, [])
    count = _confirmed(account.total("unaccepted"), rows)
    check.figures = {"settled": sum(account.total(name) for name in LAST)}
    if count and first > 0:
        check.figures["accepted_before"] = count
        check.doubt("the archive does not begin with the stream: earlier acceptances are not in it")
    elif count and shelf.missed >= count:
        check.figures["not_accepted"] = count
        check.doubt(f"{shelf.missed} events were not told: no proof")
    else:
        check.violate(rows, count)
    return check


def _order(queue: str, account: Account) -> Check:
    names = ("disorder_p50", "disorder_p99", "disorder_max")
    figures = {"measured": account.total("measured")}
    return Check(
        queue,
        "how far items went out of order",
        figures=figures | {name: account.greatest(name) for name in names},
    )


def _confirmed(counted: int, rows: Sequence[object]) -> int:
    """Take those that a second look confirmed, or all, where there were too many to look at."""
    return counted if counted > LISTED_MAX else len(rows)
