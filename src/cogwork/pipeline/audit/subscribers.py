"""Subscribers: each saw a stream's records in the stream's order, and as they are.

Theory of operation. What `cogwork.pipeline.audit.DeliveryRecorder` wrote are runs of offsets
already. In the order in which a session wrote them they should count up without a break; what the
breaks mean is said by `cogwork.pipeline.audit.runs`. The digest of each run is compared with the
one that is made of the archive's records at these offsets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cogwork.pipeline.audit.delivery_recorder import RUN_MAX
from cogwork.pipeline.audit.events import json_of
from cogwork.pipeline.audit.report import LISTED_MAX, Check
from cogwork.pipeline.audit.runs import Break, explain
from cogwork.pipeline.audit.streams import BREAKS_MAX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, Row

__all__ = ("check_subscribers", "streams_seen")

DELIVERED = (
    "stream string, subscriber string, session string, number bigint, first bigint, last bigint, "
    "digest string, filtered boolean"
)

BREAKS = """
select *, count(*) over (partition by stream, subscriber) as breaks from (
  select *, max(last) over (partition by stream, subscriber, session order by number
    rows between unbounded preceding and 1 preceding) as before
  from {runs}
) where before is not null
  and case when filtered then first <= before else first <> before + 1 end
order by stream, subscriber, session, number limit {limit}
"""

SEEN = """
select stream, subscriber, count(distinct session) as sessions, min(first) as first,
  max(last) as last, sum(last - first + 1) as records, max(filtered) as filtered
from {runs} group by stream, subscriber order by stream, subscriber
"""

OTHERS = """
select runs.*, count(*) over (partition by subscriber) as differing from (
  select subscriber, session, number, first(runs.first) as first, first(runs.last) as last,
    first(digest) as digest, count(records.offset) as found, bit_xor(records.value) as value
  from (
    select *, div(first, {block}) as block from {runs} where digest is not null
  ) runs left join (
    select offset, div(offset, {block}) as block,
      cast(conv(substr(md5(concat(encode(concat(offset, ':'), 'utf-8'),
        coalesce(body, cast('' as binary)))), 1, 15), 16, 10) as bigint) as value
    from {records}
  ) records on records.block = runs.block and records.offset between runs.first and runs.last
  group by subscriber, session, number
) runs
where found <> last - first + 1 or value <> cast(conv(digest, 16, 10) as bigint)
order by subscriber, session, number limit {limit}
"""


def streams_seen(rows: DataFrame) -> list[str]:
    """List the streams that subscribers wrote about."""
    return sorted(
        row["stream"]
        for row in json_of(rows, "delivered", DELIVERED).select("stream").distinct().collect()
        if row["stream"] is not None
    )


def check_subscribers(rows: DataFrame, records: Mapping[str, DataFrame]) -> list[Check]:
    """Compare what subscribers saw with what the archive has.

    Args:
        rows: The records of the audit's stream.
        records: The records of the streams that are looked at.
    """
    runs = json_of(rows, "delivered", DELIVERED).localCheckpoint()
    spark = rows.sparkSession
    try:
        seen = [row for row in spark.sql(SEEN, runs=runs).collect() if row["stream"] in records]
        if not seen:
            return []
        breaks = spark.sql(BREAKS, runs=runs, limit=BREAKS_MAX).collect()
        differing = {
            stream: spark.sql(
                OTHERS,
                runs=runs.where(runs["stream"] == stream),
                records=records[stream],
                block=RUN_MAX,
                limit=BREAKS_MAX,
            ).collect()
            for stream in dict.fromkeys(row["stream"] for row in seen)
        }
    finally:
        runs.unpersist()
    return [
        _check(
            row,
            [each for each in breaks if _is_of(each, row)],
            [each for each in differing[row["stream"]] if each["subscriber"] == row["subscriber"]],
        )
        for row in seen
    ]


def _is_of(each: Row, seen: Row) -> bool:
    return bool(each["stream"] == seen["stream"] and each["subscriber"] == seen["subscriber"])


def _check(seen: Row, breaks: list[Row], differing: list[Row]) -> Check:
    check = Check(f"stream/{seen['stream']}", f"{seen['subscriber']} saw the canonical order")
    check.figures = {
        "records": seen["records"],
        "first": seen["first"],
        "next": seen["last"] + 1,
        "sessions": seen["sessions"],
    }
    if seen["filtered"]:
        check.remark = "the subscriber asked for some of the records"
    who = {"stream": check.about, "subscriber": seen["subscriber"]}
    for session in dict.fromkeys(row["session"] for row in breaks):
        own = [_break(row) for row in breaks if row["session"] == session]
        found = [row for row in explain(own) if not (seen["filtered"] and row["kind"] == "missing")]
        check.violate([{**who, "session": session, **row} for row in found])
    others: list[dict[str, Any]] = [
        {
            "kind": "differs",
            **who,
            "session": row["session"],
            "first": row["first"],
            "last": row["last"],
            "archived": row["found"],
        }
        for row in differing
    ]
    check.violate(others, max((row["differing"] for row in differing), default=0))
    return check


def _break(row: Row) -> Break:
    return Break(0, row["before"], row["first"], row["last"], row["first"])


assert LISTED_MAX <= BREAKS_MAX
