"""What can be known of the kinds of nodes before one is made: their names, and that they load."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cogwork.config.problems import Problem, each
from cogwork.plugin.node_kinds import PluginError, factory_of, kinds
from cogwork.router.rules import UNAVAILABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.config.settings import Configuration, Vhost

__all__ = ("check_kind", "find_unloadable_node")

DIRECT = "direct"
"""The kind of addresses that have no node."""

_NAME = re.compile(r"[A-Za-z_][\w-]*")
_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


def check_kind(kind: str) -> Iterator[Problem]:
    """Find what is wrong with the name of a kind."""
    if _PATH.fullmatch(kind):
        return
    known = (DIRECT, UNAVAILABLE, *kinds())
    if not _NAME.fullmatch(kind) or kind not in known:
        expected = f'one of {", ".join(known)}, or "package.module:Class"'
        yield Problem(("kind",), f'"{kind:.80}"', expected)


def find_unloadable_node(configuration: Configuration) -> Problem | None:
    """Find the first kind of nodes that cannot be loaded here; None where all can."""

    def of_vhost(vhost: Configuration | Vhost) -> Iterator[Problem]:
        yield from each("address", vhost.addresses, lambda it: _loaded(it.kind))
        yield from each("node", vhost.nodes, lambda it: _loaded(it.kind))

    found = (*of_vhost(configuration), *each("vhost", configuration.vhosts, of_vhost))
    return found[0] if found else None


def _loaded(kind: str | None) -> Iterator[Problem]:
    if kind is None or kind in (DIRECT, UNAVAILABLE):
        return
    try:
        factory = factory_of(kind)
    except PluginError as error:
        found = f'"{kind:.80}", which {error.lack:.300}'
        yield Problem(("kind",), found, "a kind of nodes that can be")
    else:
        if not callable(factory):
            found = f'"{kind:.80}", which cannot be called'
            yield Problem(("kind",), found, "a class of nodes")
