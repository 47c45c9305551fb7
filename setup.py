"""Builds the compiled modules: every `.py` file below `src/cogwork` that has a `.pxd` beside it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

SOURCE_ROOT = Path("src")
SANITIZE = os.environ.get("COGWORK_SANITIZE") == "1"


def source_hash(source: Path) -> str:
    """Returns the digest that `cogwork.freshness` compares: the module and all declarations."""
    digest = hashlib.sha256(source.read_bytes())
    for declaration in sorted(SOURCE_ROOT.rglob("*.pxd")):
        digest.update(declaration.read_bytes())
    return digest.hexdigest()[:16]


def extension(source: Path) -> Extension:
    """Describes the extension module built from `source`."""
    flags = ["-O3", "-fno-strict-aliasing", "-Wno-unused-function"]
    links: list[str] = []
    if SANITIZE:
        flags = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-omit-frame-pointer"]
        links = ["-fsanitize=address,undefined"]
    return Extension(
        ".".join(source.relative_to(SOURCE_ROOT).with_suffix("").parts),
        [str(source)],
        depends=[str(declaration) for declaration in sorted(SOURCE_ROOT.rglob("*.pxd"))],
        define_macros=[("COGWORK_SOURCE_HASH", f'"{source_hash(source)}"')],
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


setup(
    ext_modules=cythonize(
        [extension(source) for source in compiled_sources()],
        build_dir="build/cython-sanitized" if SANITIZE else "build/cython",
        include_path=[str(SOURCE_ROOT)],
        compiler_directives={
            "language_level": 3,
            "boundscheck": False,
            "wraparound": False,
            "initializedcheck": False,
            "cdivision": True,
            "embedsignature": True,
        },
    )
)
