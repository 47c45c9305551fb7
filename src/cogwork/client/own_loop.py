"""What becomes of a mesh that is opened twice, or used on another event loop than its own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cogwork.client.errors import Disconnected

if TYPE_CHECKING:
    from cogwork.client.mesh import Mesh

__all__ = ("demand_loop_of", "opened_before")


def demand_loop_of(mesh: Mesh) -> None:
    """Keeps somebody from waiting for good: what comes for him would wake up another loop.

    Raises:
        NotOpened: The mesh is not connected yet.
        RuntimeError: It was opened on another event loop.
    """
    mesh.flusher  # noqa: B018  # it says so where nobody has opened the mesh
    if asyncio.get_running_loop() is not mesh.turn.loop:
        raise RuntimeError(
            "the mesh was opened on another event loop: connect on each, or share "
            "cogwork.sync.connect(...), which any thread may use"
        )


def opened_before(failure: Exception | None) -> Exception:
    """Makes the error of who opens a mesh that is open, or was closed.

    Args:
        failure: Why it was closed; None while it is open.
    """
    if failure is None:
        return RuntimeError("the mesh is open already: `cogwork.connect` makes another one")
    return Disconnected(f"{failure}: `cogwork.connect` makes another one")
