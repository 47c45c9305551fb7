"""Deliveries encoded once, with the places that change from one to the next.

The codec encodes them with marker values; where a marker stands, the compiled roles write later.
"""

from __future__ import annotations

from dataclasses import dataclass

from cogwork.amqp.frames import encode_frame
from cogwork.amqp.message import Data, Properties, Sections, encode_sections
from cogwork.amqp.performatives import Transfer, encode_performative
from cogwork.amqp.types import ULong

__all__ = ("MIN_BODY_BYTES", "Image", "Subject", "delivery", "reply_head")

MIN_BODY_BYTES = 16
"""A body starts with a sequence number and a time stamp."""

_ID_MARK = 0xC09F00D1
_TAG_MARK = b"\xc0\x9f\x00\xd2"
_STAMP_MARK = b"\xc0\x9f\x00\xd3" * (MIN_BODY_BYTES // 4)
_CORRELATION_MARK = 0xC09F00D4_C09F00D4
_DIGITS = 4


@dataclass(frozen=True, slots=True)
class Subject:
    """Addresses that differ from message to message: a prefix and words of four digits.

    Message i has, in each word, `(i * stride + i // carry) % modulus`.

    Attributes:
        prefix: What stands before the first word.
        words: (modulus, stride, carry) of each word, at most four.
    """

    prefix: str
    words: tuple[tuple[int, int, int], ...]

    def address(self, index: int) -> str:
        """Return the address of message `index`."""
        values = ((index * by + index // carry) % modulus for modulus, by, carry in self.words)
        return self.prefix + ".".join(f"{value:0{_DIGITS}}" for value in values)


@dataclass(frozen=True, slots=True)
class Image:
    """The frames of one delivery, and the offsets of what changes; -1: not there.

    Attributes:
        octets: All frames.
        frame_sizes: The size of each, in bytes.
        settled: Whether it is sent settled.
        id_at: Where the delivery-id stands, four bytes.
        tag_at: Where the delivery-tag stands, four bytes.
        stamp_at: Where the body's sequence number and time stand, eight bytes each.
        correlation_at: Where the correlation-id stands, eight bytes.
        digits: (offset, modulus, stride, carry) of each word of its address that counts.
    """

    octets: bytes
    frame_sizes: tuple[int, ...]
    settled: bool
    id_at: int
    tag_at: int
    stamp_at: int = -1
    correlation_at: int = -1
    digits: tuple[tuple[int, int, int, int], ...] = ()


def delivery(
    handle: int,
    size_bytes: int,
    max_frame_size: int,
    *,
    settled: bool,
    to: str | Subject | None = None,
    reply_to: str | None = None,
) -> Image:
    """Encode a delivery whose body is a data section.

    Args:
        handle: Our handle of the link.
        size_bytes: The body's size, at least MIN_BODY_BYTES.
        max_frame_size: The peer's, in bytes.
        settled: Whether it is sent settled.
        to: Its address, where the link has none.
        reply_to: Where a reply goes; with it comes a correlation-id.

    Raises:
        ValueError: The body is too small for its stamp.
    """
    if size_bytes < MIN_BODY_BYTES:
        raise ValueError(f"a body has {MIN_BODY_BYTES} bytes or more, not {size_bytes}")
    frames = _frames(handle, _message(size_bytes, to, reply_to), max_frame_size, settled=settled)
    octets = b"".join(frames)
    return Image(
        octets=octets,
        frame_sizes=tuple(map(len, frames)),
        settled=settled,
        id_at=octets.index(_ID_MARK.to_bytes(4, "big")),
        tag_at=octets.index(_TAG_MARK),
        stamp_at=octets.index(_STAMP_MARK),
        correlation_at=octets.find(_CORRELATION_MARK.to_bytes(8, "big")),
        digits=_digits(octets, to) if isinstance(to, Subject) else (),
    )


def reply_head(handle: int, *, settled: bool) -> Image:
    """Encode a transfer's frame up to where its message starts."""
    octets = encode_frame(0, _transfer(handle, settled=settled, more=False))
    return Image(
        octets=octets,
        frame_sizes=(len(octets),),
        settled=settled,
        id_at=octets.index(_ID_MARK.to_bytes(4, "big")),
        tag_at=octets.index(_TAG_MARK),
    )


def _message(size_bytes: int, to: str | Subject | None, reply_to: str | None) -> bytes:
    properties = None
    if to is not None or reply_to is not None:
        properties = Properties(
            to=to.address(0) if isinstance(to, Subject) else to,
            reply_to=reply_to,
            correlation_id=ULong(_CORRELATION_MARK) if reply_to is not None else None,
        )
    body = _STAMP_MARK + b"c" * (size_bytes - MIN_BODY_BYTES)
    return encode_sections(Sections(properties=properties, body=Data([body])))


def _transfer(handle: int, *, settled: bool, more: bool) -> bytes:
    return encode_performative(
        Transfer(
            handle=handle,
            delivery_id=_ID_MARK,
            delivery_tag=_TAG_MARK,
            message_format=0,
            settled=settled,
            more=more,
        )
    )


def _frames(handle: int, message: bytes, max_frame_size: int, *, settled: bool) -> list[bytes]:
    """Cut the message; frame behind the first carry no delivery-id (AMQP 1.0 §2.7.5)."""
    frames: list[bytes] = []
    while message or not frames:
        if frames:
            head = encode_performative(Transfer(handle=handle, settled=settled, more=True))
        else:
            head = _transfer(handle, settled=settled, more=True)
        room = max_frame_size - len(encode_frame(0, head))
        if len(message) <= room:
            head = (
                encode_performative(Transfer(handle=handle, settled=settled))
                if frames
                else _transfer(handle, settled=settled, more=False)
            )
        frames.append(encode_frame(0, head + message[:room]))
        message = message[room:]
    return frames


def _digits(octets: bytes, subject: Subject) -> tuple[tuple[int, int, int, int], ...]:
    start = octets.index(subject.address(0).encode()) + len(subject.prefix.encode())
    return tuple((start + index * (_DIGITS + 1), *word) for index, word in enumerate(subject.words))
