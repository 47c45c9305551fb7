"""Which engines there are: built in, installed with an entry point, or named by import path.

All come through the same door: the entry-point group `cogwork.engines`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, cast

from cogwork.plugins import load, names

if TYPE_CHECKING:
    from cogwork.plugin.engine.contract import EngineFactory

__all__ = ("engines", "factory_of")

GROUP = "cogwork.engines"


@cache
def factory_of(engine: str) -> EngineFactory | None:
    """Return what makes hosts of an engine; None where no such engine is installed.

    Args:
        engine: An entry point's name, or `package.module:Class`.

    Raises:
        PluginError: It is there but cannot be loaded; a missing extra is named in the text.
    """
    return cast("EngineFactory | None", load(GROUP, engine, "engine"))


def engines() -> list[str]:
    """List the engines that are installed."""
    return names(GROUP)
