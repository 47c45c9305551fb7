"""The optional capabilities of nodes, and the page that lists them."""

from __future__ import annotations

import re
from pathlib import Path

from cogwork.plugin import capabilities
from cogwork.plugin.capabilities import CAPABILITIES, replica_of
from cogwork.plugin.node import Node

PAGE = Path(__file__).parents[3] / "docs" / "nodes.md"


def test_every_capability_is_listed_and_is_a_nodes() -> None:
    there = [each for each in vars(capabilities).values() if isinstance(each, type)]
    own = [each for each in there if each.__module__ == capabilities.__name__]
    assert set(CAPABILITIES) == set(own)
    assert all(Node in each.__mro__ for each in CAPABILITIES)


def test_the_page_lists_every_capability_and_what_it_adds_to() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .* \| .*?(?:is `(\w+)`, too )?\|$", PAGE.read_text(), re.M)
    own = set(CAPABILITIES)
    expected = [
        (each.__name__, next((base.__name__ for base in each.__mro__[1:] if base in own), ""))
        for each in CAPABILITIES
    ]
    assert [row for row in rows if row[0] in vars(capabilities)] == expected


def test_what_is_no_replicated_node_has_no_replica() -> None:
    assert replica_of(None) is None
    assert replica_of(object()) is None
