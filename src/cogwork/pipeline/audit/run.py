"""An audit: all checks of an archive, in order."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cogwork.pipeline.audit.errors import AuditError
from cogwork.pipeline.audit.events import AUDIT_STREAM
from cogwork.pipeline.audit.heartbeats import depths_of
from cogwork.pipeline.audit.queues import GRACE_S, PARTITIONS, check_queues
from cogwork.pipeline.audit.report import Report
from cogwork.pipeline.audit.source import records_of
from cogwork.pipeline.audit.streams import check_stream
from cogwork.pipeline.audit.subscribers import check_subscribers, streams_seen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    from cogwork.pipeline.audit.source import Tables

__all__ = ("audit", "chosen_streams")

PART_EVENTS = 1_250_000
PARTITIONS_MIN, PARTITIONS_MAX = 2, 1000

BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
BATCH_BYTES_MAX = 16 << 20
"""What a task gets at once: one value may be many items."""


def audit(
    spark: SparkSession,
    archive: Tables,
    *,
    name: str = "",
    streams: Sequence[str] = (),
    queues: Sequence[str] = (),
    grace_s: float = GRACE_S,
    tell: Callable[[str], None] = lambda _: None,
) -> Report:
    """Look at all that an archive can prove.

    Args:
        spark: The session.
        archive: The tables.
        name: What the archive is called in the report.
        streams: Those that are looked at; none is all that have a table.
        queues: The addresses of the queues that are looked at; none is all that have events.
        grace_s: How long an item may be neither settled nor held.
        tell: Called with what is looked at next.

    Raises:
        AuditError: Something that is named is not there.
    """
    began = time.monotonic()
    spark.conf.set(PARTITIONS, str(_partitions(archive)))
    spark.conf.set(BATCH_BYTES, str(BATCH_BYTES_MAX))
    report = Report(name, datetime.now(UTC).isoformat(timespec="seconds"))
    tables = archive.tables()
    chosen = chosen_streams(tables, streams, is_about_queues=bool(queues))
    for stream in chosen:
        tell(f"stream/{stream}")
        mark = archive.mark(stream)  # before the records: an archiver may go on meanwhile
        report.checks += check_stream(stream, records_of(spark, archive, stream), mark)
    if AUDIT_STREAM in tables and archive.files(AUDIT_STREAM):
        events = records_of(spark, archive, AUDIT_STREAM)
        if not streams or queues or AUDIT_STREAM in chosen:
            tell("queues")
            end = events.rows.selectExpr("unix_micros(max(time)) as end_us").collect()[0]
            depths = depths_of(spark, archive, end["end_us"])
            report.checks += check_queues(events, queues, depths=depths, grace_s=grace_s)
        tell("subscribers")
        seen = [stream for stream in streams_seen(events.rows) if stream in chosen]
        if seen:
            rows = {stream: records_of(spark, archive, stream).rows for stream in seen}
            report.checks += check_subscribers(events.rows, rows)
    missing = set(queues) - {check.about for check in report.checks}
    if missing:
        raise AuditError(f"no events of {', '.join(sorted(missing))} are archived")
    report.duration_s = time.monotonic() - began
    return report


def _partitions(archive: Tables) -> int:
    """Return into how many parts items are shuffled, so that one fits into a task's memory."""
    events = archive.mark(AUDIT_STREAM) if AUDIT_STREAM in archive.tables() else 0
    return max(PARTITIONS_MIN, min(PARTITIONS_MAX, events // PART_EVENTS))


def chosen_streams(
    tables: Sequence[str], streams: Sequence[str], *, is_about_queues: bool
) -> list[str]:
    """Return which streams are looked at: what queues are evaluated by is looked at too.

    Args:
        tables: The streams that an archive has.
        streams: Those that are asked for; none is all.
        is_about_queues: Whether queues are asked for.

    Raises:
        AuditError: The archive has no table of one of them.
    """
    names = [stream.removeprefix("/").removeprefix("stream/") for stream in streams]
    if missing := sorted(set(names) - set(tables)):
        raise AuditError(f"stream/{missing[0]} has no table in this archive")
    if is_about_queues:
        if AUDIT_STREAM not in tables:
            raise AuditError(f"stream/{AUDIT_STREAM} has no table in this archive")
        return [*names, *({AUDIT_STREAM} - set(names))]
    return names or list(tables)
