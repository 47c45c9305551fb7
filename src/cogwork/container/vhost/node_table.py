"""The nodes of a virtual host by their addresses, and those of them that keep items."""

from __future__ import annotations

from typing import Final

from cogwork.plugin.capabilities import Storing, Streaming
from cogwork.plugin.node import Node

__all__ = ("QUEUE_PREFIX", "STREAM_PREFIX", "NodeTable")

QUEUE_PREFIX: Final = "queue/"
STREAM_PREFIX: Final = "stream/"


class NodeTable(dict[str, Node]):
    """Nodes by address, or by prefix for those that serve one.

    Attributes:
        storing: Those that keep items: there may be thousands, and many look through them.
        changes: How many have been made or given up: who looks at all of them need not do so again.
    """

    def __init__(self) -> None:
        super().__init__()
        self.storing: dict[str, Storing] = {}
        self.changes = 0
        self._followers: list[set[str]] = []

    def __setitem__(self, key: str, node: Node) -> None:
        super().__setitem__(key, node)
        self._forget(key)
        if isinstance(node, Storing):
            self.storing[key] = node

    def __delitem__(self, key: str) -> None:
        super().__delitem__(key)
        self._forget(key)

    def follow(self) -> set[str]:
        """Return a set of all addresses, which gets each that is made or given up from now on.

        The follower takes out those that it has looked at. So one node more has nobody look at
        thousands of others, while everybody waits.
        """
        changed = set(self)
        self._followers.append(changed)
        return changed

    def stream_named(self, name: str) -> Streaming | None:
        """Return the stream that a queue's name stands for; None where it stands for none.

        The stream S is the queue S to clients of RabbitMQ, unless there is a queue of that name.
        """
        node = self.get(f"{STREAM_PREFIX}{name}")
        if not isinstance(node, Streaming) or f"{QUEUE_PREFIX}{name}" in self.storing:
            return None
        return node

    def _forget(self, key: str) -> None:
        self.changes += 1
        for changed in self._followers:
            changed.add(key)
        self.storing.pop(key, None)
