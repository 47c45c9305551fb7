"""What queues hold now, as the heartbeats of their containers say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.audit.events import json_of
from cogwork.audit.source import rows_of

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

    from cogwork.audit.source import Tables

__all__ = ("TELEMETRY_STREAM", "depths_of")

TELEMETRY_STREAM = "$telemetry"

HEARTBEAT = (
    "container string, time_us bigint, "
    "addresses array<struct<address: string, vhost: string, kind: string, depth: bigint>>"
)

RECENT = "interval 1 hour"
"""How far back the last heartbeat of a container is looked for."""


def depths_of(spark: SparkSession, archive: Tables) -> dict[str, int]:
    """Adds up what each container said last of the queues of the default virtual host.

    Args:
        spark: The session.
        archive: The tables.
    """
    if TELEMETRY_STREAM not in archive.tables() or not archive.files(TELEMETRY_STREAM):
        return {}
    rows = rows_of(spark, archive, TELEMETRY_STREAM)
    end = rows.selectExpr("unix_micros(max(time)) as end").collect()[0]["end"]
    recent = rows.where(f"time >= timestamp_micros({end}) - {RECENT}")
    last: dict[str, Row] = {}
    for row in json_of(recent, "heartbeat", HEARTBEAT).orderBy("offset").collect():
        last[row["container"]] = row
    depths: dict[str, int] = {}
    for row in last.values():
        for each in row["addresses"] or ():
            if each["kind"] == "queue" and not each["vhost"] and each["depth"] is not None:
                depths[each["address"]] = depths.get(each["address"], 0) + each["depth"]
    return depths
