"""The exchanges of a virtual host, with their bindings: which queues a message goes to.

Theory of operation. A message starts at one exchange and visits every exchange that bindings lead
it to, each once, so cycles end and a queue gets it once however many bindings lead there. Where an
exchange matches nothing, its alternate exchange is visited in its place. The default exchange has
no bindings: it leads to the queue that the key names.

Whether the result depends on the key alone is part of it: then it may be kept until the bindings
change. `version` moves with every change.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from cogwork.dataplane.addresses.interest import Interest
from cogwork.router.exchanges.binding import CONTAINER, EXCHANGE, QUEUE, Destination
from cogwork.router.exchanges.forwards import ForwardsFound

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogwork.router.exchanges.binding import Binding, Routed
    from cogwork.router.exchanges.forwards import Forward

__all__ = ("DEFAULT", "Exchange", "ExchangeGraph", "Matcher", "Route")

DEFAULT: Final = ""
"""The name of the default exchange."""


class Matcher(Protocol):
    """What the graph needs of an exchange's type: the contract is in `plugin.exchange_types`."""

    @property
    def is_by_key(self) -> bool:
        """Whether `match` depends on the message's keys and the bindings alone."""

    def bind(self, binding: Binding) -> None:
        """Add a binding that was not there."""

    def unbind(self, binding: Binding) -> None:
        """Remove a binding that was there."""

    def match(self, message: Routed) -> Iterable[Destination]:
        """Return the destinations of a message; one may appear more than once."""


@dataclass(slots=True, eq=False)
class Exchange:
    """One exchange of the graph.

    Attributes:
        name: Its name.
        matcher: Its bindings, as its type keeps them.
        alternate: The exchange that takes what this one matches nothing for; None for nobody.
        is_internal: Whether messages come from other exchanges alone.
        bindings: All that lead from it, in the order in which they were made.
    """

    name: str
    matcher: Matcher
    alternate: str | None = None
    is_internal: bool = False
    bindings: dict[Binding, Binding] = field(default_factory=dict)


class Route(NamedTuple):
    """Where a message goes.

    Attributes:
        queues: The names of queues, each once.
        is_by_key: Whether the message's keys alone decided.
        forwards: Other containers whose private queues it goes to, each once.
    """

    queues: tuple[str, ...]
    is_by_key: bool
    forwards: tuple[Forward, ...] = ()


class ExchangeGraph:
    """Owned by whoever declares exchanges.

    Attributes:
        version: Increases with every change.
        binding_count: How many bindings there are.
    """

    def __init__(self) -> None:
        self.version = 0
        self.binding_count = 0
        self._exchanges: dict[str, Exchange] = {}
        self._leading_to: dict[Destination, dict[tuple[str, Binding], None]] = {}

    def __len__(self) -> int:
        """Count the exchanges, without the default one."""
        return len(self._exchanges)

    def __contains__(self, name: str) -> bool:
        return name in self._exchanges

    def add(
        self,
        name: str,
        matcher: Matcher,
        alternate: str | None = None,
        *,
        is_internal: bool = False,
    ) -> None:
        """Add an exchange without bindings."""
        assert name
        assert name not in self._exchanges
        self._exchanges[name] = Exchange(name, matcher, alternate, is_internal)
        self.version += 1

    def remove(self, name: str) -> list[tuple[str, Binding]]:
        """Remove an exchange with all bindings from it and to it.

        Returns:
            The bindings to it, each with the exchange that it led from.
        """
        lost = self.unbind_all(Destination(EXCHANGE, name))
        for binding in list(self._exchanges[name].bindings):
            self.unbind(name, binding)
        del self._exchanges[name]
        self.version += 1
        return lost

    def set_alternate(self, name: str, alternate: str | None) -> None:
        """Have another exchange take what one matches nothing for; None for nobody."""
        self._exchanges[name].alternate = alternate
        self.version += 1

    def is_internal(self, name: str) -> bool:
        """Return whether an exchange takes messages from other exchanges alone."""
        return name in self._exchanges and self._exchanges[name].is_internal

    def interest(self, name: str) -> Interest | None:
        """Return what matches keys to destinations where patterns alone decide; None elsewhere."""
        exchange = self._exchanges.get(name)
        found = None if exchange is None else getattr(exchange.matcher, "interest", None)
        return found if isinstance(found, Interest) else None

    def bindings(self, name: str) -> tuple[Binding, ...]:
        """List the bindings from an exchange."""
        return tuple(self._exchanges[name].bindings)

    def bindings_to(self, destination: Destination) -> list[tuple[str, Binding]]:
        """List the bindings to a destination, each with the exchange that it leads from."""
        return list(self._leading_to.get(destination, ()))

    def find(self, source: str, binding: Binding) -> Binding | None:
        """Return the binding that is there and the same; None if there is none."""
        return self._exchanges[source].bindings.get(binding)

    def bind(self, source: str, binding: Binding) -> bool:
        """Add a binding; return whether it is new.

        Raises:
            InvalidBinding: The exchange's type does not take it.
        """
        exchange = self._exchanges[source]
        if binding in exchange.bindings:
            return False
        exchange.matcher.bind(binding)
        exchange.bindings[binding] = binding
        self._leading_to.setdefault(binding.destination, {})[source, binding] = None
        self.binding_count += 1
        self.version += 1
        return True

    def unbind(self, source: str, binding: Binding) -> bool:
        """Remove a binding; return whether it was there."""
        exchange = self._exchanges[source]
        if binding not in exchange.bindings:
            return False
        exchange.matcher.unbind(binding)
        del exchange.bindings[binding]
        leading = self._leading_to[binding.destination]
        del leading[source, binding]
        if not leading:
            del self._leading_to[binding.destination]
        self.binding_count -= 1
        self.version += 1
        return True

    def unbind_all(self, destination: Destination) -> list[tuple[str, Binding]]:
        """Remove all bindings to a destination; return them, each with its exchange."""
        lost = self.bindings_to(destination)
        for source, binding in lost:
            self.unbind(source, binding)
        return lost

    def route(self, name: str, message: Routed) -> Route:
        """Find the queues that a message which comes to an exchange goes to."""
        queues: dict[str, None] = {}
        forwards: ForwardsFound | None = None
        seen = {name}
        waiting = [name]
        is_by_key = True
        while waiting:
            source = waiting.pop()
            found, by_key = self._step(source, message)
            is_by_key = is_by_key and by_key
            for kind, target in found:
                if kind == QUEUE:
                    queues[target] = None
                elif kind == CONTAINER:
                    forwards = forwards or ForwardsFound()
                    forwards.note(source, target)
                elif target not in seen:
                    seen.add(target)
                    waiting.append(target)
        return Route(tuple(queues), is_by_key, () if forwards is None else forwards.all())

    def _step(self, name: str, message: Routed) -> tuple[list[Destination], bool]:
        """Return where one exchange sends a message, and whether its key alone says so."""
        if name == DEFAULT:
            return [Destination(QUEUE, _text(key)) for key in message.keys], True
        exchange = self._exchanges.get(name)
        if exchange is None:  # an alternate exchange that is not there, or not yet
            return [], True
        found = list(exchange.matcher.match(message))
        if not found and exchange.alternate is not None:
            found = [Destination(EXCHANGE, exchange.alternate)]
        return found, exchange.matcher.is_by_key


def _text(key: bytes) -> str:
    """Return the queue that a key names."""
    return key.decode(errors="surrogateescape")
