"""Which engines a stream may have that somebody declares while the container runs."""

from __future__ import annotations

import sys

import pytest
from hosted import LISTEN, Hosted

from cogwork.container.engine_checks import demand_installed
from cogwork.container.settings import Configuration, Engine
from cogwork.spi.management import ManagementError

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
