"""The one table of a stream's columns."""

from __future__ import annotations

from cogwork.pipeline.columns import COLUMNS

GIVEN = {
    "stream": (1,),
    "offset": (2,),
    "time": (3,),
    "producer": (4,),
    "sequence": (5,),
    "address": (6,),
    "subject": (7,),
    "message_id": (8,),
    "correlation_id": (9,),
    "reply_to": (10,),
    "content_type": (11,),
    "properties": (12, 14, 15),
    "body": (13,),
}
"""The ids that tables of archives have: a column that has been there once keeps its own."""


def test_columns_keep_the_ids_that_tables_have() -> None:
    assert {each.name: each.field_ids for each in COLUMNS if each.name in GIVEN} == GIVEN


def test_no_id_is_given_twice() -> None:
    given = [number for each in COLUMNS for number in each.field_ids]
    assert len(given) == len(set(given))


def test_strings_by_strings_have_ids_for_keys_and_values() -> None:
    assert all(len(each.field_ids) == (3 if each.kind == "texts" else 1) for each in COLUMNS)
