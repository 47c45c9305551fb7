"""A sink takes every message and counts it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.dataplane.addresses.drain import Drain
from cogwork.dataplane.addresses.entry import CLOSEST_CODE, AddressEntry
from cogwork.plugin.node import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cogwork.plugin.effects import Effect
    from cogwork.plugin.node import NodeContext, Subscription

__all__ = ("SinkNode",)


class SinkNode:
    """Accepts, counts and discards what is sent to its address."""

    serves_prefix = False

    def __init__(self, context: NodeContext) -> None:
        """Start at zero.

        Args:
            context: Its address.
        """
        self._drain = Drain(context.core)
        self._entry = AddressEntry(context.core, context.address, CLOSEST_CODE)
        self._entry.add_outlet(self._drain)

    def entry(self, _address: str) -> AddressEntry:
        """Return the sink's entry."""
        return self._entry

    def subscribe(self, subscription: Subscription) -> None:
        """Refuse: nothing ever comes out of a sink."""
        raise Refused(f"{subscription.address!r} is a sink: nothing can be received from it")

    def unsubscribe(self, subscription: Subscription) -> None:
        """Never happens."""

    def tick(self, _now_s: float) -> Iterable[Effect]:
        """Do nothing."""
        return ()

    def status(self) -> Mapping[str, object]:
        """Return what was discarded."""
        return {"messages": self._drain.messages, "bytes": self._drain.bytes}

    def close(self) -> None:
        """Give its entry back."""
        self._entry.close()
