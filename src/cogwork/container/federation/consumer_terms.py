"""What another container's shard is told of a consumer that it feeds, and how much it sends.

Theory of operation. An attach is one frame, and containers take frames of `FRAME_BYTES` from each
other: a larger one ends the link between them. What clients say in their attaches may be as large
as their frames, so a shard is told only what it goes by. After a break the attach names all items
that the consumer has from the shard; so it never has more of them than fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cogwork.amqp.extensions import MARKS_RECEIVED
from cogwork.amqp.outcomes import Received
from cogwork.amqp.types import Symbol, UInt, ULong
from cogwork.container.mesh.names import FRAME_BYTES
from cogwork.container.vhost.filters import selector_of
from cogwork.dataplane.encoding.codec import encode

if TYPE_CHECKING:
    from collections.abc import Collection

    from cogwork.amqp.performatives import Attach

__all__ = ("HANDED", "TAG_BYTES", "ConsumerTerms", "terms_of")

ITEMS_MAX = 1500
"""What a consumer has from one shard at most, however little the rest of an attach takes."""

TAG_BYTES = 16
"""The tags of shards: number of the shard, of the item, of the attempt."""

ENTRY_BYTES = TAG_BYTES + 12
"""What an item takes in the attach that names it: its tag, a state, their constructors."""

ATTACH_BYTES = 1024
"""What an attach takes besides address, selector and items: the names of both containers, of link,
virtual host and consumer, each of them bounded."""

HANDED = Received(section_number=UInt(0), section_offset=ULong(0))
"""Says of an item that the consumer's application has it."""


@dataclass(frozen=True, slots=True)
class ConsumerTerms:
    """What holds for all upstreams of one consumer.

    Attributes:
        filter: Of the source: the consumer's selector, if it has one.
        size_bytes_max: The largest message that the consumer takes; None for any.
        capabilities: What the consumer can do.
        items_max: What it may have from one shard.
        held: The items that its client has presented, and says that its application has.
    """

    filter: dict[Symbol, object] | None
    size_bytes_max: int | None
    capabilities: tuple[Symbol, ...]
    items_max: int
    held: Collection[bytes]


def terms_of(attach: Attach, address: str) -> ConsumerTerms:
    """Read a consumer's terms.

    Args:
        attach: As its client sent it.
        address: The queue.
    """
    source = attach.source
    selector = selector_of(None if source is None else source.filter) or None
    room_bytes = FRAME_BYTES - ATTACH_BYTES - len(address.encode()) - len(encode(selector))
    unsettled = attach.unsettled or {}
    return ConsumerTerms(
        filter=selector,
        size_bytes_max=attach.max_message_size,
        capabilities=(MARKS_RECEIVED,) if MARKS_RECEIVED in attach.desired_capabilities else (),
        items_max=min(ITEMS_MAX, room_bytes // ENTRY_BYTES),
        held=frozenset(tag for tag, state in unsettled.items() if state is not None),
    )
