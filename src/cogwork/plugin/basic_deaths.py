"""What clients of AMQP 0-9-1 read of a dead letter: the headers that RabbitMQ writes.

Theory of operation. A message that was published by AMQP 0-9-1 says its exchange in an annotation,
and annotations that begin with `x-` become headers when a client of that protocol takes it. So its
deaths are written as annotations, each with the queue and the reason once, the newest first:
x-death; and x-first-death-… and x-last-death-…. Exchange and routing key become those that the dead
letter is sent by. Deaths that a publisher wrote are none of the message's: the first one of its own
takes their place. Clients of AMQP 0-9-1 do not see `SOURCE`, so none can publish it again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote

from cogwork.amqp.types import Symbol, Timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("Death", "basic_deaths")

EXCHANGE: Final = Symbol("x-exchange")
ROUTING_KEY: Final = Symbol("x-routing-key")
HEADERS: Final = Symbol("x-basic-headers")
DEATHS: Final = Symbol("x-death")
SOURCE: Final = Symbol("x-opt-dead-letter-source")
"""What only a broker writes: a message that has died before has it."""
COPIES: Final = "CC"

REASONS: Final = {
    "delivery-count-exceeded": "delivery_limit",
    "acquisitions-exceeded": "delivery_limit",
    "maximum-length": "maxlen",
}
"""RabbitMQ's words, where they are not those of this broker."""

DEATHS_MAX: Final = 32
"""Queues and reasons that a message names; of more, the oldest are dropped."""

_QUEUES: Final = "queue/"
_EXCHANGES: Final = "exchange/"
_DEFAULT: Final = "amq.default"


class Death(NamedTuple):
    """How a message died.

    Attributes:
        source: The address of the queue that it died in.
        reason: Why, in this broker's words.
        died_ms: When, in milliseconds since 1970.
        ttl_ms: What its publisher gave it to live; None for any time.
        target: The address that the dead letter is sent to.
    """

    source: str
    reason: str
    died_ms: int
    ttl_ms: int | None
    target: str


def basic_deaths(annotations: Mapping[object, object], death: Death) -> dict[object, object]:
    """Return the annotations of a dead letter for clients of AMQP 0-9-1.

    Args:
        annotations: Those of the message.
        death: How it died now.

    Returns:
        What is to be added; nothing where another protocol brought the message.
    """
    exchange = annotations.get(EXCHANGE)
    if not isinstance(exchange, str):
        return {}
    key = annotations.get(ROUTING_KEY)
    queue = death.source.removeprefix(_QUEUES)
    reason = REASONS.get(death.reason, death.reason)
    made: dict[str, Any] = {
        "count": 1,
        "reason": reason,
        "queue": queue,
        "time": Timestamp(death.died_ms),
        "exchange": exchange,
        "routing-keys": [key if isinstance(key, str) else "", *_copies_in(annotations)],
    }
    if death.ttl_ms is not None:
        made["original-expiration"] = str(death.ttl_ms)
    last = {"queue": queue, "reason": reason, "exchange": exchange}
    found: dict[object, object] = {
        Symbol(f"x-last-death-{name}"): value for name, value in last.items()
    }
    has_died = SOURCE in annotations
    if not (has_died and Symbol("x-first-death-queue") in annotations):
        found |= {Symbol(f"x-first-death-{name}"): value for name, value in last.items()}
    found[DEATHS] = _with_death(annotations.get(DEATHS) if has_died else None, made)
    route = _route_to(death.target)
    if ROUTING_KEY in route:  # then those that were published are none of its own any more
        found |= _without_copies(annotations)
    return found | route


def _copies_in(annotations: Mapping[object, object]) -> list[str]:
    """Return the further routing keys of a message, as far as its header CC names any."""
    headers = annotations.get(HEADERS)
    keys = headers.get(COPIES) if isinstance(headers, dict) else None
    return [key for key in keys if isinstance(key, str)] if isinstance(keys, list) else []


def _without_copies(annotations: Mapping[object, object]) -> dict[object, object]:
    headers = annotations.get(HEADERS)
    if not isinstance(headers, dict) or COPIES not in headers:
        return {}
    return {HEADERS: {key: value for key, value in headers.items() if key != COPIES}}


def _with_death(earlier: object, made: dict[str, Any]) -> list[dict[str, Any]]:
    """Return all deaths, the newest first; one in the same queue for the same reason is counted."""
    others = []
    for each in earlier if isinstance(earlier, list) else ():
        if not isinstance(each, dict):
            continue
        if (each.get("queue"), each.get("reason")) == (made["queue"], made["reason"]):
            count = each.get("count")
            made = {**each, "count": count + 1 if isinstance(count, int) else 1}
        else:
            others.append(each)
    return [made, *others[: DEATHS_MAX - 1]]


def _route_to(target: str) -> dict[object, object]:
    """Return the exchange, and the routing key if it is a new one, that an address stands for."""
    if target.startswith(_QUEUES):
        return {EXCHANGE: "", ROUTING_KEY: target.removeprefix(_QUEUES)}
    if not target.startswith(_EXCHANGES):
        return {}
    name, slash, key = target.removeprefix(_EXCHANGES).partition("/")
    exchange = "" if name == _DEFAULT else unquote(name)
    return {EXCHANGE: exchange, **({ROUTING_KEY: key} if slash else {})}
