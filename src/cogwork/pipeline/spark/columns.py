"""The columns of the source, and which of them a user's schema wants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from cogwork.pipeline.columns import COLUMNS
from cogwork.pipeline.spark.errors import OptionError
from cogwork.pipeline.spark.json_bodies import COLUMN as JSON_COLUMN

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ("SCHEMA", "arrow_schema_of", "wanted_columns")

_KINDS = {
    "string": StringType(),
    "binary": BinaryType(),
    "int64": LongType(),
    "time": TimestampType(),
    "texts": MapType(StringType(), StringType()),
}

SCHEMA = StructType([StructField(each.name, _KINDS[each.kind]) for each in COLUMNS])
"""All columns, in their order."""

NESTED = (ArrayType, MapType, StructType)
"""What a body that is JSON may be taken for."""

SINGLE = (
    *(BooleanType, ByteType, ShortType, IntegerType, LongType, FloatType, DoubleType, DecimalType),
    *(StringType, BinaryType, DateType, TimestampType, TimestampNTZType),
)
"""What may be in there."""


def wanted_columns(schema: StructType) -> tuple[str, ...]:
    """Return which columns of a stream a user's schema needs; `body_json` needs the body.

    Raises:
        OptionError: There is no such column, or it is of another type.
    """
    types = {field.name: field.dataType.simpleString() for field in SCHEMA.fields}
    for field in schema.fields:
        if field.name == JSON_COLUMN and isinstance(field.dataType, NESTED):
            _check_json(field)
            continue
        expected = types.get(field.name)
        if expected is None:
            raise OptionError(
                f"a stream has no column {field.name!r:.60}: there are {', '.join(types)}"
            )
        found = field.dataType.simpleString()
        if found != expected:
            raise OptionError(f"the column {field.name} is {expected}, not {found}: cast it later")
    named = ["body" if name == JSON_COLUMN else name for name in schema.fieldNames()]
    return tuple(dict.fromkeys(named))


def _check_json(field: StructField) -> None:
    if not field.nullable:
        raise OptionError(
            f"the column {JSON_COLUMN} is null where a body does not fit: no NOT NULL"
        )
    _check_json_type(JSON_COLUMN, field.dataType)


def _check_json_type(place: str, kind: DataType) -> None:
    """Refuse types that nothing in JSON is read as."""
    if isinstance(kind, StructType):
        names = kind.fieldNames()
        if len(set(names)) < len(names):
            raise OptionError(f"{place} has a field twice: {', '.join(names):.200}")
        for field in kind.fields:
            _check_json_type(f"{place}.{field.name}", field.dataType)
    elif isinstance(kind, ArrayType):
        _check_json_type(f"{place}[]", kind.elementType)
    elif isinstance(kind, MapType):
        if not isinstance(kind.keyType, StringType):
            raise OptionError(f"{place}: the keys of a map are string, not {_named(kind.keyType)}")
        _check_json_type(f"{place}[]", kind.valueType)
    elif not isinstance(kind, SINGLE):
        known = ", ".join(each.typeName() for each in SINGLE)
        raise OptionError(
            f"{place} cannot be {_named(kind)} (expected one of {known}, or struct, array, map)"
        )


def _named(kind: DataType) -> str:
    return kind.simpleString()


def arrow_schema_of(schema: StructType) -> pa.Schema:
    """Return what Spark expects of a batch, to the letter."""
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 # loads much

    return to_arrow_schema(schema, timezone="UTC")
