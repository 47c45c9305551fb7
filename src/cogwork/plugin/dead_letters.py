"""Dead letters: what a message says of its death, and how it comes back to life.

Theory of operation. Only the sections before the properties are made anew (AMQP 1.0 §3.2); the
message's bare part stays what its sender wrote, byte for byte. A dead letter has no ttl and asks
for no delay: it would expire again, or hide, where it is to be looked at.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import TYPE_CHECKING

from cogwork.amqp.errors import AmqpError, DecodeError, ProtocolError
from cogwork.amqp.message import SECTION_CODES, Header
from cogwork.amqp.outcomes import Rejected
from cogwork.amqp.types import Described, Symbol, Timestamp, UInt, ULong, datetime_from_ms
from cogwork.dataplane.encoding.codec import decode, encode
from cogwork.plugin.basic_deaths import Death, basic_deaths

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = (
    "COUNT",
    "DEAD_LETTER_ID",
    "ERROR",
    "FAILURES",
    "FIRST_REASON",
    "FIRST_SOURCE",
    "FIRST_TIME",
    "MOVED",
    "REASON",
    "SOURCE",
    "as_moved",
    "dead_letter",
    "dead_letter_id",
    "origin_of",
    "revived",
)

REASON = Symbol("x-opt-dead-letter-reason")
"""Why: expired, rejected, delivery-count-exceeded, acquisitions-exceeded, in-doubt, abandoned or
maximum-length."""
SOURCE = Symbol("x-opt-dead-letter-source")
"""The address that the message came from."""
ERROR = Symbol("x-opt-dead-letter-error")
"""What a consumer said that rejected it: the condition, and the description where there is one."""
FAILURES = Symbol("x-opt-dead-letter-failures")
"""How many attempts had failed."""
COUNT = Symbol("x-opt-dead-letter-count")
"""How often the message has died by now: where queues retry by each other, more than once."""

FIRST_SOURCE = Symbol("x-opt-first-dead-letter-source")
FIRST_REASON = Symbol("x-opt-first-dead-letter-reason")
FIRST_TIME = Symbol("x-opt-first-dead-letter-time")
"""Where, why and when the message died first: later deaths leave that as it is."""

DEAD_LETTER_ID = Symbol("x-opt-dead-letter-id")
"""Which dead letter it is: a delivery annotation, as a dead letter may come more than once."""
_ITEM = struct.Struct(">IQ")

MOVED = Symbol("x-opt-moved")
"""Says that people have moved a message: it is no duplicate. So is none that has a `SOURCE`."""

_OWN = frozenset({REASON, SOURCE, ERROR, FAILURES, COUNT, FIRST_SOURCE, FIRST_REASON, FIRST_TIME})
_DELAYS = frozenset({Symbol("x-opt-delivery-delay"), Symbol("x-opt-delivery-time")})
_HEADER, _DELIVERY_ANNOTATIONS, _MESSAGE_ANNOTATIONS = 0x70, 0x71, 0x72
_FRONTS = (_HEADER, _DELIVERY_ANNOTATIONS, _MESSAGE_ANNOTATIONS)
_DESCRIBED = 0x00
"""What a described value begins with (AMQP 1.0 §1.2)."""
_NUMBERS = frozenset((b"\x53", b"\x80"))
"""What a descriptor that is a number begins with: the format codes of ulong."""
_NAMES = tuple(
    (start + name.encode(), code)
    for name, code in SECTION_CODES.items()
    if code in _FRONTS
    for start in (bytes((0xA3, len(name))), b"\xb3" + struct.pack(">I", len(name)))
)
"""The descriptors that are names, encoded in each way that a symbol may be (AMQP 1.0 §1.6.21)."""


@dataclass(slots=True)
class _Front:
    """The sections before the properties, and all that follows."""

    header: Header | None = None
    delivery_annotations: bytes = b""
    annotations: dict[object, object] = field(default_factory=dict)
    rest: bytes = b""


def dead_letter_id(source: str, shard: int, number: int) -> bytes:
    """Name a dead letter, alike however often it is sent.

    Args:
        source: The address of the queue that sends it.
        shard: The first part of its items' tags.
        number: The item's.

    Returns:
        16 octets: for how long numbers are no other item's, neither are these.
    """
    return blake2b(_ITEM.pack(shard, number) + source.encode(), digest_size=16).digest()


def dead_letter(
    message: bytes,
    source: str,
    reason: str,
    error: bytes | None,
    failures: int,
    *,
    died_ms: int,
    target: str = "",
    letter: bytes | None = None,
) -> bytes:
    """Make a dead letter of a message.

    Args:
        message: Encoded.
        source: The address it came from.
        reason: Why it is dead.
        error: The encoded outcome of who rejected it; None where nobody did.
        failures: How many attempts had failed.
        died_ms: When it died, in milliseconds since 1970.
        target: The address that it is sent to.
        letter: Which dead letter it is, where it may be sent again.

    Returns:
        The message with its annotations; as it was, where it is no message of AMQP 1.0.
    """
    try:
        front = _split(message)
    except (DecodeError, ProtocolError):
        return message
    facts: dict[object, object] = {REASON: reason, SOURCE: source, FAILURES: UInt(failures)}
    facts[COUNT] = UInt(min(_deaths(front) + 1, UInt.MAX))
    facts |= _first_death(front) or {
        FIRST_SOURCE: source,
        FIRST_REASON: reason,
        FIRST_TIME: datetime_from_ms(died_ms),
    }
    said = _error_text(error)
    if said is not None:
        facts[ERROR] = said
    ttl_ms = None if front.header is None else front.header.ttl
    facts |= basic_deaths(front.annotations, Death(source, reason, died_ms, ttl_ms, target))
    if letter is not None:
        ids: dict[object, object] = {DEAD_LETTER_ID: letter}
        front.delivery_annotations = encode(Described(ULong(_DELIVERY_ANNOTATIONS), ids))
    return _with_facts(front, facts)


def revived(message: bytes) -> bytes:
    """Return a dead letter without what it says of its death."""
    try:
        return _with_facts(_split(message), {})
    except (DecodeError, ProtocolError):
        return message


def as_moved(message: bytes) -> bytes:
    """Return a message of which no queue is to have known it before, and without a delay.

    That is over: it would wait once more. And a queue that remembers message-ids may have had it,
    or know a like one: it would count as a duplicate, and be gone.
    """
    try:
        front = _split(message)
    except (DecodeError, ProtocolError):
        return message
    kept = {key: value for key, value in front.annotations.items() if key not in _DELAYS}
    return _join(front, {**kept, MOVED: True})


def origin_of(message: bytes) -> str | None:
    """Return the address that a dead letter came from; None where it is none."""
    try:
        source = _split(message).annotations.get(SOURCE)
    except (DecodeError, ProtocolError):
        return None
    return source if isinstance(source, str) else None


def _deaths(front: _Front) -> int:
    """Read how often a message has died before; whatever else stands there is no number of it."""
    count = front.annotations.get(COUNT)
    return count if isinstance(count, UInt) else 0


def _first_death(front: _Front) -> dict[object, object]:
    """Read what a message says of its first death; empty where it has not died.

    The dead letter of a version that told the last death alone says that one, without its time.
    """
    said = front.annotations
    source, reason, time = (said.get(key) for key in (FIRST_SOURCE, FIRST_REASON, FIRST_TIME))
    if isinstance(source, str) and isinstance(reason, str):
        first: dict[object, object] = {FIRST_SOURCE: source, FIRST_REASON: reason}
        if isinstance(time, datetime | Timestamp):
            first[FIRST_TIME] = time
        return first
    source, reason = said.get(SOURCE), said.get(REASON)
    if isinstance(source, str) and isinstance(reason, str):
        return {FIRST_SOURCE: source, FIRST_REASON: reason}
    return {}


def _with_facts(front: _Front, facts: Mapping[object, object]) -> bytes:
    kept = {key: value for key, value in front.annotations.items() if key not in _OWN | _DELAYS}
    if front.header is not None:
        front.header.ttl = None
    return _join(front, {**kept, **facts})


def _split(message: bytes) -> _Front:
    front = _Front()
    at = 0
    while at < len(message):
        if message[at] != _DESCRIBED:
            raise DecodeError("a message section is expected", at)
        # Before all of it: the body can be as long as a message, and is not to be looked into.
        descriptor = _front_at(message, at + 1)
        if descriptor is None:
            break
        section, following = decode(message, at)
        if not isinstance(section, Described):
            raise DecodeError("a message section is expected", at)
        if descriptor == _HEADER:
            front.header = Header.from_fields(section.value)
        elif descriptor == _DELIVERY_ANNOTATIONS:
            front.delivery_annotations = message[at:following]
        elif descriptor == _MESSAGE_ANNOTATIONS and isinstance(section.value, dict):
            front.annotations = section.value
        else:
            break
        at = following
    front.rest = message[at:]
    return front


def _front_at(message: bytes, at: int) -> int | None:
    """Return the code of a section before the properties by its descriptor; None for all else.

    The descriptor is not decoded unless it is a number: a peer may have put in what compares with
    nothing, or is as long as a message.
    """
    if message[at : at + 1] in _NUMBERS:
        descriptor, _ = decode(message, at)
        return descriptor if descriptor in _FRONTS else None
    for name, code in _NAMES:
        if message.startswith(name, at):
            return code
    return None


def _join(front: _Front, annotations: Mapping[object, object]) -> bytes:
    parts = []
    if front.header is not None:
        parts.append(encode(front.header.to_described()))
    parts.append(front.delivery_annotations)
    if annotations:
        parts.append(encode(Described(ULong(_MESSAGE_ANNOTATIONS), dict(annotations))))
    return b"".join([*parts, front.rest])


def _error_text(outcome: bytes | None) -> str | None:
    """Read what a consumer said when it rejected a message."""
    if outcome is None:
        return None
    try:
        value, _ = decode(outcome)
        rejected = Rejected.from_fields(value.value) if isinstance(value, Described) else None
    except (DecodeError, ProtocolError):
        return None
    error = rejected.error if rejected is not None else None
    if not isinstance(error, AmqpError):
        return None
    return f"{error.condition}: {error.description}" if error.description else str(error.condition)
