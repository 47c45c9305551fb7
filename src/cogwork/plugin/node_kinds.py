"""Which kinds of nodes there are: built in, installed with an entry point, or named by import path.

All come through the same door: the entry-point group `cogwork.nodes`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, cast

from cogwork.plugins import PluginError, load, names

if TYPE_CHECKING:
    from cogwork.plugin.node import NodeFactory

__all__ = ("PREFIX_KINDS", "PluginError", "factory_of", "kinds")

GROUP = "cogwork.nodes"

PREFIX_KINDS = frozenset({"topic"})
"""Kinds of which one node serves every address below its prefix."""


@cache
def factory_of(kind: str) -> NodeFactory | None:
    """Returns what makes nodes of a kind; None where no such kind is installed.

    Args:
        kind: An entry point's name, or `package.module:Class`.

    Raises:
        PluginError: It is there but cannot be loaded.
    """
    return cast("NodeFactory | None", load(GROUP, kind, "node kind"))


@cache
def kinds() -> tuple[str, ...]:
    """Lists the kinds that are installed."""
    return tuple(names(GROUP))
