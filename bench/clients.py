"""The Python client's lines of the table: messages a second, published and consumed.

The cases join the table once `cogwork.connect` is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cases import Case

__all__ = ("CLIENT_CASES",)

CLIENT_CASES: Final[dict[str, Case]] = {}
