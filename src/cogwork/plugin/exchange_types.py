"""Types of exchanges: built in, or installed with an entry point of the group `cogwork.exchanges`.

Theory of operation. An exchange's type keeps its bindings, and says where a message goes. It is
asked for each message unless `is_by_key` says that the keys alone decide: then results are kept
until a binding changes. It does no I/O, and knows no clock; randomness is an argument.

A type whose bindings are patterns of keys may have an attribute `interest`, a compiled matcher from
keys to destinations such as `router.topics.TopicTrie`: then `match` is asked for the rest alone.

A type of which each binding matches by itself, whatever others there are, may have a method
`condition` that returns what of a binding's key and arguments decides: then linked containers tell
each other of queues that are bound alike as one. A type that chooses among its bindings must not.

Clients name types, so only what is installed is found: an import path is none.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Protocol, cast

from cogwork.plugins import BUILT_IN, PluginError, load, names
from cogwork.router.exchanges.binding import Binding, Destination, InvalidBinding, Routed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = (
    "Binding",
    "Destination",
    "ExchangeType",
    "ExchangeTypeFactory",
    "InvalidBinding",
    "PluginError",
    "Routed",
    "exchange_type",
    "exchange_types",
)

GROUP = "cogwork.exchanges"


class ExchangeType(Protocol):
    """The bindings of one exchange. Built-in and foreign types follow the same rules."""

    @property
    def is_by_key(self) -> bool:
        """Whether `match` depends on the message's keys and the bindings alone."""

    def bind(self, binding: Binding) -> None:
        """Add a binding that is not there.

        Raises:
            InvalidBinding: Its key or its arguments cannot be used; nothing has changed.
        """

    def unbind(self, binding: Binding) -> None:
        """Remove a binding that is there."""

    def match(self, message: Routed) -> Iterable[Destination]:
        """Return the destinations of a message; one may appear more than once."""


class ExchangeTypeFactory(Protocol):
    """Makes the bindings of an exchange: what an entry point of the group names."""

    def __call__(
        self, arguments: Mapping[str, object], choose: Callable[[int], int], /
    ) -> ExchangeType:
        """Make those of one exchange, without any yet.

        Args:
            arguments: The exchange's.
            choose: Returns a random number from 0 to below the one that it is given.

        Raises:
            InvalidBinding: An argument cannot be used.
        """


@cache
def exchange_types() -> tuple[str, ...]:
    """List the types that are installed."""
    return tuple(sorted({*BUILT_IN[GROUP], *names(GROUP)}))


def exchange_type(name: str) -> ExchangeTypeFactory | None:
    """Return what makes exchanges of a type; None if no such type is installed.

    Raises:
        PluginError: It is there but cannot be loaded.
    """
    if name not in BUILT_IN[GROUP] and name not in exchange_types():
        return None
    return cast("ExchangeTypeFactory | None", load(GROUP, name, "exchange type"))
