"""The columns of a stream as a table, in the order that users see.

This is their one place: Arrow batches, Spark's source and the tables of archives go by it.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = ("COLUMNS", "Column", "Kind")

Kind = Literal["string", "binary", "int64", "time", "texts"]
"""What a column holds; `texts` are strings by strings."""


class Column(NamedTuple):
    """A column.

    Attributes:
        name: Its name everywhere.
        kind: What it holds.
        field_ids: Its id in the tables of archives; of `texts` those of its keys and values, too.
            An id is given once, and never to another column.
    """

    name: str
    kind: Kind
    field_ids: tuple[int, ...]


COLUMNS = (
    Column("stream", "string", (1,)),
    Column("offset", "int64", (2,)),
    Column("time", "time", (3,)),
    Column("producer", "binary", (4,)),
    Column("sequence", "int64", (5,)),
    Column("address", "string", (6,)),
    Column("subject", "string", (7,)),
    Column("message_id", "string", (8,)),
    Column("correlation_id", "string", (9,)),
    Column("reply_to", "string", (10,)),
    Column("content_type", "string", (11,)),
    Column("properties", "texts", (12, 14, 15)),
    Column("body", "binary", (13,)),
)
