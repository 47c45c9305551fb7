"""What eventlet has patched, and the way around it.

In a program that is patched for green threads, locks, sockets and `select` belong to a hub, each
to the one of its own native thread. What the driver's thread and an application's threads share
must not: it is made of the originals.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

__all__ = ("is_patched", "original")


def is_patched() -> bool:
    """Return whether this program's threads are green ones."""
    patcher = sys.modules.get("eventlet.patcher")
    return patcher is not None and bool(patcher.is_monkey_patched("thread"))


def original(name: str) -> Any:  # noqa: ANN401  # a module
    """Return a module of the standard library as it was before it was patched."""
    if not is_patched():
        return importlib.import_module(name)
    return sys.modules["eventlet.patcher"].original(name)
