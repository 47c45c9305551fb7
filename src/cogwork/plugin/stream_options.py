"""What a stream is made with, as plain data; named like the keys of `[[stream]]`."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import TYPE_CHECKING

from cogwork.amqp.errors import Condition
from cogwork.plugin.node import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("OWN_OPTIONS", "StreamOptions", "name_of")

OF_ADDRESSES = frozenset({"accept", "unmatched", "ttl_s", "dead_letter"})
"""What every node is told, and a stream has no use for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """A stream's declaration.

    Attributes:
        engine: Which engine keeps it.
        capture: Patterns of topics whose messages it keeps too.
        is_shared: Whether every container of a cluster has it.
        rest: What the engine is told: replicas, retention, its own options.

    Raises:
        Refused: A value is of the wrong type.
    """

    engine: str
    capture: tuple[str, ...] = ()
    is_shared: bool = False
    rest: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def of(cls, address: str, options: Mapping[str, object]) -> StreamOptions:
        """Take a stream's own options out of a node's; the others are the engine's.

        Args:
            address: The stream's, for people.
            options: By name.

        Raises:
            Refused: There is no engine among them: nobody has declared the stream.
        """
        engine = options.get("engine")
        if engine is None:
            name = shlex.quote(name_of(address))
            raise Refused(
                f"there is no stream {address!r:.200} in this container or its cluster: `cogwork "
                f"stream create URL {name:.80}` makes one",
                Condition.NOT_FOUND,
            )
        capture = options.get("capture") or ()
        if not isinstance(engine, str):
            raise Refused(f"engine = {engine!r:.80}; expected a name", Condition.INVALID_FIELD)
        if not isinstance(capture, (list, tuple)) or not all(
            isinstance(each, str) for each in capture
        ):
            raise Refused(
                f"capture = {capture!r:.80}; expected a list of topics", Condition.INVALID_FIELD
            )
        left_out = OWN_OPTIONS | OF_ADDRESSES
        rest = {
            name: value
            for name, value in options.items()
            if name not in left_out and value is not None
        }
        return cls(
            engine=engine,
            capture=tuple(capture),
            is_shared=options.get("is_shared") is True,
            rest=MappingProxyType(rest),
        )

    def shown(self) -> dict[str, object]:
        """Return all of it as plain values."""
        return {"engine": self.engine, "capture": list(self.capture), **self.rest}


def name_of(address: str) -> str:
    """Return what engines know the stream at an address by: what stands behind its first `/`."""
    return address.partition("/")[2] or address


OWN_OPTIONS = frozenset(each.name for each in fields(StreamOptions)) - {"rest"}
