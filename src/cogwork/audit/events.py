"""The events of audited queues, as columns.

Theory of operation. A record of `stream/$audit` says in its properties what is needed most: its
`to` is the queue, its subject the event, its message-id the item, its correlation-id the outcome.
Only what is not there is looked for in the JSON of its body, which costs ten times as much: Spark
evaluates the later arguments of `coalesce` only where the earlier ones are null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ("AUDIT_STREAM", "events_of", "json_of")

AUDIT_STREAM = "$audit"

BODY = "cast(body as string)"

COLUMNS = (
    f"coalesce(address, get_json_object({BODY}, '$.queue')) as queue",
    f"coalesce(subject, get_json_object({BODY}, '$.event')) as event",
    f"coalesce(message_id, get_json_object({BODY}, '$.item')) as item",
    f"case when subject = 'accepted' then null else "
    f"coalesce(correlation_id, get_json_object({BODY}, '$.outcome')) end as outcome",
    f"try_cast(regexp_extract({BODY}, '\"position\":\\\\s*([0-9]+)', 1) as bigint) as position",
    "xxhash64(producer) as writer",
    "offset",
    "unix_micros(time) as time",
    "body",
)


def events_of(rows: DataFrame) -> DataFrame:
    """Returns the records of an audit's stream as events.

    Columns: `queue`, `event`, `item`, `outcome`, `position`, `writer` (a hash of who wrote it),
    `offset`, `time` in microseconds, `body`.
    """
    return rows.selectExpr(*COLUMNS)


def json_of(events: DataFrame, kind: str, schema: str) -> DataFrame:
    """Returns the bodies of one kind of event, parsed, with `offset`.

    Args:
        events: From `events_of`.
        kind: The event.
        schema: The fields that are wanted.
    """
    parsed = f"from_json({BODY}, '{schema}') as said"
    return (
        events.where(events["event"] == kind)
        .selectExpr("offset", parsed)
        .select("offset", "said.*")
    )
