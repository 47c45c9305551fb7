"""Types of exchanges that another package brings."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cogwork.plugin.exchange_types import (
    Binding,
    Destination,
    InvalidBinding,
    PluginError,
    Routed,
    exchange_type,
    exchange_types,
)
from cogwork.plugins import BUILT_IN
from cogwork.router.exchanges.graph import ExchangeGraph

NODES = Path(__file__).parents[3] / "docs" / "nodes.md"

POINTS = """\
[cogwork.exchanges]
x-prefix = prefix_exchange:PrefixExchange
x-bent = bent_exchange:BentExchange
direct = bent_exchange:BentExchange
"""


@pytest.fixture
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install the type that the documentation shows, and one that cannot be loaded."""
    information = tmp_path / "prefixes-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: prefixes\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(POINTS)
    shown = NODES.read_text().split("## Types of exchanges")[1].split("```python\n")[1]
    (tmp_path / "prefix_exchange.py").write_text(shown.split("```")[0])
    (tmp_path / "bent_exchange.py").write_text("raise OSError('it is bent')\n")
    monkeypatch.syspath_prepend(tmp_path)
    exchange_types.cache_clear()
    yield
    exchange_types.cache_clear()
    sys.modules.pop("prefix_exchange", None)


def first(_below: int) -> int:
    return 0


@pytest.mark.usefixtures("_installed")
def test_a_foreign_type_routes_beside_the_built_in_ones() -> None:
    foreign, fanout = exchange_type("x-prefix"), exchange_type("fanout")
    assert foreign is not None
    assert fanout is not None
    graph = ExchangeGraph()
    graph.add("p", foreign({}, first))
    graph.add("f", fanout({}, first))
    graph.bind("p", Binding(Destination("queue", "q"), b"or"))
    graph.bind("p", Binding(Destination("exchange", "f"), b"order."))
    graph.bind("f", Binding(Destination("queue", "all"), b""))
    assert set(graph.route("p", Routed((b"order.new",))).queues) == {"q", "all"}
    assert graph.route("p", Routed((b"orb",))).queues == ("q",)
    with pytest.raises(InvalidBinding, match="expected a prefix"):
        graph.bind("p", Binding(Destination("queue", "q"), b""))


@pytest.mark.usefixtures("_installed")
def test_one_that_cannot_be_loaded_is_told_and_ours_are_not_replaced() -> None:
    with pytest.raises(PluginError, match=r"'x-bent' cannot be loaded .* it is bent"):
        exchange_type("x-bent")
    assert getattr(exchange_type("direct"), "__module__", "") == "cogwork.router.exchanges.direct"
    assert set(BUILT_IN["cogwork.exchanges"]) | {"x-prefix", "x-bent"} == set(exchange_types())


@pytest.mark.parametrize("name", ["", "none", "os:system", "builtins:dict"])
def test_a_client_cannot_name_what_is_not_installed(name: str) -> None:
    assert exchange_type(name) is None
