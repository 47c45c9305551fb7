"""The columns, and what is wrong with others."""

from __future__ import annotations

import pyarrow as pa
import pytest

from cogwork.pipeline.arrow import COLUMNS, schema_of


def test_all_columns_have_their_exact_types() -> None:
    schema = schema_of()
    assert tuple(schema.names) == COLUMNS
    assert schema.field("time").type == pa.timestamp("us", tz="UTC")
    assert schema.field("properties").type == pa.map_(pa.string(), pa.string())


def test_columns_come_in_the_order_in_which_they_were_named() -> None:
    assert schema_of(["body", "offset"]).names == ["body", "offset"]


@pytest.mark.parametrize("columns", [["offset", "nothing"], ["body", "body"]])
def test_a_column_that_is_none_is_refused(columns: list[str]) -> None:
    with pytest.raises(ValueError, match="column"):
        schema_of(columns)
