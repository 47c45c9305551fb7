"""Options of a queue or a stream that is declared while the container runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from cogwork.plugin.management import BAD_REQUEST, ManagementError
from cogwork.plugin.shape import describe, keys_at, type_at

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("check_options", "takes")


def check_options(
    kind: str, options: Mapping[str, object], known_ones: type[msgspec.Struct]
) -> dict[str, Any]:
    """Check options as the configuration does.

    Args:
        kind: What is declared, for errors.
        options: As they came.
        known_ones: Has those that there are, with their types.

    Returns:
        Those that have a value.

    Raises:
        ManagementError: One is unknown, or its value is none of its own.
    """
    known = keys_at(known_ones, ())
    for key, value in options.items():
        if key not in known:
            raise ManagementError(
                BAD_REQUEST, f"a {kind} has no option {key!r:.80}: there are {', '.join(known)}"
            )
        if value is not None and not takes(known_ones, key, value):
            expected = describe(type_at(known_ones, (key,)))
            raise ManagementError(BAD_REQUEST, f"{key} takes {expected}, not {value!r:.80}")
    return {key: value for key, value in options.items() if value is not None}


def takes(known_ones: type[msgspec.Struct], key: str, value: object) -> bool:
    """Return whether a value is one that an option can have.

    Args:
        known_ones: Has the option.
        key: Its name.
        value: As it came.
    """
    try:
        msgspec.convert({key: value}, known_ones)
    except msgspec.ValidationError:
        return False
    return True
