"""Regular expressions whose time is bounded: those of RE2."""

from __future__ import annotations

from typing import TYPE_CHECKING

import re2

from cogwork.schema.errors import InvalidSchema

if TYPE_CHECKING:
    from cogwork.schema.json_run import Run

__all__ = ("Pattern",)

MEMORY_BYTES = 1 << 18
"""Of each pattern, with what RE2 remembers of the texts that it has seen."""

STEPS_A_SEARCH = 8

STEPS_DIVISOR = 64
"""An octet goes through as many instructions of a pattern, at worst, in the time of a step."""


class Pattern:
    """A regular expression, which is looked for anywhere in a text.

    Args:
        source: As it is written.

    Raises:
        InvalidSchema: RE2 does not have it: look-around, references to groups, or it is too large.

    Attributes:
        source: As it is written.
    """

    __slots__ = ("_expression", "_size", "source")

    def __init__(self, source: str) -> None:
        options = re2.Options()
        options.max_mem = MEMORY_BYTES
        options.log_errors = False
        self.source = source
        try:
            self._expression = re2.compile(source, options)
        except (re2.error, UnicodeEncodeError) as error:
            reason = error.args[0] if error.args else ""
            said = reason.decode(errors="replace") if isinstance(reason, bytes) else str(error)
            raise InvalidSchema(
                f"pattern {source!r:.80} is none of RE2, which has no look-around and no "
                f"references: {said:.80}"
            ) from error
        self._size: int = self._expression.programsize

    @property
    def size(self) -> int:
        """How many instructions it has."""
        return self._size

    def finds(self, text: str, run: Run) -> bool:
        """Return whether it is in a text.

        Raises:
            Exhausted: To look takes more steps than there are.
        """
        octets = text.encode()
        run.spend(STEPS_A_SEARCH + len(octets) * self._size // STEPS_DIVISOR)
        return self._expression.search(octets) is not None
