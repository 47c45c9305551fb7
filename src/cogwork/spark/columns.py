"""The columns of the source, and which of them a user's schema wants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.types import (
    BinaryType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from cogwork.spark.errors import OptionError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ("SCHEMA", "arrow_schema_of", "wanted_columns")

SCHEMA = StructType(
    [
        StructField("stream", StringType()),
        StructField("offset", LongType()),
        StructField("time", TimestampType()),
        StructField("producer", BinaryType()),
        StructField("sequence", LongType()),
        StructField("address", StringType()),
        StructField("subject", StringType()),
        StructField("message_id", StringType()),
        StructField("correlation_id", StringType()),
        StructField("reply_to", StringType()),
        StructField("content_type", StringType()),
        StructField("properties", MapType(StringType(), StringType())),
        StructField("body", BinaryType()),
    ]
)
"""All columns, in their order."""


def wanted_columns(schema: StructType) -> tuple[str, ...]:
    """Returns the names of the columns in a user's schema.

    Raises:
        OptionError: There is no such column, or it is of another type.
    """
    types = {field.name: field.dataType.simpleString() for field in SCHEMA.fields}
    for field in schema.fields:
        expected = types.get(field.name)
        if expected is None:
            raise OptionError(
                f"a stream has no column {field.name!r:.60}: there are {', '.join(types)}"
            )
        found = field.dataType.simpleString()
        if found != expected:
            raise OptionError(f"the column {field.name} is {expected}, not {found}: cast it later")
    return tuple(schema.fieldNames())


def arrow_schema_of(schema: StructType) -> pa.Schema:
    """Returns what Spark expects of a batch, to the letter."""
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 # loads much

    return to_arrow_schema(schema, timezone="UTC")
