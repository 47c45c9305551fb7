"""The nine performatives (AMQP 1.0 §2.7)."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, IntEnum
from typing import cast

from cogwork.amqp import codec
from cogwork.amqp.composite import Composite, composite, field
from cogwork.amqp.errors import AmqpError, Condition, ProtocolError
from cogwork.amqp.kinds import (
    BOOLEAN,
    DELIVERY_TAG,
    FIELDS,
    STRING,
    SYMBOLS,
    UINT,
    ULONG,
    UNSETTLED,
    USHORT,
    choice,
    composite_from,
    nested,
)
from cogwork.amqp.outcomes import DELIVERY_STATE, DeliveryState
from cogwork.amqp.terminus import SOURCE, TARGET, Coordinator, Source, Target
from cogwork.amqp.types import Described, Symbol, UByte

__all__ = (
    "MAX_UINT",
    "Attach",
    "Begin",
    "Close",
    "Detach",
    "Disposition",
    "End",
    "Flow",
    "Open",
    "Performative",
    "ReceiverSettleMode",
    "Role",
    "SenderSettleMode",
    "Transfer",
    "decode_performative",
    "encode_performative",
    "performative_from",
)

MAX_UINT = 2**32 - 1


class Role(Enum):
    """Which end of a link speaks (§2.8.1)."""

    SENDER = False
    RECEIVER = True


class SenderSettleMode(IntEnum):
    """Whether a sender settles before it knows the outcome (§2.8.2)."""

    UNSETTLED = 0
    SETTLED = 1
    MIXED = 2


class ReceiverSettleMode(IntEnum):
    """Whether a receiver settles at once or after the sender (§2.8.3)."""

    FIRST = 0
    SECOND = 1


_ROLE = choice("role", bool, Role)
_SENDER_SETTLE_MODE = choice("sender-settle-mode", UByte, SenderSettleMode)
_RECEIVER_SETTLE_MODE = choice("receiver-settle-mode", UByte, ReceiverSettleMode)
_ERROR = nested("error", "error")

_Properties = dict[Symbol, object] | None
_Symbols = tuple[Symbol, ...]


@composite(0x10, "open")
class Open(Composite):
    """Negotiates a connection; `idle_time_out` in milliseconds."""

    container_id: str = field(STRING)
    hostname: str | None = field(STRING, default=None)
    max_frame_size: int = field(UINT, default=MAX_UINT)
    channel_max: int = field(USHORT, default=65535)
    idle_time_out: int | None = field(UINT, default=None)
    outgoing_locales: _Symbols = field(SYMBOLS, default=())
    incoming_locales: _Symbols = field(SYMBOLS, default=())
    offered_capabilities: _Symbols = field(SYMBOLS, default=())
    desired_capabilities: _Symbols = field(SYMBOLS, default=())
    properties: _Properties = field(FIELDS, default=None)


@composite(0x11, "begin")
class Begin(Composite):
    """Begins a session on a channel."""

    remote_channel: int | None = field(USHORT, default=None)
    next_outgoing_id: int = field(UINT)
    incoming_window: int = field(UINT)
    outgoing_window: int = field(UINT)
    handle_max: int = field(UINT, default=MAX_UINT)
    offered_capabilities: _Symbols = field(SYMBOLS, default=())
    desired_capabilities: _Symbols = field(SYMBOLS, default=())
    properties: _Properties = field(FIELDS, default=None)


@composite(0x12, "attach")
class Attach(Composite):
    """Attaches a link to a session."""

    name: str = field(STRING)
    handle: int = field(UINT)
    role: Role = field(_ROLE)
    snd_settle_mode: SenderSettleMode = field(_SENDER_SETTLE_MODE, default=SenderSettleMode.MIXED)
    rcv_settle_mode: ReceiverSettleMode = field(
        _RECEIVER_SETTLE_MODE, default=ReceiverSettleMode.FIRST
    )
    source: Source | None = field(SOURCE, default=None)
    target: Target | Coordinator | None = field(TARGET, default=None)
    unsettled: dict[bytes, DeliveryState | None] | None = field(UNSETTLED, default=None)
    incomplete_unsettled: bool = field(BOOLEAN, default=False)
    initial_delivery_count: int | None = field(UINT, default=None)
    max_message_size: int | None = field(ULONG, default=None)
    offered_capabilities: _Symbols = field(SYMBOLS, default=())
    desired_capabilities: _Symbols = field(SYMBOLS, default=())
    properties: _Properties = field(FIELDS, default=None)


@composite(0x13, "flow")
class Flow(Composite):
    """Updates the windows of a session and the credit of a link."""

    next_incoming_id: int | None = field(UINT, default=None)
    incoming_window: int = field(UINT)
    next_outgoing_id: int = field(UINT)
    outgoing_window: int = field(UINT)
    handle: int | None = field(UINT, default=None)
    delivery_count: int | None = field(UINT, default=None)
    link_credit: int | None = field(UINT, default=None)
    available: int | None = field(UINT, default=None)
    drain: bool = field(BOOLEAN, default=False)
    echo: bool = field(BOOLEAN, default=False)
    properties: _Properties = field(FIELDS, default=None)


@composite(0x14, "transfer")
class Transfer(Composite):
    """Carries a message, or a part of one, behind it in the frame."""

    handle: int = field(UINT)
    delivery_id: int | None = field(UINT, default=None)
    delivery_tag: bytes | None = field(DELIVERY_TAG, default=None)
    message_format: int | None = field(UINT, default=None)
    settled: bool | None = field(BOOLEAN, default=None)
    more: bool = field(BOOLEAN, default=False)
    rcv_settle_mode: ReceiverSettleMode | None = field(_RECEIVER_SETTLE_MODE, default=None)
    state: DeliveryState | None = field(DELIVERY_STATE, default=None)
    resume: bool = field(BOOLEAN, default=False)
    aborted: bool = field(BOOLEAN, default=False)
    batchable: bool = field(BOOLEAN, default=False)


@composite(0x15, "disposition")
class Disposition(Composite):
    """Tells the state of a range of deliveries."""

    role: Role = field(_ROLE)
    first: int = field(UINT)
    last: int | None = field(UINT, default=None)
    settled: bool = field(BOOLEAN, default=False)
    state: DeliveryState | None = field(DELIVERY_STATE, default=None)
    batchable: bool = field(BOOLEAN, default=False)


@composite(0x16, "detach")
class Detach(Composite):
    """Detaches a link, for good where it is closed."""

    handle: int = field(UINT)
    closed: bool = field(BOOLEAN, default=False)
    error: AmqpError | None = field(_ERROR, default=None)


@composite(0x17, "end")
class End(Composite):
    """Ends a session."""

    error: AmqpError | None = field(_ERROR, default=None)


@composite(0x18, "close")
class Close(Composite):
    """Closes a connection."""

    error: AmqpError | None = field(_ERROR, default=None)


Performative = Open | Begin | Attach | Flow | Transfer | Disposition | Detach | End | Close

_BY_NAME = frozenset(
    made.NAME for made in (Open, Begin, Attach, Flow, Transfer, Disposition, Detach, End, Close)
)

Encode = Callable[[object], bytes]
Decode = Callable[[bytes | bytearray | memoryview, int], tuple[object, int]]


def encode_performative(performative: Performative, encode: Encode = codec.encode) -> bytes:
    """Encode a performative.

    Args:
        performative: What to encode.
        encode: The codec's function; the compiled one gives the same bytes.

    Raises:
        EncodeError: A field is missing, out of range or of the wrong type; it is named.
    """
    return encode(performative.to_described())


def decode_performative(
    data: bytes | bytearray | memoryview, offset: int = 0, decode: Decode = codec.decode
) -> tuple[Performative, int]:
    """Decode the performative at the start of a frame's body.

    Args:
        data: The bytes that hold it.
        offset: Where it starts.
        decode: The codec's function; the compiled one gives the same values.

    Returns:
        The performative, and the offset of the first byte behind it, where a payload starts.

    Raises:
        ProtocolError: The bytes are no performative, or a field of it is wrong; it is named.
    """
    value, following = decode(data, offset)
    return performative_from(value), following


def performative_from(value: object) -> Performative:
    """Return the performative that a decoded value is.

    Raises:
        ProtocolError: It is none, or a field of it is wrong.
    """
    found = composite_from(value) if isinstance(value, Described) else value
    if getattr(found, "NAME", None) not in _BY_NAME:
        raise ProtocolError(
            Condition.DECODE_ERROR, f"a performative is expected, not {found!r:.80}"
        )
    return cast("Performative", found)  # NAME says: one of the nine
