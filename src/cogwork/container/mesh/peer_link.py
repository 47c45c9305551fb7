"""The two connections that make a link of the mesh."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cogwork.container.mesh.control_connection import ControlConnection
    from cogwork.container.mesh.data_connection import DataConnection
    from cogwork.container.mesh.dialler import LinkDialler

__all__ = ("PeerLink",)


@dataclass(slots=True, eq=False)
class PeerLink:
    """A link: one connection for what neighbours tell each other, one for everything else.

    Attributes:
        number: What the protocol knows it by; later ones are higher.
        control: The connection for the protocol.
        data: The connection for tunnels.
        dialler: Who dialled; None where the other container did.
        since_s: Since when it stands, by the wall clock.
        was_up: Whether it has ever been in use.
        is_duplicate: Whether it ended because there is another one to the same container.
        why_lost: What was said when it ended.
        lost: Set once it has ended.
    """

    number: int
    control: ControlConnection
    data: DataConnection
    dialler: LinkDialler | None
    since_s: float = field(default_factory=time.time)
    was_up: bool = False
    is_duplicate: bool = False
    why_lost: str | None = None
    lost: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def peer(self) -> str:
        """The other container's id."""
        return self.control.peer
