"""What queues hold now, as the heartbeats of their containers say.

A container that has died holds nothing any more that it could give to anybody: what counts is only
the last heartbeat of those that were alive when the archive ends. Who is alive the records' own
times tell, which are those of whoever leads the stream, and not of each container's clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.pipeline.audit.events import json_of
from cogwork.pipeline.audit.source import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from cogwork.pipeline.audit.source import Tables

__all__ = ("TELEMETRY_STREAM", "depths_of")

TELEMETRY_STREAM = "$telemetry"

HEARTBEAT = (
    "container string, time_us bigint, interval_s double, "
    "addresses array<struct<address: string, vhost: string, kind: string, depth: bigint>>"
)

INTERVALS = 3
"""So many heartbeats of a container may be missing before it counts as dead."""

PATIENCE_S_MIN = 1.0

RECENT_S = 3600
"""How far back heartbeats are looked for at all; no container waits so long between two."""

LAST = """
select container, max_by(addresses, offset) as addresses, max(told_us) as told_us,
  max(interval_s) as interval_s
from {told} group by container
"""


def depths_of(spark: SparkSession, archive: Tables, until_us: int | None = None) -> dict[str, int]:
    """Add up what each container that is alive said last of its queues.

    Queues of another virtual host than the default one are named `VHOST:ADDRESS`, as in events.

    Args:
        spark: The session.
        archive: The tables.
        until_us: When the events end that the depths are compared with, in microseconds since 1970:
            what was consumed after that is neither among those nor in later depths.
    """
    if TELEMETRY_STREAM not in archive.tables() or not archive.files(TELEMETRY_STREAM):
        return {}
    rows = rows_of(spark, archive, TELEMETRY_STREAM)
    beats = rows.where("subject = 'heartbeat'")
    early = beats if until_us is None else beats.where(f"unix_micros(time) <= {until_us}")
    for each in (early, beats):  # where there are only later ones, the next best are those
        end = each.selectExpr("unix_micros(max(time)) as end_us").collect()[0]
        if end["end_us"] is not None:
            beats = each
            break
    else:
        return {}
    recent = beats.where(f"unix_micros(time) >= {end['end_us'] - RECENT_S * 1_000_000}")
    times = recent.selectExpr("offset", "unix_micros(time) as told_us")
    told = json_of(recent, "heartbeat", HEARTBEAT).join(times, on="offset")
    last = spark.sql(LAST, told=told).collect()
    longest_s = max((row["interval_s"] or 0.0 for row in last), default=0.0)
    alive_us = end["end_us"] - int(max(INTERVALS * longest_s, PATIENCE_S_MIN) * 1_000_000)
    depths: dict[str, int] = {}
    for row in last:
        for each in (row["addresses"] or ()) if row["told_us"] >= alive_us else ():
            if each["kind"] == "queue" and each["depth"] is not None:
                queue = queue_name(each["vhost"], each["address"])
                depths[queue] = depths.get(queue, 0) + each["depth"]
    return depths


def queue_name(vhost: str | None, address: str) -> str:
    """Name a queue as the events of audited queues do."""
    return f"{vhost}:{address}" if vhost else address
