"""What other containers say of their private queues, as bindings of the exchanges here.

Theory of operation. A binding that another container tells (`private_bindings`) leads to that
container from the exchange of the same name and type, as soon and as long as there is one here. It
counts as any other binding does: whether an alternate exchange is asked, or an exchange is in use.
Bindings of a container that cannot be reached any more are taken out until it can be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.router.exchanges.binding import InvalidBinding
from cogwork.router.exchanges.forwards import PrivateBinding
from cogwork.router.exchanges.graph import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Set

    from cogwork.router.exchanges.graph import ExchangeGraph

__all__ = ("RemoteBindings",)


class RemoteBindings:
    """Those in one virtual host."""

    def __init__(
        self,
        graph: ExchangeGraph,
        kind_of: Callable[[str], str | None],
        changed: Callable[[], None],
        on_lost: Callable[[str], None],
    ) -> None:
        """Know of none.

        Args:
            graph: The exchanges.
            kind_of: Returns the type of an exchange; None where there is none.
            changed: Called when the graph has changed.
            on_lost: Called with an exchange that a binding from here has gone from.
        """
        self._graph = graph
        self._kind_of = kind_of
        self._changed = changed
        self._on_lost = on_lost
        self._said: dict[str, dict[str, PrivateBinding]] = {}
        self._from: dict[str, dict[tuple[str, str], PrivateBinding]] = {}
        self._holders: dict[str, dict[str, None]] = {}
        self._unreachable: Set[str] = frozenset()

    # -- what others say

    def take(self, container: str, address: str) -> None:
        """Take note of a binding that another container has told; one that says nothing is none."""
        try:
            told = PrivateBinding.of(address)
        except ValueError:
            return
        self._said.setdefault(container, {})[address] = told
        if told.exchange == DEFAULT:
            name = told.key.decode(errors="surrogateescape")
            self._holders.setdefault(name, {})[container] = None
        else:
            self._from.setdefault(told.exchange, {})[container, address] = told
            self._bind(container, told)
        self._changed()

    def lose(self, container: str, address: str) -> None:
        """Take note that another container has a binding no longer."""
        said = self._said.get(container, {})
        told = said.pop(address, None)
        if told is None:
            return
        if not said:
            del self._said[container]
        if told.exchange == DEFAULT:
            self._lose_name(container, told.key.decode(errors="surrogateescape"))
        else:
            of_exchange = self._from[told.exchange]
            del of_exchange[container, address]
            if not of_exchange:
                del self._from[told.exchange]
            self._unbind(container, told)
        self._changed()

    def _lose_name(self, container: str, name: str) -> None:
        holders = self._holders[name]
        del holders[container]
        if not holders:
            del self._holders[name]

    # -- who is there

    def holder_of(self, queue: str) -> str | None:
        """Return the other container that has a private queue of a name; None where none does."""
        reachable = [each for each in self._holders.get(queue, ()) if each not in self._unreachable]
        return min(reachable, default=None)

    def set_unreachable(self, containers: Collection[str]) -> None:
        """Leave out the bindings of containers that cannot be reached, and of no others."""
        before, self._unreachable = self._unreachable, frozenset(containers)
        if before == self._unreachable:
            return
        for container in self._unreachable - before:
            for told in self._of(container):
                self._unbind(container, told)
        for container in before - self._unreachable:
            for told in self._of(container):
                self._bind(container, told)
        self._changed()

    def _of(self, container: str) -> Iterator[PrivateBinding]:
        """Yield the bindings of a container; not the names of its queues."""
        said = list(self._said.get(container, {}).values())
        return (told for told in said if told.exchange != DEFAULT)

    # -- the exchanges here

    def add_exchange(self, name: str) -> None:
        """Bind what others have told of an exchange that is new here."""
        for (container, _), told in self._from.get(name, {}).items():
            self._bind(container, told)

    def _bind(self, container: str, told: PrivateBinding) -> None:
        is_here = self._kind_of(told.exchange) == told.kind
        if not is_here or container in self._unreachable:
            return
        try:
            self._graph.bind(told.exchange, told.seen_from(container))
        except InvalidBinding:  # there the exchange has other arguments
            return

    def _unbind(self, container: str, told: PrivateBinding) -> None:
        is_here = self._kind_of(told.exchange) == told.kind
        if is_here and self._graph.unbind(told.exchange, told.seen_from(container)):
            self._on_lost(told.exchange)
