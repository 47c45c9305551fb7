"""Which engines a stream may have that somebody declares while the container runs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from hosted import LISTEN, Hosted

from cogwork.cluster.declarations import Declaration
from cogwork.container.engine_checks import demand_installed
from cogwork.container.settings import Configuration, Engine
from cogwork.container.stream_declarations import StreamDeclarations
from cogwork.spi.management import ManagementError

if TYPE_CHECKING:
    from cogwork.cluster.declarations import Value

PATH = "this:Host"
"""A module that nothing else imports, and that prints a poem once it is."""


def test_who_declares_a_stream_has_nothing_imported() -> None:
    view = Hosted().container.vhosts[""].view
    assert view is not None
    with pytest.raises(ManagementError, match="there is no engine 'this:Host'"):
        view.declare_stream("stream/a", {"engine": PATH})
    assert view.stream("stream/a") is None
    assert "this" not in sys.modules


def test_an_engine_that_the_configuration_names_is_there() -> None:
    configuration = Configuration(id="a", listeners=[LISTEN], engines=[Engine(name=PATH)])
    kinds = Hosted(configuration).container.engines.kinds
    demand_installed(kinds, {"engine": PATH})
    demand_installed(kinds, {})


@pytest.mark.parametrize("replicas", [3, ["a", "b"], "many"])
def test_an_option_of_the_engine_may_be_called_like_one_of_ours(replicas: Value) -> None:
    declarations = StreamDeclarations(Hosted().container.vhosts[""])
    options: dict[str, Value] = {"engine": "nats", "replicas": replicas, "retention_s": 60.0}
    declarations.follow(Declaration(1, "stream", "", "orders", options))
    stream = declarations.stream("stream/orders")
    assert stream is not None
    assert stream.options.rest == {"replicas": replicas, "retention_s": 60.0}
