"""One broker and a few peer processes for the whole run."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

import cogwork

from .broker import OTHER_BROKER, Settings, prepare, running
from .peer import Peer

PEERS = Path(__file__).parent / "peers"
CACHE = Path(__file__).parents[2] / "build" / "interop"
NPM_TIMEOUT_S = 100
UNREACHABLE = (
    "ENOTFOUND",
    "ECONNREFUSED",
    "ECONNRESET",
    "ETIMEDOUT",
    "EAI_AGAIN",
    "ENETUNREACH",
    "ERR_SOCKET_TIMEOUT",
)

GetPeer: TypeAlias = Callable[[str, str], Peer]
"""Returns the process of a peer, by name and role; two roles are two processes, working at once."""


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """A running broker."""
    if OTHER_BROKER not in os.environ and importlib.util.find_spec("cogwork.cli.main") is None:
        pytest.skip("this tree has no container yet")
    settings = prepare(tmp_path_factory.mktemp("broker"))
    with running(settings):
        yield settings


@pytest.fixture(scope="session")
def peer(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[GetPeer]:
    """Starts each peer process when it is first asked for, and keeps it."""
    folder = tmp_path_factory.mktemp("peers")
    processes: dict[tuple[str, str], Peer] = {}

    def get(name: str, role: str) -> Peer:
        if (name, role) not in processes:
            modules = str(request.getfixturevalue("node_modules")) if name == "rhea" else ""
            environment = {**os.environ, "NODE_PATH": modules}
            log = folder / f"{name}-{role}.log"
            processes[name, role] = Peer(f"{name} ({role})", program(name, role), log, environment)
        return processes[name, role]

    yield get
    for process in processes.values():
        process.close()


def program(name: str, role: str) -> list[str]:
    """Returns the command that starts a peer."""
    if name == "rhea":
        return ["node", str(PEERS / "rhea_peer.js")]
    if name == "cogwork" and role != "codec" and not hasattr(cogwork, "connect"):
        pytest.skip("this tree has no client yet")
    return [sys.executable, "-X", "dev", str(PEERS / f"{name}_peer.py")]


@pytest.fixture(scope="session")
def node_modules() -> Path:
    """The folder with rhea and ws; both are fetched once into `build/interop`."""
    manifest, installed = PEERS / "package.json", CACHE / "package.json"
    if not shutil.which("npm") or not shutil.which("node"):
        pytest.skip("rhea is not tested: node and npm are not installed")
    if not installed.exists() or installed.read_bytes() != manifest.read_bytes():
        _install(manifest)
        shutil.copy(manifest, installed)  # last: it says that the installation is complete
    return CACHE / "node_modules"


def _install(manifest: Path) -> None:
    fresh = CACHE / "fresh"
    fresh.mkdir(parents=True, exist_ok=True)
    shutil.copy(manifest, fresh / "package.json")
    command = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"]
    try:
        done = subprocess.run(
            command, cwd=fresh, capture_output=True, text=True, timeout=NPM_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"rhea is not tested: npm's registry did not answer within {NPM_TIMEOUT_S} s")
    for line in done.stderr.splitlines():
        if any(code in line for code in UNREACHABLE):
            pytest.skip(f"rhea is not tested: npm cannot reach its registry: {line}")
    assert done.returncode == 0, f"npm install failed: {done.stderr}"
    shutil.rmtree(CACHE / "node_modules", ignore_errors=True)
    (fresh / "node_modules").rename(CACHE / "node_modules")
    shutil.rmtree(fresh)
