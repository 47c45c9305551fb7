"""Modules and names that have moved: what documentation once gave still imports, with a warning.

An import of an old name gives the very module of the new name, so a class is the same whichever
name it was imported by.
"""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from importlib.abc import Loader
    from types import ModuleType

__all__ = ("MOVED", "RENAMED", "install", "renamed")

MOVED = {
    "cogwork.analytics": "cogwork.pipeline.analytics",
    "cogwork.archive": "cogwork.pipeline.archive",
    "cogwork.arrow": "cogwork.pipeline.arrow",
    "cogwork.audit": "cogwork.pipeline.audit",
    "cogwork.client.browser": "cogwork.client.receiving.consumer",
    "cogwork.client.consumer": "cogwork.client.receiving.consumer",
    "cogwork.client.publisher": "cogwork.client.publishing.publisher",
    "cogwork.client.rpc": "cogwork.rpc",
    "cogwork.client.subscription": "cogwork.client.receiving.subscription",
    "cogwork.consensus": "cogwork.plugin.engine",
    "cogwork.consensus.conformance": "cogwork.plugin.conformance.engines",
    "cogwork.consensus.engine": "cogwork.plugin.engine.contract",
    "cogwork.consensus.shared": "cogwork.engines.shared",
    "cogwork.nodes.queue.dead_letters": "cogwork.plugin.dead_letters",
    "cogwork.spark": "cogwork.pipeline.spark",
    "cogwork.spi": "cogwork.plugin",
    "cogwork.spi.conformance": "cogwork.plugin.conformance.nodes",
}
"""New names by old ones; what lies below an old name lies below the new one."""

RENAMED = {
    "cogwork.Mesh": "cogwork.Client",
    "cogwork.client.Mesh": "cogwork.client.Client",
    "cogwork.client.BadArguments": "cogwork.rpc.BadArguments",
    "cogwork.client.BadReply": "cogwork.rpc.BadReply",
    "cogwork.client.CallCancelled": "cogwork.rpc.CallCancelled",
    "cogwork.client.Expired": "cogwork.rpc.Expired",
    "cogwork.client.NoSuchMethod": "cogwork.rpc.NoSuchMethod",
    "cogwork.client.NotBegun": "cogwork.rpc.NotBegun",
    "cogwork.client.RemoteError": "cogwork.rpc.RemoteError",
    "cogwork.client.ReplyTooLarge": "cogwork.rpc.ReplyTooLarge",
    "cogwork.client.ServerLost": "cogwork.rpc.ServerLost",
    "cogwork.client.ServersBusy": "cogwork.rpc.ServersBusy",
    "cogwork.client.Unreachable": "cogwork.rpc.Unreachable",
    "cogwork.client.Unserialisable": "cogwork.rpc.Unserialisable",
    "cogwork.client.current_call": "cogwork.rpc.current_call",
    "cogwork.pipeline.audit.Witness": "cogwork.pipeline.audit.DeliveryRecorder",
    "cogwork.sync.Mesh": "cogwork.sync.Client",
}
"""New names of classes by old ones. Each module that an old one was in has `renamed` look it up."""


class MovedFinder:
    """Finds a module by the name it had before it moved."""

    @staticmethod
    def find_spec(name: str, *_: object) -> ModuleSpec | None:
        """Return how to import an old name; None where the name is no old one."""
        new = new_name(name)
        return ModuleSpec(name, cast("Loader", MovedLoader(new))) if new else None


class MovedLoader:
    """Loads a module by its new name, and has the old one mean the same module."""

    def __init__(self, new: str) -> None:
        self._new = new
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Import the module by its new name, and warn whoever imports the old one."""
        module = import_module(self._new)
        warnings.warn(
            f"{spec.name} has moved: import {self._new}", DeprecationWarning, stacklevel=2
        )
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module as it is: it ran under its new name."""
        module.__spec__ = self._spec


def new_name(name: str) -> str | None:
    """Return where the module of an old name is now; None where the name is no old one."""
    old, below = name, ""
    while old not in MOVED:
        old, dot, last = old.rpartition(".")
        if not dot:
            return None
        below = f".{last}{below}"
    return MOVED[old] + below


def install() -> None:
    """Have imports of old names found.

    This finder comes first: an old package has the path of the new one, where Python's own finder
    would load its modules a second time.
    """
    sys.meta_path.insert(0, MovedFinder)


def renamed(module: str, name: str) -> object:
    """Return what a module had by a name that has changed since: call it in its `__getattr__`.

    Args:
        module: The module's name.
        name: What is missing there.

    Raises:
        AttributeError: It never had that name.
    """
    old = f"{module}.{name}"
    if old not in RENAMED:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    new = RENAMED[old]
    # The caller's caller is who uses the old name.
    warnings.warn(f"{old} was renamed: import {new}", DeprecationWarning, stacklevel=3)
    owner, _, attribute = new.rpartition(".")
    return getattr(import_module(owner), attribute)
