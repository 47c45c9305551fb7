"""What is said of a delivery whose receiver goes without a word (AMQP 1.0 §3.5.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp.outcomes import Accepted, Released
from cogwork.dataplane.encoding.composites import encode

if TYPE_CHECKING:
    from cogwork.amqp.terminus import Source

__all__ = ("RELEASED", "outcome_of")

ACCEPTED, REJECTED, RELEASED, MODIFIED = 0x24, 0x25, 0x26, 0x27
_CODES = {"accepted": ACCEPTED, "rejected": REJECTED, "released": RELEASED, "modified": MODIFIED}


def outcome_of(source: Source) -> tuple[int, bytes | None]:
    """Return a source's default outcome: its descriptor code, and its encoding.

    The code is 0 where the source names none; the encoding is None where the code says it all.
    """
    outcome = source.default_outcome
    if outcome is None:
        return 0, None
    says_all = isinstance(outcome, (Accepted, Released))
    return _CODES[outcome.NAME], None if says_all else encode(outcome)
