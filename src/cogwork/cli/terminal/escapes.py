"""What an encoding has no octets for, written as JSON writes it: so JSON stays JSON."""

from __future__ import annotations

import codecs
import io
import json

__all__ = ("escape_what_cannot_be_written",)

_AS_JSON = "cogwork.as_json"

_PYTHONS_OWN = frozenset(("strict", "surrogateescape"))
"""How Python begins standard output, by the locale: with `surrogateescape` in that of C, where half
a character would be an error all the same, or an octet that is no UTF-8."""


def _as_json(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


codecs.register_error(_AS_JSON, _as_json)


def escape_what_cannot_be_written(stream: object) -> None:
    """Have what a stream's encoding lacks written as an escape, and no error raised.

    Args:
        stream: Standard output; whatever has taken its place is left as it is.
    """
    if isinstance(stream, io.TextIOWrapper) and stream.errors in _PYTHONS_OWN:
        stream.reconfigure(errors=_AS_JSON)
