"""What arrives becomes what a signature asks for."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec

__all__ = ("converted",)

_BARE = (str, int, float, Decimal)


def converted(value: object, kind: Any) -> Any:  # noqa: ANN401  # any type
    """Return a value as a type: a dataclass of a map, a datetime of its text, ...

    Args:
        value: As a codec has read it.
        kind: What is wanted.

    Raises:
        ValidationError: The value is none; the text names the place.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        bare = _bare(value)
        if bare is value:
            raise
    return msgspec.convert(bare, kind)


def _bare(value: object) -> object:
    """Return a value without AMQP's own types: a Decimal128 is a decimal, a Symbol is a str."""
    if isinstance(value, dict):
        return {_bare(key): _bare(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_bare(part) for part in value]
    for kind in _BARE:
        if isinstance(value, kind) and type(value) not in {kind, bool}:
            return kind(value)
    return value
