"""Arguments of queue.declare as options of a queue's node, and the other way round (RabbitMQ).

An argument that means nothing here is taken and ignored where it is about how RabbitMQ does its
work, and refused where a client would count on what it says (406).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from cogwork.amqp091.errors import ProtocolError, ReplyCode
from cogwork.amqp091.types import Float32, Int8, Int16, Int64, Timestamp, UInt8, UInt16, UInt32
from cogwork.dataplane.message.basic_conversion import escaped, unescaped
from cogwork.plugin.queue_options import BYTES_MAX, COUNT_MAX, PRIORITIES
from cogwork.router.exchanges.addresses import exchange_address, name_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cogwork.amqp091.types import Table

__all__ = (
    "MILLISECONDS",
    "QUEUE_TYPE",
    "UNFIT_FOR_STREAMS",
    "arguments_of",
    "check_equal",
    "invalid_argument",
    "options_of",
    "type_name",
)

QUEUE_TYPE: Final = "x-queue-type"
CONSUMER_TIMEOUT: Final = "x-consumer-timeout"

OVERFLOW: Final = {
    "drop-head": "drop-oldest",
    "reject-publish": "reject",
    "reject-publish-dlx": "reject-dead-letter",
}

PRIORITY_MAX: Final = 255

SIZE_MAX: Final = 2**63 - 1

MILLISECONDS: Final = 1000

LEAST_TTL_S: Final = 1e-6
"""What a ttl of 0 is here: a message goes to a consumer that waits, or to nobody."""

IGNORED: Final = frozenset(
    {"x-queue-version", "x-queue-master-locator"}
    | {"x-queue-leader-locator", "x-quorum-initial-group-size", "x-max-in-memory-length"}
    | {"x-max-in-memory-bytes", "x-dead-letter-strategy", "x-ha-policy", "x-cancel-on-ha-failover"}
)
"""About how RabbitMQ keeps messages."""

_TYPES: Final[dict[type, str]] = {
    bool: "bool",
    int: "signedint",
    Int8: "byte",
    UInt8: "unsignedbyte",
    Int16: "short",
    UInt16: "unsignedshort",
    UInt32: "unsignedint",
    Int64: "long",
    float: "double",
    Float32: "float",
    str: "longstr",
    bytes: "binary",
    Timestamp: "timestamp",
    list: "array",
    dict: "table",
    type(None): "void",
}
"""What RabbitMQ calls the types of values, in its errors."""


class _BadValue(Exception):
    """A value that an argument cannot have; the text is RabbitMQ's."""


class _BadTypeError(Exception):
    """A value of a type that an argument cannot have: its name."""


def type_name(value: object) -> str:
    """Return what RabbitMQ calls the type of a value."""
    if type(value) is int and not -(2**31) <= value < 2**31:
        return "long"
    return _TYPES.get(type(value), type(value).__name__)


def _number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _BadValue(f'"expected integer, got {type_name(value)}"')
    if value < 0:
        raise _BadValue(f"{{value_negative,{value}}}")
    return int(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _BadValue(f"{{unacceptable_type,{type_name(value)}}}")
    return value


def _ttl(value: object) -> dict[str, Any]:
    return {"ttl_s": (_number(value) / MILLISECONDS) or LEAST_TTL_S}


def _expires(value: object) -> dict[str, Any]:
    if _number(value) == 0:
        raise _BadValue("{value_zero,0}")
    return {}  # the door sees to it


def _length(value: object) -> dict[str, Any]:
    return {"maximum_length": min(_number(value), COUNT_MAX)}


def _size(value: object) -> dict[str, Any]:
    return {"maximum_bytes": min(_number(value), SIZE_MAX)}


def _overflow(value: object) -> dict[str, Any]:
    policy = OVERFLOW.get(_text(value))
    if policy is None:
        raise _BadValue("invalid_overflow")
    return {"maximum_length_policy": policy}


def _priority(value: object) -> dict[str, Any]:
    number = _number(value)
    if number > PRIORITY_MAX:
        raise _BadValue(f"{{max_value_exceeded,{number}}}")
    return {"priorities": number + 1}


def _delivery_limit(value: object) -> dict[str, Any]:
    return {"maximum_delivery_count": _number(value) + 1}


def _queue_type(value: object) -> dict[str, Any]:
    if _text(value) not in ("classic", "quorum"):
        raise _BadValue(f"\"unsupported queue type '{value}'\"")
    return {}


def _single_active(value: object) -> dict[str, Any]:
    if not isinstance(value, bool):
        raise _BadValue(f"{{unacceptable_type,{type_name(value)}}}")
    return {}


def _dead_letter(value: object) -> dict[str, Any]:
    if not isinstance(value, str):
        raise _BadTypeError(type_name(value))
    return {}  # both arguments make one address


def _queue_mode(value: object) -> dict[str, Any]:
    if _text(value) not in ("default", "lazy"):
        raise _BadValue("invalid_queue_mode")
    return {}  # about how RabbitMQ keeps messages


def _consumer_timeout(value: object) -> dict[str, Any]:
    _number(value)
    return {}  # a consumer may take as long as it needs


_READERS: Final[dict[str, Callable[[object], dict[str, Any]]]] = {
    "x-expires": _expires,
    "x-message-ttl": _ttl,
    "x-dead-letter-exchange": _dead_letter,
    "x-dead-letter-routing-key": _dead_letter,
    "x-max-length": _length,
    "x-max-length-bytes": _size,
    "x-max-priority": _priority,
    "x-overflow": _overflow,
    "x-queue-mode": _queue_mode,
    "x-single-active-consumer": _single_active,
    QUEUE_TYPE: _queue_type,
    "x-delivery-limit": _delivery_limit,
    CONSUMER_TIMEOUT: _consumer_timeout,
}
"""In the order in which RabbitMQ compares them."""

UNFIT_FOR_STREAMS: Final = frozenset(_READERS) - {
    "x-max-length-bytes",
    QUEUE_TYPE,
    CONSUMER_TIMEOUT,
}
"""Arguments that RabbitMQ knows, and refuses for streams."""


def options_of(arguments: Table, place: str) -> dict[str, Any]:
    """Return what arguments mean, as options of a queue's node.

    Args:
        arguments: As they came.
        place: Which queue, for errors.

    Raises:
        ProtocolError: One has a value that it cannot have (406).
    """
    # RabbitMQ heeds priorities only where they are asked for.
    options: dict[str, Any] = {"priorities": 1, "delay": False}
    for name, value in arguments.items():
        reader = _READERS.get(name)
        if reader is None:
            continue
        try:
            options |= reader(value)
        except _BadValue as error:
            raise invalid_argument(name, place, str(error)) from None
        except _BadTypeError as error:
            text = f"invalid type '{error}' for arg '{name}' in {place}"
            raise ProtocolError(ReplyCode.PRECONDITION_FAILED, text) from None
    _bound(options)
    dead_letter = _dead_letter_address(arguments, place)
    return options if dead_letter is None else {**options, "dead_letter": dead_letter}


def _bound(options: dict[str, Any]) -> None:
    """Have a queue that is bounded drop its head, if it is not to do anything else.

    One without room for any message has them live no time: each goes to a consumer that waits. If
    it is to refuse what it has no room for, none fits into the one octet that it has.
    """
    bounds = options.keys() & {"maximum_length", "maximum_bytes"}
    if bounds:
        options.setdefault("maximum_length_policy", OVERFLOW["drop-head"])
    for name in bounds:
        if options[name]:
            continue
        if options["maximum_length_policy"] == OVERFLOW["drop-head"]:
            options |= {name: 1, "ttl_s": LEAST_TTL_S}
        else:
            options |= {name: 1, "maximum_bytes": 1}


def _dead_letter_address(arguments: Table, place: str) -> str | None:
    """Return the address that dead letters go to; None where they are dropped."""
    exchange, key = (
        cast("str | None", arguments.get(f"x-dead-letter-{each}"))
        for each in ("exchange", "routing-key")
    )
    if exchange is None:
        if key is not None:
            reason = "routing_key_but_no_dlx_defined"
            raise invalid_argument("x-dead-letter-routing-key", place, reason)
        return None
    if exchange == "" and key:
        return f"queue/{escaped(key)}"
    # An address is UTF-8, these may be any octets.
    address = exchange_address(escaped(exchange))
    return address if key is None else f"{address}/{escaped(key)}"


def invalid_argument(name: str, place: str, reason: str) -> ProtocolError:
    """Return the error of an argument with a value that it cannot have (406)."""
    return ProtocolError(
        ReplyCode.PRECONDITION_FAILED, f"invalid arg '{name}' for {place}: {reason}"
    )


def arguments_of(options: Mapping[str, Any]) -> Table:
    """Return the arguments that would make a queue of some options, as far as there are any.

    What a queue has if nobody says anything is left out: so are the levels of priority that a queue
    of AMQP 1.0 has.
    """
    found: dict[str, Any] = {
        "x-max-length": options.get("maximum_length"),
        "x-max-length-bytes": options.get("maximum_bytes"),
    }
    if found["x-max-length-bytes"] == BYTES_MAX:
        del found["x-max-length-bytes"]
    ttl_s, levels = options.get("ttl_s"), options.get("priorities", 1)
    tries, policy = options.get("maximum_delivery_count"), options.get("maximum_length_policy")
    found["x-message-ttl"] = None if ttl_s is None else int(ttl_s * MILLISECONDS)
    found["x-max-priority"] = levels - 1 if levels not in (1, PRIORITIES) else None
    found["x-delivery-limit"] = None if tries is None else tries - 1
    words = {policy: word for word, policy in OVERFLOW.items() if word != "drop-head"}
    found["x-overflow"] = words.get(str(policy))
    found |= _dead_letter_arguments(options.get("dead_letter"))
    return {name: value for name, value in found.items() if value is not None}


def _dead_letter_arguments(address: str | None) -> Table:
    kind, _, name = (address or "").partition("/")
    if kind == "queue":
        return {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": unescaped(name)}
    if kind != "exchange":
        return {}
    exchange, slash, key = name.partition("/")
    found: Table = {"x-dead-letter-exchange": unescaped(name_in(exchange))}
    return {**found, "x-dead-letter-routing-key": unescaped(key)} if slash else found


def check_equal(
    received: Table, current: Table, place: str, names: Iterable[str] = tuple(_READERS)
) -> None:
    """Check that a redeclaration has the arguments that a queue was made with.

    Args:
        received: Those of the redeclaration.
        current: Those that it was made with.
        place: Which queue, for errors.
        names: Which of them are compared.

    Raises:
        ProtocolError: One differs (406).
    """
    for name in names:
        wanted, there = received.get(name), current.get(name)
        is_equal = wanted == there and isinstance(wanted, float) == isinstance(there, float)
        if not is_equal and not _is_default(name, wanted, there):
            both = wanted is not None and there is not None
            shown = _word if both else _shown
            raise ProtocolError(
                ReplyCode.PRECONDITION_FAILED,
                f"inequivalent arg '{name}' for {place}: received {shown(wanted)} but current is "
                f"{shown(there)}",
            )


def _is_default(name: str, wanted: object, there: object) -> bool:
    """Return whether one side says what holds anyhow."""
    defaults = {QUEUE_TYPE: "classic", "x-overflow": "drop-head"}
    return {wanted, there} <= {None, defaults.get(name)} if name in defaults else False


def _shown(value: object) -> str:
    return "none" if value is None else f"the value {_word(value)} of type '{type_name(value)}'"


def _word(value: object) -> str:
    return f"'{str(value).lower() if isinstance(value, bool) else value}'"
