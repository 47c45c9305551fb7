"""Keeps a stale build from shadowing edited sources.

A compiled module carries the digest of the sources it was built from: its own `.py` and `.pxd`, and
every `.pxd` that these take declarations from; `setup.py` has it computed here. Where the sources
lie beside a module, the digest is computed again when it is loaded. Every file is read once by a
process, as most modules take the same declarations.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ("check", "inputs", "load", "source_hash")

PACKAGE_ROOT = Path(__file__).resolve().parent
DIGEST_LENGTH = 16

CIMPORT = re.compile(rb"\n(?:from|cimport) (?:cython\.cimports\.)?cogwork\.([\w.]+)")
"""A module whose declarations another one uses; ordinary imports have none, and do no harm here.
With the end of a line in front it is found in a tenth of the time that `^` takes."""

_REBUILD = "build it with `make build` (or `pip install --editable .`)"


def load(name: str) -> ModuleType:
    """Import a compiled module.

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
    """Compare a compiled module with its sources, where they are there.

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
    newer = [path.name for path in inputs(source) if path.stat().st_mtime > built_at]
    changed = ", ".join(newer) or f"{source.name} or a .pxd file"
    raise ImportError(
        f"{module.__name__} is older than {changed}: {_REBUILD}", name=module.__name__
    )


def source_hash(source: Path) -> str:
    """Return the digest of a module's source and of the declarations it is compiled with."""
    digest = hashlib.sha256()
    for path in _inputs(source):
        digest.update(_content(path) or b"")
    return digest.hexdigest()[:DIGEST_LENGTH]


def inputs(source: Path) -> list[Path]:
    """List a module's source and the declarations that it is compiled with."""
    return [Path(path) for path in _inputs(source)]


def _inputs(source: Path) -> list[str]:
    """List them as text: most processes go through all modules, and `Path` takes its time."""
    found: set[str] = set()
    waiting = [str(source), str(source.with_suffix(".pxd"))]
    while waiting:
        path = waiting.pop()
        if path not in found and _content(path) is not None:
            found.add(path)
            waiting += _declarations(path)
    return sorted(found, key=_parts)


@cache
def _parts(path: str) -> list[str]:
    return path.split("/")


@cache
def _declarations(path: str) -> list[str]:
    names = CIMPORT.findall(b"\n" + (_content(path) or b""))
    return [f"{PACKAGE_ROOT}/{name.decode().replace('.', '/')}.pxd" for name in names]


@cache
def _content(path: str) -> bytes | None:
    """Return what is in a file; None where there is none."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        return None
