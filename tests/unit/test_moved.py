"""Old names of modules: they import what is there now, and say so."""

from __future__ import annotations

import importlib
import sys
import warnings
from typing import TYPE_CHECKING

import pytest

from cogwork.moved import MOVED, RENAMED, new_name
from cogwork.plugin.node import Node

if TYPE_CHECKING:
    from types import ModuleType


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each old name imported for the first time."""
    for name in [each for each in sys.modules if new_name(each)]:
        monkeypatch.delitem(sys.modules, name)


def imported(name: str) -> tuple[ModuleType, list[str]]:
    """Return a module and what importing it warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")  # the caller looks at each of them
        module = importlib.import_module(name)
    return module, [f"{each.category.__name__}: {each.message}" for each in caught]


@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_an_old_name_gives_the_module_of_the_new_one(old: str, new: str) -> None:
    present = importlib.import_module(new)
    spec = present.__spec__
    module, warned = imported(old)
    assert module is present
    assert module.__name__ == new
    assert module.__spec__ is spec
    assert f"DeprecationWarning: {old} has moved: import {new}" in warned


def test_what_lies_below_an_old_name_is_the_same_class() -> None:
    module, warned = imported("cogwork.spi.node")
    assert module.Node is Node
    assert "DeprecationWarning: cogwork.spi.node has moved: import cogwork.plugin.node" in warned


@pytest.mark.parametrize(
    ("name", "missing"),
    [("cogwork.nowhere", "cogwork.nowhere"), ("cogwork.spi.nothing", "cogwork.plugin.nothing")],
)
def test_a_name_that_never_was_is_not_found(name: str, missing: str) -> None:
    with pytest.raises(ModuleNotFoundError) as raised:
        imported(name)
    assert raised.value.name == missing


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_an_old_name_of_a_class_gives_the_class_of_the_new_one(old: str, new: str) -> None:
    owner, _, name = old.rpartition(".")
    module = importlib.import_module(owner)
    with pytest.warns(DeprecationWarning, match=f"^{old} was renamed: import {new}$") as warned:
        found = getattr(module, name)
    assert [each.filename for each in warned] == [__file__]
    owner, _, name = new.rpartition(".")
    assert found is getattr(importlib.import_module(owner), name)
    assert name in importlib.import_module(owner).__all__


@pytest.mark.parametrize("owner", sorted({old.rpartition(".")[0] for old in RENAMED}))
def test_a_missing_name_that_never_was_is_an_attribute_error(owner: str) -> None:
    module = importlib.import_module(owner)
    with pytest.raises(AttributeError, match=f"'{owner}' has no attribute 'Nobody'"):
        _ = module.Nobody
