"""Which kinds of nodes there are: built in, installed with an entry point, or named by import path.

All come through the same door: the entry-point group `cogwork.nodes`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, cast

from cogwork.plugins import PluginError, load, names

if TYPE_CHECKING:
    from cogwork.plugin.node import NodeFactory

__all__ = ("PluginError", "factory_of", "kinds", "provides", "serves_prefix")

GROUP = "cogwork.nodes"


@cache
def factory_of(kind: str) -> NodeFactory | None:
    """Return what makes nodes of a kind; None where no such kind is installed.

    Args:
        kind: An entry point's name, or `package.module:Class`.

    Raises:
        PluginError: It is there but cannot be loaded.
    """
    return cast("NodeFactory | None", load(GROUP, kind, "node kind"))


@cache
def provides(kind: str, capability: type) -> bool:
    """Return whether nodes of a kind have a capability, while there may be none of them yet.

    Args:
        kind: As for `factory_of`.
        capability: One of `cogwork.plugin.capabilities`.

    Returns:
        False, too, if there is no such kind or its factory is no class.
    """
    factory = _class_of(kind)
    return factory is not None and issubclass(factory, capability)


@cache
def serves_prefix(kind: str) -> bool:
    """Return whether one node of a kind serves every address below its prefix."""
    return getattr(_class_of(kind), "serves_prefix", False) is True


def _class_of(kind: str) -> type | None:
    try:
        factory = factory_of(kind)
    except PluginError:
        return None
    return factory if isinstance(factory, type) else None


@cache
def kinds() -> tuple[str, ...]:
    """List the kinds that are installed."""
    return tuple(names(GROUP))
