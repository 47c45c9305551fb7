"""Engines come through entry points, or by import path."""

import pytest

from cogwork.engines.orb import OrbHost
from cogwork.engines.registry import engines, factory_of
from cogwork.plugin.engine.contract import EngineContext
from cogwork.plugins import PluginError, load


def test_the_built_in_engine_is_installed() -> None:
    assert "orb" in engines()
    factory = factory_of("orb")
    assert factory is not None
    assert isinstance(factory(EngineContext()), OrbHost)


def test_a_built_in_engine_is_found_without_looking_through_all_that_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", None)
    assert load("cogwork.engines", "orb", "engine") is OrbHost


def test_an_engine_may_be_named_by_its_path() -> None:
    assert factory_of("cogwork.engines.orb:OrbHost") is OrbHost


def test_an_engine_that_is_not_installed_is_none() -> None:
    assert factory_of("abacus") is None


def test_an_engine_that_cannot_be_loaded_is_told() -> None:
    with pytest.raises(PluginError, match="engine 'nowhere:Host' cannot be loaded"):
        factory_of("nowhere:Host")
