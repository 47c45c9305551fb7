"""What a queue does with its items, as plain data; named like the keys of `[[queue]]`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeGuard

from cogwork.amqp.errors import Condition
from cogwork.dataplane.addresses.partitions import COUNT_MAX as PARTITIONS_MAX
from cogwork.plugin.node import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ("QueueOptions",)

BYTES_MAX = 1 << 30
"""A queue of this size, with no consumer in sight, should not take the container's memory too."""

IN_DOUBT = "redeliver"
"""What becomes of items in doubt where nobody says so."""

IN_DOUBT_TIMEOUT_S = 30.0
"""A client that lost its connection has reconnected by then, or will not soon."""

PRIORITIES = 10
"""All levels that a message can name (AMQP 1.0 §3.2.1)."""

DEDUPLICATION_COUNT = 100_000
"""Remembered message-ids: some 5 MB."""

PARTITIONS = 16
"""Enough for a dozen containers to have an even share; each costs one place in a table."""

ACQUISITIONS_MAX = 2_000
"""A client that takes one message and closes its link gives all back that it has prefetched: 1,000
is usual (JMS), so an item far behind may well be acquired 1,000 times. Twice as often is a loop."""

COUNT_MAX = (1 << 30) - 1
SECONDS_MAX = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOptions:
    """A queue's policies.

    Attributes:
        ttl_s: The longest an item lives; None leaves it to the message.
        dead_letter: Where dead items go; None drops them, counted.
        maximum_length: Items held; None has no bound of its own.
        maximum_bytes: Bytes held.
        maximum_length_policy: What a full queue does: `block`, `reject` or `drop-oldest`.
        maximum_delivery_count: Failed attempts after which an item is dead; None tries for ever.
        maximum_acquisitions: Attempts that gave an item back uncounted, after which it is dead; 0
            tries for ever, and None is 0 without a dead-letter address, else `ACQUISITIONS_MAX`.
        in_doubt: What becomes of an item whose consumer vanished with it: `park` or `redeliver`.
        in_doubt_timeout_s: How long a vanished consumer may take to come back and settle.
        priorities: Levels told apart.
        delay: Whether messages may ask to be delivered later.
        ordering: `group-id` gives each group to one consumer at a time; `none`.
        deduplication_window_s: How long a message-id is remembered; None remembers none.
        deduplication_count: How many message-ids are remembered.
        durability: Where items are kept: `memory`; `disk`, where they outlive the container;
            `auto`, as `disk` where there is one, and only durable messages wait for it; or
            `replicated`, where they outlive the loss of a minority of those that hold them.
        replicas: The containers that hold a replicated queue; None leaves it to the cluster.
        partitions: Into how many parts linked containers divide a queue that is ordered, or
            remembers message-ids.

    Raises:
        Refused: A value is of the wrong type or out of range.
    """

    ttl_s: float | None = None
    dead_letter: str | None = None
    maximum_length: int | None = None
    maximum_bytes: int = BYTES_MAX
    maximum_length_policy: str = "block"
    maximum_delivery_count: int | None = None
    maximum_acquisitions: int | None = None
    in_doubt: str = IN_DOUBT
    in_doubt_timeout_s: float = IN_DOUBT_TIMEOUT_S
    priorities: int = PRIORITIES
    delay: bool = True
    ordering: str = "none"
    deduplication_window_s: float | None = None
    deduplication_count: int = DEDUPLICATION_COUNT
    durability: str = "auto"
    replicas: list[str] | None = None
    partitions: int = PARTITIONS

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            is_left_out = value is None and each.default is None
            expected, is_right = _CHECKS[each.name]
            if not is_left_out and not is_right(value):
                raise Refused(
                    f"queue option {each.name} = {value!r}; expected {expected}",
                    Condition.INVALID_FIELD,
                )

    @classmethod
    def of(cls, options: Mapping[str, object]) -> QueueOptions:
        """Takes a queue's own options out of a node's; others are for others.

        Args:
            options: By name.

        Raises:
            Refused: A value is of the wrong type or out of range.
        """
        names = {each.name for each in fields(cls)}
        own: dict[str, Any] = {name: value for name, value in options.items() if name in names}
        return cls(**own)  # it checks their types


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_positive(value: object) -> bool:
    return _is_number(value) and 0 < value < SECONDS_MAX


def _is_duration(value: object) -> bool:
    return _is_number(value) and 0 <= value < SECONDS_MAX


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= COUNT_MAX


def _is_one_of(*names: str) -> tuple[str, Callable[[object], bool]]:
    return f"one of {', '.join(names)}", lambda value: value in names


_COUNT = (f"a whole number from 1 to {COUNT_MAX}", _is_count)
_POSITIVE = (f"a number of seconds above 0 and below {SECONDS_MAX:.0f}", _is_positive)
_CHECKS: dict[str, tuple[str, Callable[[object], bool]]] = {
    "ttl_s": _POSITIVE,
    "dead_letter": ("an address", lambda value: isinstance(value, str) and value != ""),
    "maximum_length": _COUNT,
    "maximum_bytes": ("a number of bytes above 0", lambda v: isinstance(v, int) and v > 0),
    "maximum_length_policy": _is_one_of("block", "reject", "drop-oldest"),
    "maximum_delivery_count": _COUNT,
    "maximum_acquisitions": (
        f"a whole number from 0 to {COUNT_MAX}",
        lambda value: _is_number(value) and (value == 0 or _is_count(value)),
    ),
    "in_doubt": _is_one_of("park", "redeliver"),
    "in_doubt_timeout_s": (
        f"a number of seconds from 0 and below {SECONDS_MAX:.0f}",
        _is_duration,
    ),
    "priorities": (
        f"a whole number from 1 to {PRIORITIES}",
        lambda value: _is_count(value) and value in range(1, PRIORITIES + 1),
    ),
    "delay": ("true or false", lambda value: isinstance(value, bool)),
    "ordering": _is_one_of("none", "group-id"),
    "deduplication_window_s": _POSITIVE,
    "deduplication_count": _COUNT,
    "durability": _is_one_of("auto", "memory", "disk", "replicated"),
    "replicas": ("a list of containers' ids", lambda value: isinstance(value, list | tuple)),
    "partitions": (
        f"a whole number from 1 to {PARTITIONS_MAX}",
        lambda value: _is_count(value) and value in range(1, PARTITIONS_MAX + 1),
    ),
}
