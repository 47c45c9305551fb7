"""Builds the compiled modules: every `.py` file below `src/cogwork` that has a `.pxd` beside it."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from Cython.Build import cythonize
from setuptools import Extension, setup

if TYPE_CHECKING:
    from types import ModuleType

SOURCE_ROOT = Path("src")
COLD = {
    "addresses/checkpoint",
    "addresses/drain",
    "addresses/interest",
    "addresses/forwarding",
    "addresses/lost_branch",
    "addresses/space",
    "client/claims",
    "queue/journal_image",
    "queue/dead_letter_dedup",
    "queue/restoration",
}
"""Modules with no work for an ordinary message: optimised less, they compile in half the time."""

IS_COMPILED = os.environ.get("COGWORK_COMPILED") == "1"
"""Whether the modules lie beside their sources already, and only the package is to be installed."""

IS_DESCRIBED = bool({"sdist", "egg_info", "dist_info"} & set(sys.argv))
"""Whether files are only listed or packed: nothing is translated to C for that."""

SANITIZE = os.environ.get("COGWORK_SANITIZE") == "1"


def freshness() -> ModuleType:
    """Loads `cogwork.freshness` by its path: the package itself cannot be imported unbuilt."""
    spec = importlib.util.spec_from_file_location("freshness", SOURCE_ROOT / "cogwork/freshness.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def extension(source: Path) -> Extension:
    """Describes the extension module built from `source`."""
    parts = source.relative_to(SOURCE_ROOT).with_suffix("").parts
    level = "-O1" if "/".join(parts[-2:]) in COLD else "-O3"
    flags = [level, "-g0", "-fno-strict-aliasing", "-Wno-unused-function"]
    links: list[str] = []
    if SANITIZE:
        # Compiles in half the time of -O1 -g; a report still names functions and lines.
        flags = ["-Og", "-g1", "-fsanitize=address,undefined", "-fno-omit-frame-pointer"]
        links = ["-fsanitize=address,undefined"]
    return Extension(
        ".".join(parts),
        [str(source)],
        depends=[str(path) for path in FRESHNESS.inputs(source.resolve())],
        define_macros=[("COGWORK_SOURCE_HASH", f'"{FRESHNESS.source_hash(source.resolve())}"')],
        extra_compile_args=flags,
        extra_link_args=links,
    )


def compiled_sources() -> list[Path]:
    """Lists the modules to compile."""
    return sorted(
        declaration.with_suffix(".py")
        for declaration in SOURCE_ROOT.rglob("*.pxd")
        if declaration.with_suffix(".py").exists()
    )


FRESHNESS = freshness()

setup(
    options={"build_ext": {"parallel": os.cpu_count()}},
    ext_modules=[]
    if IS_COMPILED or IS_DESCRIBED
    else cythonize(
        [extension(source) for source in compiled_sources()],
        nthreads=os.cpu_count() or 1,
        build_dir="build/cython",
        include_path=[str(SOURCE_ROOT)],
        compiler_directives={
            "language_level": 3,
            "boundscheck": False,
            "wraparound": False,
            "initializedcheck": False,
            "cdivision": True,
            "embedsignature": True,
        },
    ),
)
