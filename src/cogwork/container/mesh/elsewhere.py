"""What other containers say of addresses."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cogwork.router.mesh.messages import Interest

__all__ = ("Elsewhere",)

_NOBODY: Mapping[str, Interest] = MappingProxyType({})


class Elsewhere:
    """Interests of one kind and one virtual host, by address and by container."""

    def __init__(self) -> None:
        """Initialize it; it knows of none."""
        self._said: dict[str, dict[str, Interest]] = {}

    def __iter__(self) -> Iterator[str]:
        """Go over the addresses that somebody says something of, as they are now."""
        return iter(list(self._said))

    def __contains__(self, address: str) -> bool:
        """Return whether somebody says something of an address."""
        return address in self._said

    def at(self, address: str) -> Mapping[str, Interest]:
        """Return what is said of an address, by container."""
        return self._said.get(address, _NOBODY)

    def take(self, container: str, interest: Interest) -> None:
        """Take note of what a container says of an address; it says it in place of all before."""
        self._said.setdefault(interest.address, {})[container] = interest

    def lose(self, container: str, interest: Interest) -> None:
        """Take note that a container says nothing of an address any more."""
        others = self._said.get(interest.address, {})
        others.pop(container, None)
        if not others:
            self._said.pop(interest.address, None)
