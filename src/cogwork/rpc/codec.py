"""What turns arguments and results into bodies, and back: an entry point each.

A codec is named by the content-type of the messages it writes, so that a service answers in the
one it was asked in. None of them runs code: what arrives is data, whoever sent it.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import msgspec

from cogwork.amqp.errors import CogworkError
from cogwork.plugins import load, names
from cogwork.rpc.codecs.amqp import AmqpCodec
from cogwork.rpc.errors import Unserialisable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ("GROUP", "Codec", "UnknownCodecError", "codec_for", "codec_named", "unserialisable")

GROUP = "cogwork.codecs"

PATH_DEPTH_MAX = 100
"""Levels that are searched for what cannot be carried: a value may contain itself."""


class UnknownCodecError(CogworkError, LookupError):
    """No codec has this name, or writes this content-type."""


class Codec(Protocol):
    """Writes and reads bodies.

    Attributes:
        content_type: Of the messages it writes; None for AMQP's own types.
    """

    content_type: str | None

    def encode(self, value: object) -> object:
        """Return a body: bytes, or a value of AMQP's types.

        Raises:
            Exception: It cannot be carried, whatever the reason.
        """

    def decode(self, body: object) -> object:
        """Return what a body holds.

        Raises:
            Exception: It is none of this codec's.
        """


AMQP = AmqpCodec()


@lru_cache(64)
def codec_named(name: str) -> Codec:
    """Return the codec of a name.

    Raises:
        UnknownCodecError: There is none; the message lists those that are installed.
    """
    if name == "amqp":
        return AMQP
    made = load(GROUP, name, "codec")
    if not callable(made):
        known = ", ".join(names(GROUP)) or "none"
        raise UnknownCodecError(f"codec {name!r}: no such one is installed, but {known}")
    codec: Codec = made()
    return codec


@lru_cache(64)
def codec_for(content_type: str | None) -> Codec:
    """Return the codec that writes a content-type.

    Raises:
        UnknownCodecError: None does.
    """
    if content_type is None:
        return AMQP
    wanted = content_type.partition(";")[0].strip().lower()
    for name in names(GROUP):
        codec = codec_named(name)
        if codec.content_type == wanted:
            return codec
    raise UnknownCodecError(f"content-type {content_type!r:.80}: no codec reads it")


def unserialisable(
    value: object, encode: Callable[[object], object], error: Exception
) -> Unserialisable:
    """Find what in a value cannot be carried.

    Args:
        value: The arguments, or a result.
        encode: Raises for what cannot be.
        error: What it raised for the whole.
    """
    path = ""
    for _ in range(PATH_DEPTH_MAX):
        for step, part in _parts(value):
            try:
                encode(part)
            except Exception as problem:
                path, value, error = path + step, part, problem
                break
        else:
            break
    reason = "it contains itself" if isinstance(error, RecursionError) else str(error)
    return Unserialisable(path.removeprefix(".") or "the value", reason)


def _parts(value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield (f".{key}" if isinstance(key, str) else f"[{key!r:.80}]"), part
    elif isinstance(value, (list, tuple)):
        for index, part in enumerate(value):
            yield f"[{index}]", part
    elif is_dataclass(value) and not isinstance(value, type):
        for each in fields(value):
            yield f".{each.name}", getattr(value, each.name)
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield f".{name}", getattr(value, name)
