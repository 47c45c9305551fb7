"""Names and passwords in one form, however they were typed: SASLprep (RFC 4013)."""

from __future__ import annotations

import stringprep
import unicodedata

__all__ = ("saslprep",)

_PROHIBITED = (
    stringprep.in_table_a1,  # not assigned in Unicode 3.2
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
)


def saslprep(text: str) -> str:
    """Return the prepared form, or the text itself where it has none.

    A password with characters that SASLprep rules out was taken by PLAIN all the time. PostgreSQL
    and others go on with the characters as they are, too.

    Args:
        text: A name or a password.
    """
    if text.isascii() and text.isprintable():
        return text  # all the steps below leave it alone
    mapped = "".join(
        " " if stringprep.in_table_c12(each) else each
        for each in text
        if not stringprep.in_table_b1(each)
    )
    prepared = unicodedata.ucd_3_2_0.normalize("NFKC", mapped)
    is_ruled_out = any(table(each) for each in prepared for table in _PROHIBITED)
    return text if not prepared or is_ruled_out or not _runs_one_way(prepared) else prepared


def _runs_one_way(text: str) -> bool:
    """Tell whether text from right to left is nothing else (RFC 3454 §6)."""
    rightwards = [stringprep.in_table_d1(each) for each in text]
    if not any(rightwards):
        return True
    return rightwards[0] and rightwards[-1] and not any(map(stringprep.in_table_d2, text))
