"""A field table as text, for files of lines: each value keeps its type."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from cogwork.amqp091.tables import decode_table, encode_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.amqp091.types import Table

__all__ = ("table_of", "text_of_table")


def text_of_table(arguments: Mapping[str, object]) -> str:
    """Return a field table's octets in base64."""
    return base64.b64encode(encode_table(arguments)).decode()


def table_of(text: object) -> Table:
    """Return the table that `text_of_table` made a text of."""
    return decode_table(base64.b64decode(str(text)))
