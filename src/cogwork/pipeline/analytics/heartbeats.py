"""Heartbeats as rates: what was counted between two records of a container.

Theory of operation. Counters go up from the beginning of an incarnation on, those of a link from
when it came up; so what happened between two heartbeats is the difference, or the later value where
that is lower. Where there is no value before, the first one is all that has happened only if
nothing was left out: the heartbeat is the incarnation's first, or the one before had room for
whatever had been counted by then. Else the archive begins later, or the address was none of the
busiest; when it all happened is not known then, and it counts for nothing. Which heartbeat is the
one before its sequence says, and not its time: clocks are set back. All is added up for each
interval of the page (some seconds to an hour), so that what comes to the driver is small. Latencies
are percentiles of a minute or two already: of several, the median is told by the mean, weighted by
how many items there were, the others by the greatest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cogwork.pipeline.analytics.capacity import Run
from cogwork.pipeline.analytics.moves import Flow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ("Heartbeats", "runs_of")

LATENCY = "struct<p50: double, p90: double, p99: double, p999: double, count: bigint>"

HEARTBEAT = (
    "container string, incarnation string, sequence bigint, time_us bigint, interval_s double, "
    "connections bigint, messages_in bigint, messages_out bigint, bytes_in bigint, "
    "bytes_out bigint, memory_bytes bigint, cpu_s double, root string, peers array<string>, "
    "addresses array<struct<address: string, vhost: string, kind: string, `in`: bigint, "
    f"`out`: bigint, bytes_in: bigint, depth: bigint, latency_us: {LATENCY}>>, "
    "links array<struct<`to`: string, `in`: bigint, `out`: bigint, bytes_in: bigint, "
    "bytes_out: bigint>>, "
    "matrix array<struct<address: string, `to`: string, messages: bigint, bytes: bigint>>"
)

BENCH = (
    "bench string, time_us bigint, document struct<brokers: int, queues: int>, brokers int, "
    "queues int, size_bytes int, seconds double, messages_in bigint, messages bigint, "
    "rate double, single_rate double, efficiency double, "
    "by_broker array<struct<url: string, messages: bigint, rate: double>>, problems array<string>"
)

LISTS = ("addresses", "links", "matrix")

REPLIES_TOGETHER = "if(startswith(address, '_reply/'), '_reply', address)"
"""Each client has reply addresses of its own, which say nothing to anybody else."""

TOLD_MAX = 250
"""A heartbeat that tells fewer addresses, or pairs of the matrix, tells all of them."""

IS_FIRST = "coalesce(sequence = 1, false)"
"""Whether a heartbeat is its incarnation's first; of those of earlier versions it is not known."""

TOLD_AT = "if(sequence is null, time_us, null)"
"""What tells heartbeats apart that have no sequence: those of earlier versions."""

COVERED_S = (
    "case when not coalesce(sequence - {sequence} > 1, false) then interval_s "
    "when time_us > {time_us} then (time_us - {time_us}) / 1000000 "
    "else (sequence - {sequence}) * interval_s end"
)
"""How long a heartbeat counts: longer than its interval where some before it are missing. How long
these took nobody knows where the clock was set back meanwhile: each as long as this one, then."""


def _lag(what: str, own: str = "") -> str:
    """Return what the heartbeat before had; those without a sequence are told by their time."""
    order = "coalesce(sequence, 0), time_us"
    return f"lag({what}) over (partition by container, incarnation{own} order by {order})"


def _rise(name: str, own: str, is_all: str) -> str:
    """Say by how much a counter has risen since the heartbeat before.

    Args:
        name: The counter.
        own: Whose it is, besides its container's: columns, with a comma before each.
        is_all: Whether a first value has come since the heartbeat before.
    """
    before = _lag(name, own)
    return (
        f"case when {before} is null and not coalesce({is_all}, false) then 0 "
        f"when {name} >= {before} then {name} - {before} else {name} end"
    )


class Heartbeats:
    """The heartbeats of an archive, asked for figures."""

    def __init__(self, rows: DataFrame, interval_us: int) -> None:
        """Take the records of the telemetry's stream.

        Args:
            rows: The records.
            interval_us: The length of an interval of the page.
        """
        told = rows.where("subject = 'heartbeat'").selectExpr(
            f"from_json(cast(body as string), '{HEARTBEAT}') as said"
        )
        self._interval_us = interval_us
        self._told = (
            told.select("said.*")
            .where("container is not null")
            .selectExpr("*", f"{TOLD_AT} as told_at")
            .dropDuplicates(["container", "incarnation", "sequence", "told_at"])
            .selectExpr(
                "*",
                f"{IS_FIRST} as is_first",
                f"{IS_FIRST} or {_lag('time_us')} is not null as is_counted",
                f"{COVERED_S.format(**{each: _lag(each) for each in ('sequence', 'time_us')})} "
                "as covered_s",
                *(f"{_lag(f'size({each})')} as {each}_before" for each in LISTS),
            )
        )
        self._told = self._told.localCheckpoint()

    def close(self) -> None:
        """Let Spark forget what was parsed."""
        self._told.unpersist()

    def _each(self, name: str, room: int | None = TOLD_MAX) -> str:
        """Return what a list of the heartbeats has, and of each whether a first value is all."""
        is_told = f"{name}_before is not null" if room is None else f"{name}_before < {room}"
        return (
            f"(select container, incarnation, sequence, time_us, is_first or {is_told} as is_all, "
            f"inline({name}) from {{told}})"
        )

    def _asked(self, query: str) -> list[dict[str, Any]]:
        spark = self._told.sparkSession
        return [row.asDict(recursive=True) for row in spark.sql(query, told=self._told).collect()]

    @property
    def _at(self) -> str:
        return f"div(time_us, {self._interval_us}) * {self._interval_us}"

    def containers(self) -> list[dict[str, Any]]:
        """Return what each container did in each interval."""
        counters = ("messages_in", "messages_out", "bytes_in", "bytes_out")
        rises = ", ".join(
            f"{_rise(name, '', 'is_first')} as {name}" for name in (*counters, "cpu_s")
        )
        sums = ", ".join(f"sum({name}) as {name}" for name in (*counters, "cpu_s"))
        return self._asked(f"""
            select at_us, container, {sums}, sum(interval_s) as seconds,
              max(memory_bytes) as memory_bytes, max(connections) as connections,
              max(messages_in / interval_s) as peak_in, max(messages_out / interval_s) as peak_out
            from (select {self._at} as at_us, container, {rises}, memory_bytes, connections,
              greatest(if(is_counted, covered_s, 0), 0.001) as interval_s from {{told}})
            group by at_us, container order by at_us, container""")

    def addresses(self) -> list[dict[str, Any]]:
        """Return what went through each address at each container in each interval."""
        own = ", address, vhost"
        rises = ", ".join(
            f"{_rise(f'`{name}`', own, 'is_all')} as `{name}`" for name in ("in", "out")
        )
        return self._asked(f"""
            select at_us, container, address, kind, sum(`in`) as `in`, sum(`out`) as `out`,
              sum(bytes_in) as bytes_in, max(depth) as depth,
              sum(latency_us.p50 * latency_us.count) / sum(latency_us.count) as p50,
              max(latency_us.p90) as p90, max(latency_us.p99) as p99, max(latency_us.p999) as p999,
              sum(latency_us.count) as measured
            from (select {self._at} as at_us, container, {REPLIES_TOGETHER} as address, kind, depth,
              {rises}, {_rise("bytes_in", own, "is_all")} as bytes_in,
              case when latency_us.count > 0 then latency_us end as latency_us
              from {self._each("addresses")})
            group by at_us, container, address, kind order by at_us, container, address""")

    def links(self) -> list[dict[str, Any]]:
        """Return what went over each link in each interval."""
        names = ("`in`", "`out`", "bytes_in", "bytes_out")
        rises = ", ".join(f"{_rise(name, ', `to`', 'is_all')} as {name}" for name in names)
        sums = ", ".join(f"sum({name}) as {name}" for name in names)
        return self._asked(f"""
            select at_us, container, `to`, {sums}
            from (select {self._at} as at_us, container, `to`, {rises}
              from {self._each("links", room=None)})
            group by at_us, container, `to` order by at_us, container, `to`""")

    def flows(self) -> list[Flow]:
        """Return the traffic from containers to consumers of others."""
        own = ", address, `to`"
        rows = self._asked(f"""
            select address, container, `to`, sum(messages) as messages, sum(bytes) as bytes
            from (select container, address, `to`, {_rise("messages", own, "is_all")} as messages,
              {_rise("bytes", own, "is_all")} as bytes
              from {self._each("matrix")})
            group by address, container, `to` having sum(messages) > 0
            order by address, container, `to`""")
        return [
            Flow(row["address"], row["container"], row["to"], row["messages"], row["bytes"] or 0)
            for row in rows
        ]


def runs_of(rows: DataFrame) -> list[Run]:
    """Return what the benches of switching rates measured, in order."""
    told = rows.where("subject = 'bench'").selectExpr(
        f"from_json(cast(body as string), '{BENCH}') as said"
    )
    found = told.select("said.*").where("bench is not null and rate is not null")
    return [
        Run(
            row["bench"],
            row["time_us"],
            row["brokers"],
            row["queues"],
            row["size_bytes"],
            row["seconds"],
            row["messages_in"],
            row["messages"],
            row["rate"],
            row["single_rate"],
            row["efficiency"],
            row["document"]["brokers"] if row["document"] else row["brokers"],
            row["document"]["queues"] if row["document"] else row["queues"],
            [each.asDict() for each in row["by_broker"] or ()],
            list(row["problems"] or ()),
        )
        for row in sorted(found.collect(), key=lambda row: row["time_us"] or 0)
    ]
