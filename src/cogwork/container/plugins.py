"""Which kinds of nodes there are: built in, installed with an entry point, or named by import path.

All come through the same door: the entry-point group `cogwork.nodes`.
"""

from __future__ import annotations

import importlib
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, cast

from cogwork.amqp.errors import CogworkError

if TYPE_CHECKING:
    from cogwork.spi.node import NodeFactory

__all__ = ("PREFIX_KINDS", "PluginError", "factory_of", "kinds")

GROUP = "cogwork.nodes"

PREFIX_KINDS = frozenset({"topic"})
"""Kinds of which one node serves every address below its prefix."""


class PluginError(CogworkError):
    """A node kind that cannot be loaded."""


@cache
def factory_of(kind: str) -> NodeFactory | None:
    """Returns what makes nodes of a kind; None where no such kind is installed.

    Args:
        kind: An entry point's name, or `package.module:Class`.

    Raises:
        PluginError: It is there but cannot be loaded.
    """
    if ":" in kind:
        return _load_path(kind)
    for point in entry_points(group=GROUP, name=kind):
        try:
            return cast("NodeFactory", point.load())
        except Exception as error:
            raise PluginError(
                f"node kind {kind!r} ({point.value}) cannot be loaded: {error}"
            ) from error
    return None


def _load_path(path: str) -> NodeFactory:
    module_name, _, attribute = path.partition(":")
    try:
        return cast("NodeFactory", getattr(importlib.import_module(module_name), attribute))
    except Exception as error:
        raise PluginError(
            f"node kind {path!r} cannot be loaded: {error}; package.module:Class is expected"
        ) from error


def kinds() -> list[str]:
    """Lists the kinds that are installed."""
    return sorted({point.name for point in entry_points(group=GROUP)})
