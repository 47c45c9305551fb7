"""Closes what Proton's Python client leaves open.

Where a peer ends a connection first, or a test leaves one to its fate, Proton keeps the socket
until some collection of garbage much later. Python warns of it then, in whatever test that happens.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

__all__ = ("closing_sockets",)

_made: WeakSet[socket.socket] = WeakSet()
"""The sockets that Proton has made in this process."""


@contextmanager
def closing_sockets() -> Iterator[None]:
    """Close, at the end of a `with` block, the sockets that Proton made in it and that are open."""
    _watch()
    before = set(_made)
    yield
    _watch()
    for each in set(_made) - before:
        each.close()


def _watch() -> None:
    """Have each socket noted that Proton connects, once it is imported: that takes long."""
    module = sys.modules.get("proton._io")
    if module is not None and module.IO.connect.__name__ != "connect_and_note":
        module.IO.connect = staticmethod(_noting(module.IO.connect))


def _noting(connect: Callable[[Any], socket.socket]) -> Callable[[Any], socket.socket]:
    def connect_and_note(address: Any) -> socket.socket:
        made = connect(address)
        _made.add(made)
        return made

    return connect_and_note
