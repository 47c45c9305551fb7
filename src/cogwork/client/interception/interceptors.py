"""Several interceptors as one: the first begins first, and ends last."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Self, TypeVar

from cogwork.client.interception.interceptor import (
    Delivery,
    Ending,
    Interceptor,
    MethodRun,
    OutgoingCall,
    Publication,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cogwork.dataplane.message.messages import Message

__all__ = ("Endings", "Interceptors")

T = TypeVar("T")

log = logging.getLogger("cogwork.client")


class Endings:
    """What is called when something is over: once, with what went wrong; `with` does it, too."""

    __slots__ = ("_endings",)

    def __init__(self) -> None:
        """Have nobody to tell."""
        self._endings: list[Ending] = []

    def begin(self, hooks: Iterable[Callable[[T], Ending | None]], what: T) -> Self:
        """Call hooks, and keep what they return.

        Where one raises, those before it hear of that.
        """
        try:
            for hook in hooks:
                if (ending := hook(what)) is not None:
                    self._endings.append(ending)
        except BaseException as error:
            self(error)
            raise
        return self

    def __call__(self, error: BaseException | None) -> None:
        """Tell all that it is over, the last one first."""
        endings, self._endings = self._endings, []
        for ending in reversed(endings):
            try:
                ending(error)
            except Exception:
                log.exception("an interceptor failed")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self(error)


class Interceptors(tuple[Interceptor, ...]):
    """The interceptors of one client, in the order in which they were given."""

    __slots__ = ()

    def and_also(self, more: Iterable[Interceptor]) -> Interceptors:
        """Return these and more.

        Raises:
            TypeError: One is no interceptor.
        """
        found = tuple(more)
        for each in found:
            if not isinstance(each, Interceptor):
                raise TypeError(f"an Interceptor is expected, not {each!r:.80}")
        return Interceptors((*self, *found))

    def publish(
        self, address: str, messages: Sequence[Message], *, settled: bool = False
    ) -> Endings:
        """Messages are about to be sent."""
        hooks = [each.publish for each in self]
        return Endings().begin(hooks, Publication(address, messages, settled))

    def deliver(self, address: str, messages: Sequence[Message]) -> Endings:
        """Messages are handed over; what hooks raise must not lose them."""
        endings = Endings()
        for each in self:
            try:
                endings.begin([each.deliver], Delivery(address, messages))
            except Exception:
                log.exception("an interceptor failed")
        return endings

    def call(self, call: OutgoingCall) -> Endings:
        """A method is about to be called."""
        return Endings().begin([each.call for each in self], call)

    def method(self, run: MethodRun) -> Endings:
        """A method is about to run."""
        return Endings().begin([each.method for each in self], run)
