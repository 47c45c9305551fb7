"""Values between AMQP and what JSON and MessagePack can carry, within bounds.

Theory of operation. Both codecs have numbers, texts, lists and maps, and lack some of what AMQP
has: JSON has no bytes, times, UUIDs and decimals, MessagePack no UUIDs and decimals. In JSON those
are maps with one key that starts with a dollar sign; a map of the application's own that looks like
one gets a second dollar sign. In MessagePack they are extension types. Whatever comes in is counted
and measured before anything is made of it. Each value is walked through once, and a scalar costs no
call: most are.
"""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING
from uuid import UUID

from cogwork.amqp.types import Described, Timestamp
from cogwork.gateways.zeromq.errors import Code, Fault

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = (
    "DEPTH_MAX",
    "ITEMS_MAX",
    "SCALARS",
    "Counted",
    "as_utc",
    "check",
    "decimal_of",
    "from_json",
    "is_integer",
    "plain",
    "written",
)

DEPTH_MAX = 32
"""Lists and maps within each other: no honest message comes near, no stack is in danger."""

ITEMS_MAX = 100_000
"""Values of one message: what a turn of the event loop can look at without anybody waiting long."""

DECIMAL_SIZE_MAX = 64
"""Characters of a decimal: 34 digits, sign, point and exponent need less."""

INTEGER_LEAST, INTEGER_MOST = -(2**63), 2**64 - 1
"""What AMQP's integers hold."""

SCALARS = frozenset({str, int, float, bool, type(None)})
"""What all sides write alike."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

DATETIME, BYTES, UUID_TAG, DECIMAL = "$datetime", "$bytes", "$uuid", "$decimal"


class Counted:
    """Counts what one message has, while it is looked at."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        """Initialize it; it has looked at nothing."""
        self.left = ITEMS_MAX

    def take(self, count: int, depth: int) -> None:
        """Take note of a list or map.

        Raises:
            Fault: It is too deep, or there are too many values.
        """
        self.left -= count + 1
        if depth > DEPTH_MAX:
            raise Fault(Code.BAD_MESSAGE, f"lists and maps more than {DEPTH_MAX} deep")
        if self.left < 0:
            raise Fault(Code.BAD_MESSAGE, f"more than {ITEMS_MAX} values in one message")


# -- what came from a client


def from_json(value: object, counted: Counted, depth: int = 1) -> object:
    """Make what JSON's maps with a dollar sign stand for.

    Raises:
        Fault: One stands for nothing, or the whole is too deep or too large.
    """
    kind = type(value)
    if kind is int:
        return _integer(value)
    if kind in SCALARS:
        return value
    depth_below = depth + 1
    if isinstance(value, list):
        counted.take(len(value), depth)
        return [from_json(each, counted, depth_below) for each in value]
    assert isinstance(value, dict)
    counted.take(len(value), depth)
    if len(value) == 1:
        key, inner = next(iter(value.items()))
        if key.startswith("$"):
            return _untagged(key, inner, counted, depth)
    return {
        key: each if type(each) is str else from_json(each, counted, depth_below)
        for key, each in value.items()
    }


def _untagged(key: str, inner: object, counted: Counted, depth: int) -> object:
    if key.startswith("$$"):
        return {key[1:]: from_json(inner, counted, depth + 1)}
    make = _MAKERS.get(key)
    if make is None:
        known = ", ".join(_MAKERS)
        raise Fault(Code.BAD_MESSAGE, f"a map with the key {key[:40]!r}: {known} or $$... expected")
    try:
        if not isinstance(inner, str):
            raise ValueError("a text is expected")
        return make(inner)
    except (ValueError, InvalidOperation, binascii.Error) as error:
        raise Fault(Code.BAD_MESSAGE, f"{key}: {error}"[:200]) from error


def _datetime(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError("a time without an offset from UTC, such as Z")
    return as_utc(found)


def as_utc(moment: datetime) -> datetime:
    """Return a time as UTC has it.

    Raises:
        ValueError: There it is in no year from 1 to 9999.
    """
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("a time from the year 1 to 9999, in UTC, is expected") from None


def decimal_of(text: str) -> Decimal:
    """Make a decimal of its text.

    Raises:
        ValueError: It is longer than any that AMQP has: to look at its digits would take long.
        InvalidOperation: It is none.
    """
    if len(text) > DECIMAL_SIZE_MAX:
        raise ValueError(
            f"{text[:20] + '…'!r} of {len(text)} characters; at most {DECIMAL_SIZE_MAX} expected"
        )
    return Decimal(text)


_MAKERS: dict[str, Callable[[str], object]] = {
    DATETIME: _datetime,
    BYTES: lambda text: base64.b64decode(text, validate=True),
    UUID_TAG: UUID,
    DECIMAL: decimal_of,
}


def check(value: object, counted: Counted, depth: int = 1) -> None:
    """Measure what MessagePack has been made into.

    Raises:
        Fault: It is too deep or too large, or a map has keys that are no texts.
    """
    if type(value) is int:
        _integer(value)
    elif isinstance(value, list):
        counted.take(len(value), depth)
        for each in value:
            check(each, counted, depth + 1)
    elif isinstance(value, dict):
        counted.take(len(value), depth)
        for key, each in value.items():
            if type(key) is not str:
                raise Fault(Code.BAD_MESSAGE, f"a map's key {key!r:.40}: texts are expected")
            check(each, counted, depth + 1)


def is_integer(value: object) -> bool:
    """Return whether this is an integer that all sides can hold."""
    return isinstance(value, int) and INTEGER_LEAST <= value <= INTEGER_MOST


def _integer(value: object) -> object:
    if not is_integer(value):
        raise Fault(Code.BAD_MESSAGE, "an integer of more than 64 bits: send it as $decimal")
    return value


# -- what goes to a client


def written(value: object, tag: Callable[[object], object], escapes: bool) -> object:
    """Make of a value of AMQP what a codec can carry.

    Args:
        value: Of any type.
        tag: Writes bytes, times, UUIDs and decimals.
        escapes: Whether a map with one key that starts with a dollar sign gets a second one.
    """
    if type(value) in SCALARS:
        return value
    if isinstance(value, dict):
        made = {
            key if type(key) is str else str(plain(key)): each
            if type(each) in SCALARS
            else written(each, tag, escapes)
            for key, each in value.items()
        }
        if escapes and len(made) == 1 and (key := next(iter(made))).startswith("$"):
            return {f"${key}": made[key]}
        return made
    if isinstance(value, (list, tuple)):
        return [each if type(each) in SCALARS else written(each, tag, escapes) for each in value]
    if isinstance(value, Described):
        return written(value.value, tag, escapes)
    return tag(plain(value))


def plain(value: object) -> object:
    """Make a scalar of AMQP one of Python's own types."""
    if type(value) in SCALARS or isinstance(value, (datetime, UUID, Decimal)):
        return value
    if isinstance(value, Timestamp):
        return _moment(value)
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    return str(value)


def _moment(timestamp_ms: int) -> datetime:
    try:
        return EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        raise ValueError(f"a timestamp of {timestamp_ms} ms is in no year from 1 to 9999") from None


def to_json(value: object) -> object:
    """Write a plain scalar for JSON."""
    if isinstance(value, bytes):
        return {BYTES: base64.b64encode(value).decode()}
    if isinstance(value, datetime):
        return {DATETIME: as_utc(value).isoformat().replace("+00:00", "Z")}
    if isinstance(value, UUID):
        return {UUID_TAG: str(value)}
    return {DECIMAL: str(value)} if isinstance(value, Decimal) else value
