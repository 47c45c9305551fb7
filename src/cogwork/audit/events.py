"""The events of audited queues, as columns.

Theory of operation. The bodies of `stream/$audit` are JSON objects that containers write in one
form, without spaces, and whose names and ids need no escapes; so a field is cut out of the text,
which takes a tenth of what parsing it would. What a record says in its properties too (subject the
event, message-id the item, `to` the queue, correlation-id the outcome) is taken from there: Spark
evaluates the later arguments of `coalesce` only where the earlier ones are null.

A *shard* is the part of a queue that one container keeps; the first eight digits of an item's name
are its number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ("AUDIT_STREAM", "GIVEN_BACK", "LAST", "events_of", "json_of")

AUDIT_STREAM = "$audit"

LAST = ("accepted", "rejected", "parked", "expired", "exceeded", "dropped", "removed", "unknown")
"""Outcomes after which an item is gone; `unknown` is null in the events."""

GIVEN_BACK = ("released", "modified")
"""Outcomes after which there is another attempt."""

BODY = "cast(body as string)"


def _cut(name: str) -> str:
    """Cuts a field out of a body; it is empty where there is none."""
    return f'regexp_extract({BODY}, \'"{name}":"?([^",}}]*)\', 1)'


def _number(name: str) -> str:
    """Cuts a whole number out of a body; it is null where there is none.

    Without a regular expression, which takes longer.
    """
    rest = f"substring_index({BODY}, '\"{name}\":', -1)"
    return f"try_cast(rtrim('}}', substring_index({rest}, ',', 1)) as bigint)"


def _field(name: str) -> str:
    return f"nullif({_cut(name)}, '')"


COLUMNS = (
    "subject as event",
    "offset",
    "unix_micros(time) as time",
    "body",
    f"coalesce(correlation_id, nullif({_field('outcome')}, 'null'), 'unknown') as told",
    f"{_number('attempt')} as tried",
    f"{_number('position')} as position",
)


def events_of(rows: DataFrame, *, are_named: bool = False) -> DataFrame:
    """Returns the records of an audit's stream as events.

    Columns: `queue`, `shard` (a hash), `event`, `item`, `outcome` and `attempt` of what is settled,
    `position`, `offset`, `time` in microseconds, `body`.

    Args:
        rows: The records.
        are_named: Whether all events say queue and item in their properties: then bodies are read
            only where something else of them is wanted.
    """
    names = ("address as queue", "message_id as item")
    if not are_named:
        names = (
            f"coalesce(address, {_field('queue')}) as queue",
            f"coalesce(message_id, {_field('item')}) as item",
        )
    return rows.selectExpr(*names, *COLUMNS).selectExpr(
        "queue",
        "xxhash64(queue, substr(item, 1, 8)) as shard",
        "event",
        "item",
        "case when event = 'settled' then told end as outcome",
        "case when event = 'settled' then coalesce(tried, 0) end as attempt",
        "position",
        "offset",
        "time",
        "body",
    )


def json_of(rows: DataFrame, kind: str, schema: str) -> DataFrame:
    """Returns the bodies of the records of one kind, parsed, with `offset`.

    Args:
        rows: The records of a stream.
        kind: Their subject.
        schema: The fields that are wanted.
    """
    parsed = f"from_json({BODY}, '{schema}') as said"
    chosen = rows.where(rows["subject"] == kind)
    return chosen.selectExpr("offset", parsed).select("offset", "said.*")
