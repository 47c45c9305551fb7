"""What a queue does with its items, as plain data: the keys of `[[queue]]`.

This is the one place of an option: its name, what it takes and what holds without it. The
configuration, `cogwork queue declare`, declared queues and the node of a queue all go by it.
"""

# Annotations are read at run time here, to check options by them.

from collections.abc import Mapping
from typing import Annotated, Literal, Self

import msgspec
from msgspec import Meta, Struct, structs

from cogwork.amqp.errors import Condition
from cogwork.plugin.node import Refused
from cogwork.plugin.shape import describe, type_at

__all__ = ("ItemCount", "QueueOptions", "Seconds", "Size", "Text")

BYTES_MAX = 1 << 30
"""A queue of this size, with no consumer in sight, should not take the container's memory too."""

IN_DOUBT: Literal["redeliver"] = "redeliver"
"""What becomes of items in doubt if nobody says so: neither the options nor a rule of a prefix."""

IN_DOUBT_TIMEOUT_S = 30.0
"""A client that lost its connection has reconnected by then, or will not soon."""

PRIORITIES, PRIORITIES_MAX = 10, 256
"""All levels that AMQP 1.0 has names for (§3.2.1); and all that a message can name."""

DEDUPLICATION_COUNT = 100_000
"""Remembered message-ids: some 10 MB at most."""

PARTITIONS, PARTITIONS_MAX = 16, 32
"""Enough for a dozen containers to have an even share; which are held fits one figure."""

ACQUISITIONS_MAX = 2_000
"""A client that takes one message and closes its link gives all back that it has prefetched: 1,000
is usual (JMS), so an item far behind may well be acquired 1,000 times. Twice as often is a loop."""

COUNT_MAX = (1 << 30) - 1
SECONDS_MAX = 1e9

ItemCount = Annotated[int, Meta(ge=1, le=COUNT_MAX)]
Seconds = Annotated[float, Meta(gt=0, lt=SECONDS_MAX)]
Size = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Text = Annotated[str, Meta(min_length=1)]


class QueueOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a queue does with its items; keys of `[[queue]]`, and of `[[address]]` for queues.

    Attributes:
        ttl_s: The longest an item lives; None leaves it to the message.
        dead_letter: Where expired, refused and doubtful items go; None drops them, counted.
        maximum_length: Items held; None has no bound of its own.
        maximum_bytes: Bytes held.
        maximum_length_policy: What a full queue does.
        maximum_delivery_count: Failed attempts after which an item is dead; None tries for ever.
        maximum_acquisitions: Attempts that gave an item back uncounted, after which it is dead; 0
            tries for ever, None is 2,000 with a dead-letter address and 0 without one.
        in_doubt: What becomes of an item whose consumer vanished with it; None is the prefix's.
        in_doubt_timeout_s: How long a vanished consumer may take to come back and settle.
        priorities: Levels told apart.
        delay: Whether messages may ask to be delivered later.
        ordering: `group-id` gives each group to one consumer at a time.
        deduplication_window_s: How long a message-id is remembered; None remembers none.
        deduplication_count: How many message-ids are remembered.
        durability: Where items are kept: `memory`; `disk`, where they outlive the container;
            `auto`, as `disk` where there is one, and only durable messages wait for it; or
            `replicated`, where they outlive the loss of a minority of those that hold them.
        replicas: The containers that hold a replicated queue; None leaves it to the cluster.
        home: The container that keeps the queue for all that are linked; None has each keep what
            is sent to it.
        partitions: Into how many parts linked containers divide a queue with an ordering or a
            deduplication window.
    """

    ttl_s: Seconds | None = None
    dead_letter: Text | None = None
    maximum_length: ItemCount | None = None
    maximum_bytes: Size = BYTES_MAX
    maximum_length_policy: Literal["reject", "reject-dead-letter", "drop-oldest", "block"] = "block"
    maximum_delivery_count: ItemCount | None = None
    maximum_acquisitions: Annotated[int, Meta(ge=0, le=COUNT_MAX)] | None = None
    in_doubt: Literal["park", "redeliver"] | None = None
    in_doubt_timeout_s: Annotated[float, Meta(ge=0, lt=SECONDS_MAX)] = IN_DOUBT_TIMEOUT_S
    priorities: Annotated[int, Meta(ge=1, le=PRIORITIES_MAX)] = PRIORITIES
    delay: bool = True
    ordering: Literal["none", "group-id"] = "none"
    deduplication_window_s: Seconds | None = None
    deduplication_count: ItemCount = DEDUPLICATION_COUNT
    durability: Literal["auto", "memory", "disk", "replicated"] = "auto"
    replicas: list[Text] | None = None
    home: Text | None = None
    partitions: Annotated[int, Meta(ge=1, le=PARTITIONS_MAX)] = PARTITIONS

    @classmethod
    def of(cls, options: Mapping[str, object]) -> Self:
        """Take a queue's own options out of a node's; others are for others.

        Args:
            options: By name.

        Returns:
            All of them, as they hold if no prefix says otherwise.

        Raises:
            Refused: A value is of the wrong type or out of range.
        """
        own = {name: options[name] for name in cls.__struct_fields__ if name in options}
        for name, value in own.items():
            try:
                msgspec.convert({name: value}, cls)
            except msgspec.ValidationError:
                expected = describe(type_at(cls, (name,)))
                raise Refused(
                    f"queue option {name} = {value!r}; expected {expected}",
                    Condition.INVALID_FIELD,
                ) from None
        made = msgspec.convert(own, cls)
        return made if made.in_doubt is not None else structs.replace(made, in_doubt=IN_DOUBT)
