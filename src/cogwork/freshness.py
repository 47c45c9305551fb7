"""Keeps a stale build from shadowing edited sources.

A compiled module carries the digest of the sources it was built from: its own `.py` and every
`.pxd` of the package, as `setup.py` computes it. Where the sources lie beside it, the digest is
computed again when the module is loaded.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ("check", "load", "source_hash")

PACKAGE_ROOT = Path(__file__).parent
DIGEST_LENGTH = 16

_REBUILD = "build it with `make build` (or `pip install --editable .`)"


def load(name: str) -> ModuleType:
    """Imports a compiled module.

    Args:
        name: Its full name.

    Raises:
        ImportError: It was not built, or its sources have changed since.
    """
    spec = importlib.util.find_spec(name)
    if spec is not None and (spec.origin or "").endswith(".py"):
        raise ImportError(f"{name} is a compiled module that is not built: {_REBUILD}", name=name)
    module = importlib.import_module(name)
    check(module)
    return module


def check(module: ModuleType) -> None:
    """Compares a compiled module with its sources, where they are there.

    Args:
        module: It has the global `SOURCE_HASH`.

    Raises:
        ImportError: The sources have changed since the build; those that did are named.
    """
    built = Path(module.__file__ or "")
    source = built.with_name(module.__name__.rpartition(".")[2] + ".py")
    if not source.exists() or source_hash(source) == module.SOURCE_HASH:
        return
    built_at = built.stat().st_mtime
    newer = [path.name for path in _inputs(source) if path.stat().st_mtime > built_at]
    changed = ", ".join(newer) or f"{source.name} or a .pxd file"
    raise ImportError(
        f"{module.__name__} is older than {changed}: {_REBUILD}", name=module.__name__
    )


def source_hash(source: Path) -> str:
    """Returns the digest of a module's source and all declarations of the package."""
    digest = hashlib.sha256()
    for path in _inputs(source):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:DIGEST_LENGTH]


def _inputs(source: Path) -> list[Path]:
    return [source, *sorted(PACKAGE_ROOT.rglob("*.pxd"))]
