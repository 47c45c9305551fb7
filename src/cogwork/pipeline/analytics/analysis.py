"""All figures of an archive."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from cogwork.pipeline.analytics.capacity import Capacity, Run, capacities
from cogwork.pipeline.analytics.errors import AnalyticsError
from cogwork.pipeline.analytics.heartbeats import Heartbeats, runs_of
from cogwork.pipeline.analytics.moves import Flow, Move, moves_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

__all__ = ("TELEMETRY_STREAM", "Analysis", "Tables", "analyse")

TELEMETRY_STREAM = "$telemetry"

MINUTE_US, HOUR_US = 60_000_000, 3_600_000_000

INTERVALS_US = (5_000_000, 15_000_000, MINUTE_US, HOUR_US)
INTERVALS_MAX = 180
"""So many intervals are shown at most, but for those of an hour."""

BEAT = """
select percentile_approx(cast(get_json_object(cast(body as string), '$.interval_s') as double), 0.5)
  as beat_s
from {rows} where subject = 'heartbeat'
"""

SIZES = """
select count(*) as records, min(time_us) as from_us, max(time_us) as to_us,
  coalesce(sum(size), 0) as bytes, percentile_approx(size, array(0.5, 0.9, 0.99, 1.0)) as sizes
from (select unix_micros(time) as time_us, coalesce(length(body), 0) as size from {rows})
"""

BY_INTERVAL = """
select div(unix_micros(time), {interval}) * {interval} as at_us, count(*) as records,
  coalesce(sum(length(body)), 0) as bytes
from {rows} group by 1 order by 1
"""


class Tables(Protocol):
    """What analytics need of an archive: `cogwork.pipeline.archive.Archive` has it."""

    def tables(self) -> list[str]:
        """List the streams that have tables."""
        ...

    def files(self, stream: str) -> list[str]:
        """List the Parquet files of a stream."""
        ...


@dataclass(slots=True)
class Analysis:
    """The figures.

    Attributes:
        archive: Where the tables are.
        made_at: When this was computed, in ISO 8601.
        interval_us: The length of an interval.
        streams: What each stream has: `stream`, `records`, `bytes`, `from_us`, `to_us`, `sizes`
            (p50, p90, p99, greatest) and `intervals`.
        containers: What each container did in each interval.
        addresses: What went through each address.
        links: What went over each link.
        flows: What went from container to container, by address.
        moves: Which consumers should move.
        runs: What the benches of switching rates measured.
        capacity: How large fan-out and cluster may be.
        bandwidth_bit_s: With this bandwidth.
    """

    archive: str
    made_at: str
    bandwidth_bit_s: float
    interval_us: int = HOUR_US
    streams: list[dict[str, Any]] = field(default_factory=list)
    containers: list[dict[str, Any]] = field(default_factory=list)
    addresses: list[dict[str, Any]] = field(default_factory=list)
    links: list[dict[str, Any]] = field(default_factory=list)
    flows: list[Flow] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    capacity: list[Capacity] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return all of it in types that JSON has."""
        return {
            "archive": self.archive,
            "made_at": self.made_at,
            "bandwidth_bit_s": self.bandwidth_bit_s,
            "interval_s": self.interval_us // 1_000_000,
            "streams": self.streams,
            "containers": self.containers,
            "addresses": self.addresses,
            "links": self.links,
            "matrix": [each._asdict() for each in self.flows],
            "moves": [each._asdict() for each in self.moves],
            "switching_rates": [each.as_dict() for each in self.runs],
            "capacity": [asdict(each) for each in self.capacity],
        }


def analyse(
    spark: SparkSession,
    archive: Tables,
    bandwidth_bit_s: float,
    *,
    name: str = "",
    telemetry: str = TELEMETRY_STREAM,
    tell: Callable[[str], None] = lambda _: None,
) -> Analysis:
    """Compute all that an archive has figures for.

    Args:
        spark: The session.
        archive: The tables.
        bandwidth_bit_s: The bandwidth of a broker's network.
        name: What the archive is called on the page.
        telemetry: The stream of the containers' heartbeats.
        tell: Called with what is looked at next.

    Raises:
        AnalyticsError: Nothing is archived.
    """
    tables = {
        stream: spark.read.parquet(*files)
        for stream in archive.tables()
        if (files := archive.files(stream))
    }
    if not tables:
        raise AnalyticsError(f"nothing is archived in {name}" if name else "nothing is archived")
    made = Analysis(name, datetime.now(UTC).isoformat(timespec="seconds"), bandwidth_bit_s)
    made.streams = [_sizes(stream, rows, tell) for stream, rows in tables.items()]
    begin = min(each["from_us"] for each in made.streams)
    end = max(each["to_us"] for each in made.streams)
    made.interval_us = interval_of(end - begin, _beat_us(spark, tables.get(telemetry)))
    for each in made.streams:
        found = spark.sql(BY_INTERVAL, rows=tables[each["stream"]], interval=made.interval_us)
        each["intervals"] = [row.asDict() for row in found.collect()]
    if telemetry in tables:
        tell("heartbeats")
        _ask_heartbeats(made, tables[telemetry])
    made.capacity = capacities(made.runs, bandwidth_bit_s)
    return made


def _beat_us(spark: SparkSession, rows: DataFrame | None) -> int:
    """Return how long heartbeats are apart; 0 where there are none."""
    if rows is None:
        return 0
    return int((spark.sql(BEAT, rows=rows).collect()[0]["beat_s"] or 0) * 1e6)


def interval_of(span_us: int, beat_us: int) -> int:
    """Choose intervals: not too many, and none so short that it has no heartbeat."""
    for interval_us in INTERVALS_US:
        if span_us <= INTERVALS_MAX * interval_us and interval_us > 1.4 * beat_us:
            return interval_us
    return HOUR_US


def _sizes(stream: str, rows: DataFrame, tell: Callable[[str], None]) -> dict[str, Any]:
    tell(f"stream/{stream}")
    row = rows.sparkSession.sql(SIZES, rows=rows).collect()[0].asDict()
    return {"stream": stream, **row, "sizes": list(row["sizes"] or ())}


def _ask_heartbeats(made: Analysis, rows: DataFrame) -> None:
    heartbeats = Heartbeats(rows, made.interval_us)
    try:
        made.containers = heartbeats.containers()
        made.addresses = heartbeats.addresses()
        made.links = heartbeats.links()
        made.flows = heartbeats.flows()
    finally:
        heartbeats.close()
    came: dict[tuple[str, str], int] = {}
    for each in made.addresses:
        key = each["address"], each["container"]
        came[key] = came.get(key, 0) + each["in"]
    made.moves = moves_of(made.flows, came)
    made.runs = runs_of(rows)
