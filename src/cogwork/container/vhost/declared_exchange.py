"""What an exchange was declared as."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("DeclaredExchange",)


@dataclass(frozen=True, slots=True)
class DeclaredExchange:
    """An exchange as it was declared.

    Attributes:
        name: Its name.
        kind: Its type.
        durable: Whether it outlives the container, where there is a data directory.
        auto_delete: Whether it goes with the last binding from it.
        internal: Whether it takes messages from other exchanges alone.
        arguments: As they were given.
    """

    name: str
    kind: str
    durable: bool = True
    auto_delete: bool = False
    internal: bool = False
    arguments: Mapping[str, object] = field(default_factory=dict)
