"""The events of audited queues, as columns.

Theory of operation. The bodies of `stream/$audit` are JSON objects that containers write in one
form, without spaces, and whose names and ids need no escapes; so a field is cut out of the text,
which takes a tenth of what parsing it would. But bodies are most of what a record takes, and what
is looked for stands in its properties, too: subject the event, message-id the item, `to` the queue,
correlation-id the outcome, and among the application properties attempt and position. So an audit
reads these alone, and takes note of events that do not say all of it (`is_told`): then it begins
anew, with the bodies. Spark evaluates the later arguments of `coalesce` only where the earlier ones
are null. Where properties say all, Spark is not asked at all (`cogwork.pipeline.audit.gathering`).

A *shard* is the part of a queue that one container keeps; the first eight digits of an item's name
are its number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from cogwork.pipeline.audit.source import Function, Records

__all__ = ("AUDIT_STREAM", "GIVEN_BACK", "LAST", "NAMED", "SHARD_DIGITS", "Events", "json_of")

AUDIT_STREAM = "$audit"

LAST = ("accepted", "rejected", "parked", "expired", "exceeded", "dropped", "removed", "unknown")
"""Outcomes after which an item is gone; `unknown` is null in the events."""

GIVEN_BACK = ("released", "modified")
"""Outcomes after which there is another attempt."""

SHARD_DIGITS = 8
"""So many digits of an item's name are its shard's number."""

BODY = "cast(body as string)"


def _cut(name: str) -> str:
    """Cut a field out of a body; it is empty where there is none."""
    return f'regexp_extract({BODY}, \'"{name}":"?([^",}}]*)\', 1)'


def _number(name: str) -> str:
    """Cut a whole number out of a body; it is null where there is none.

    Without a regular expression, which takes longer.
    """
    rest = f"substring_index({BODY}, '\"{name}\":', -1)"
    return f"try_cast(rtrim('}}', substring_index({rest}, ',', 1)) as bigint)"


def _field(name: str) -> str:
    return f"nullif({_cut(name)}, '')"


def _property(name: str) -> str:
    return f"try_cast(properties['{name}'] as bigint)"


IN_PROPERTIES = (
    "address as queue",
    "message_id as item",
    "coalesce(correlation_id, 'unknown') as told",
    f"{_property('attempt')} as tried",
    f"{_property('position')} as position",
)

IN_BODIES = (
    f"coalesce(address, {_field('queue')}) as queue",
    f"coalesce(message_id, {_field('item')}) as item",
    f"coalesce(correlation_id, nullif({_field('outcome')}, 'null'), 'unknown') as told",
    f"coalesce({_property('attempt')}, {_number('attempt')}) as tried",
    f"coalesce({_property('position')}, {_number('position')}) as position",
)

IS_TOLD = "queue is not null and item is not null and (event = 'held' or tried is not null)"


IN_RECORDS = ("address", "message_id", "subject", "correlation_id", "properties", "offset")
"""Columns of records that say all of an event, as containers write them."""

NAMED = ("address", "message_id", "offset")
"""Those that say whose it is, and where."""

AS_RECORDS = (
    "queue as address",
    "item as message_id",
    "event as subject",
    "outcome as correlation_id",
    "attempt",
    "position",
    "offset",
)


class Events(NamedTuple):
    """The records of an audit's stream as events.

    Attributes:
        records: The records.
        with_bodies: Whether what the properties do not say is taken from bodies.
    """

    records: Records
    with_bodies: bool

    @property
    def table(self) -> DataFrame:
        """The events as a table; the columns are told at `events_of`."""
        return events_of(self.records.rows, with_bodies=self.with_bodies)

    def mapped(
        self, function: Function, schema: str, columns: Sequence[str] = IN_RECORDS
    ) -> DataFrame:
        """Have a function go through batches of events.

        Args:
            function: Is called in each task.
            schema: What it makes.
            columns: Those of records that it needs. Where bodies were looked at, it gets `attempt`
                and `position` in place of `properties`, and may get others, too.
        """
        if not self.with_bodies:
            return self.records.mapped(columns, function, schema)
        return self.table.selectExpr(*AS_RECORDS).mapInArrow(function, schema)


def events_of(rows: DataFrame, *, with_bodies: bool = True) -> DataFrame:
    """Return the records of an audit's stream as events.

    Columns: `queue`, `shard` (a hash), `event`, `item`, `outcome` and `attempt` of what is settled,
    `position`, `offset`, `time` in microseconds, `body`, and `is_told`, which is false where the
    properties do not say all of this and bodies were not looked at.

    Args:
        rows: The records.
        with_bodies: Whether what the properties do not say is taken from bodies.
    """
    found = IN_BODIES if with_bodies else IN_PROPERTIES
    named = rows.selectExpr(
        *found, "subject as event", "offset", "unix_micros(time) as time", "body"
    )
    return named.selectExpr(
        "queue",
        f"xxhash64(queue, substr(item, 1, {SHARD_DIGITS})) as shard",
        "event",
        "item",
        "case when event = 'settled' then told end as outcome",
        "case when event = 'settled' then coalesce(tried, 0) end as attempt",
        "position",
        "offset",
        "time",
        "body",
        "true as is_told" if with_bodies else f"({IS_TOLD}) as is_told",
    )


def json_of(rows: DataFrame, kind: str, schema: str) -> DataFrame:
    """Return the bodies of the records of one kind, parsed, with `offset`.

    Args:
        rows: The records of a stream.
        kind: Their subject.
        schema: The fields that are wanted.
    """
    parsed = f"from_json({BODY}, '{schema}') as said"
    chosen = rows.where(rows["subject"] == kind)
    return chosen.selectExpr("offset", parsed).select("offset", "said.*")
