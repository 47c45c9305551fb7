"""What a method is run with: the keywords of a call that are not options of the call itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("arguments_of",)


def arguments_of(
    keywords: dict[str, object], further: Mapping[str, object] | None, *options: str
) -> dict[str, object]:
    """Returns a method's arguments.

    Args:
        keywords: Those that were given as keywords.
        further: Those that were given in `arguments`, where every name is an argument's.
        *options: What the call itself takes in seconds, without `_s`: whoever leaves that out may
            mean the option or an argument, and the wrong guess would be noticed late, or never.

    Raises:
        TypeError: One keyword may be either.
    """
    for name in options:
        if name in keywords:
            value = keywords[name]
            raise TypeError(
                f"{name}={value!r:.40}: the option of the call is {name}_s, in seconds; "
                f"an argument of the method goes into arguments={{{name!r}: ...}}"
            )
    if further is not None:
        keywords.update(further)
    return keywords
