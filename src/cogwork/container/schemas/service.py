"""Schemas at the edge of a virtual host: rules, the registry, and who checks, put together."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from cogwork.container.schemas.checker import Checker
from cogwork.container.schemas.follower import Follower
from cogwork.container.schemas.guards import Guards

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogwork.config.settings import Schema
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.dataplane.addresses.checkpoint import Checkpoint

__all__ = ("CheckThreads", "Schemas")


class CheckThreads:
    """The thread that checks what takes long; started with the first such message."""

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None

    def __call__(self) -> ThreadPoolExecutor:
        """Return it."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(1, thread_name_prefix="schema")
        return self._threads

    def close(self) -> None:
        """Let it end after the message that it is at."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None


class Schemas:
    """Owned by the container, one for each virtual host.

    Attributes:
        guards: Which addresses are held to schemas.
        checker: Looks at their messages.
        follower: Knows what is registered.
    """

    def __init__(self, vhost: VirtualHost, rules: Iterable[Schema], threads: CheckThreads) -> None:
        """Read nothing yet.

        Args:
            vhost: Whose publishers are held to schemas.
            rules: `[[schema]]`.
            threads: For what takes long.
        """
        self.guards = Guards(rules)
        self.checker = Checker(vhost.core, self.guards, threads)
        self.follower = Follower(vhost, self.checker.know)

    def start(self) -> None:
        """Begin to read what is registered, where any address is held to it."""
        if self.guards.is_any:
            self.follower.start()

    def take_rules(self, rules: Iterable[Schema]) -> None:
        """Go by other rules from now on; link that stand and were free stay so."""
        self.guards.replace(rules)
        self.start()

    def checkpoint_of(self, address: str | None) -> Checkpoint | None:
        """Return where a publisher's messages stop; None where they need not.

        Args:
            address: Where they go; None where each names its own.
        """
        if not self.guards.is_any:
            return None
        if address is not None and not self.guards[address.encode()]:
            return None
        self.follower.start()
        return self.checker.checkpoint

    def close(self) -> None:
        """Check no more."""
        self.checker.close()
        self.follower.close()

    async def closed(self) -> None:
        """Check no more, and has let the stream go."""
        self.close()
        await self.follower.closed()

    @property
    def holds_any(self) -> bool:
        """Whether messages are held to schemas that somebody has registered."""
        return self.guards.is_any and bool(self.checker.registry)

    def facts(self) -> dict[str, object] | None:
        """Return what people see, in plain values; None where nothing is held to schemas."""
        if not self.guards.is_any:
            return None
        checker, registry = self.checker, self.checker.registry
        return {
            "is_current": registry is not None,
            "problem": self.follower.problem,
            "registered": len(registry) if registry is not None else 0,
            "next": self.follower.next,
            "ignored": self.follower.ignored,
            "checked": checker.checked,
            "rejected": checker.rejected,
            "dropped": checker.dropped,
        }
