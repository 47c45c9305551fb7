"""One broker and a few peer processes for the whole run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from .broker import Settings, prepare, running
from .node import Node, UnreachableError, prepared
from .peer import Peer

PEERS = Path(__file__).parent / "peers"

GetPeer: TypeAlias = Callable[[str, str], Peer]
"""Returns the process of a peer, by name and role; two roles are two processes, working at once."""


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """A running broker."""
    settings = prepare(tmp_path_factory.mktemp("broker"))
    with running(settings):
        yield settings


@pytest.fixture(scope="session")
def peer(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[GetPeer]:
    """Start each peer process when it is first asked for, and keep it."""
    folder = tmp_path_factory.mktemp("peers")
    processes: dict[tuple[str, str], Peer] = {}

    def get(name: str, role: str) -> Peer:
        if (name, role) not in processes:
            command, environment = program(name, request)
            log = folder / f"{name}-{role}.log"
            processes[name, role] = Peer(f"{name} ({role})", command, log, environment)
        return processes[name, role]

    yield get
    for process in processes.values():
        process.close()


def program(name: str, request: pytest.FixtureRequest) -> tuple[list[str], dict[str, str]]:
    """Return the command that starts a peer, and its environment."""
    if name != "rhea":
        return [sys.executable, "-X", "dev", str(PEERS / f"{name}_peer.py")], dict(os.environ)
    node: Node = request.getfixturevalue("node")
    environment = {**os.environ, "NODE_PATH": str(node.modules)}
    return [node.node, str(PEERS / "rhea_peer.js")], environment


@pytest.fixture(scope="session")
def node() -> Node:
    """Node.js with rhea and ws."""
    try:
        return prepared()
    except UnreachableError as error:
        pytest.skip(f"rhea is not tested: {error}")
