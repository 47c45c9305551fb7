"""A stale build is refused when it is imported."""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from cogwork import freshness
from cogwork.dataplane.encoding import decoder

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand for an installed package with one compiled module."""
    monkeypatch.setattr(freshness, "PACKAGE_ROOT", tmp_path)
    (tmp_path / "fast.py").write_text("code")
    (tmp_path / "fast.pxd").write_text("declarations")
    (tmp_path / "fast.so").write_text("binary")
    return tmp_path


def built(package: Path) -> ModuleType:
    module = ModuleType("cogwork.fast")
    module.__file__ = str(package / "fast.so")
    module.__dict__["SOURCE_HASH"] = freshness.source_hash(package / "fast.py")
    for kept in (freshness._content, freshness._declarations):
        kept.cache_clear()  # it was built by another process
    return module


def test_a_fresh_build_is_accepted(package: Path) -> None:
    freshness.check(built(package))


@pytest.mark.parametrize("name", ["fast.py", "fast.pxd"])
def test_an_edited_source_is_named(package: Path, name: str) -> None:
    module = built(package)
    (package / name).write_text("changed")
    os.utime(package / "fast.so", (1, 1))
    for other in {"fast.py", "fast.pxd"} - {name}:
        os.utime(package / other, (0, 0))
    with pytest.raises(ImportError, match=rf"cogwork.fast is older than {name}: .*make build"):
        freshness.check(module)


def test_a_source_from_the_past_is_refused_too(package: Path) -> None:
    module = built(package)
    (package / "fast.py").write_text("checked out again")
    for name in ("fast.py", "fast.pxd"):
        os.utime(package / name, (0, 0))
    with pytest.raises(ImportError, match=r"older than fast.py or a .pxd file"):
        freshness.check(module)


def test_without_sources_there_is_nothing_to_compare(package: Path) -> None:
    module = built(package)
    (package / "fast.py").unlink()
    freshness.check(module)


def test_what_was_never_built_is_refused(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (package / "fast.so").unlink()
    monkeypatch.syspath_prepend(str(package))
    assert "fast" not in sys.modules
    with pytest.raises(ImportError, match="fast is a compiled module that is not built"):
        freshness.load("fast")


def test_the_decoder_of_this_tree_is_fresh() -> None:
    assert freshness.load("cogwork.dataplane.encoding.decoder") is decoder
