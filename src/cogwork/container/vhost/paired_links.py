"""Which links are a pair at `/management` (Link Pairing §2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cogwork.amqp.types import Symbol

if TYPE_CHECKING:
    from cogwork.amqp.performatives import Attach

__all__ = ("ADDRESS", "PAIRED", "is_paired")

PAIRED: Final = Symbol("paired")

NAME: Final = "/management"

ADDRESS: Final = "$management/paired"
"""What the node is called here: it is the broker's own, as `$management` is."""


def is_paired(attach: Attach, address: str | None) -> bool:
    """Return whether a link is one of a pair at `/management`."""
    return address == NAME and (attach.properties or {}).get(PAIRED) is True
