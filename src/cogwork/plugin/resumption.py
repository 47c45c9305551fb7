"""What a consumer that comes back is told of the deliveries it still has (AMQP 1.0 §2.6.13)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp.outcomes import Accepted, Rejected
from cogwork.dataplane.queue.store import KEEP_CODE, SETTLE_CODE, STALE_CODE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogwork.amqp.outcomes import DeliveryState
    from cogwork.dataplane.queue.store import Store
    from cogwork.plugin.node import Subscription

__all__ = ("resume",)


def resume(store: Store, subscription: Subscription, tags: Iterable[bytes]) -> None:
    """Give back the attempts that a consumer presents, and note what is known of them.

    Args:
        store: Has the items.
        subscription: The consumer's; its link is one of the store's consumers.
        tags: The delivery-tags that it presents here.
    """
    presented = list(tags)
    codes = store.resume(subscription.link, presented, subscription.handed)
    subscription.known.update(_states(presented, codes))


def _states(tags: Iterable[bytes], codes: Iterable[int]) -> dict[bytes, DeliveryState | None]:
    """Return None for what goes on, and the outcome of what is over.

    What was confirmed is accepted, and rejected what somebody else has, or had. What is left out is
    not known.
    """
    states: dict[int, DeliveryState | None] = {
        KEEP_CODE: None,
        SETTLE_CODE: Accepted(),
        STALE_CODE: Rejected(),
    }
    return {tag: states[code] for tag, code in zip(tags, codes, strict=True) if code in states}
