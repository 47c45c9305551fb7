"""What management sees of the mesh, and may change: links to neighbours, and the whole as known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("LinkRow", "MeshView")


@dataclass(frozen=True, slots=True)
class LinkRow:
    """One link of this container to a neighbour.

    Attributes:
        url: Where it leads, without the password; of one that came in, where it came from.
        direction: Who dialled: this container (`out`), or the neighbour (`in`).
        state: How far it has come.
        neighbour: The other container's id; None until it is known.
        cost: What the way over it costs.
        since_s: When it came into this state, by the wall clock.
        error: Why it is not up; None where nothing is wrong.
        bytes_in: What came over it.
        bytes_out: What went over it.
        control_bytes_in: The part of it that containers told each other, and no application.
        control_bytes_out: The same of what went over it.
        messages_in: Messages that came over it.
        messages_out: Messages that went over it.
    """

    url: str
    direction: Literal["out", "in"]
    state: Literal["up", "connecting", "refused"]
    neighbour: str | None
    cost: int
    since_s: float
    error: str | None = None
    bytes_in: int = 0
    bytes_out: int = 0
    control_bytes_in: int = 0
    control_bytes_out: int = 0
    messages_in: int = 0
    messages_out: int = 0

    @property
    def endpoint(self) -> str:
        """Host and port."""
        return self.url.rpartition("://")[2].rpartition("@")[2]


class MeshView(Protocol):
    """A container among others; one without links stands alone."""

    def links(self) -> Sequence[LinkRow]:
        """List the links of this container: configured, added and incoming ones."""

    def add_link(self, url: str, cost: int) -> None:
        """Dial another container, and go on doing so until the link is removed.

        Args:
            url: `HOST:PORT`, or `amqp[s]://[USER:PASSWORD@]HOST[:PORT]`.
            cost: What the way over it costs.

        Raises:
            Refused: The URL is none, leads here, or is that of another link.
        """

    def remove_link(self, url: str) -> None:
        """Close a link that is dialled from here, and dial no more.

        Args:
            url: As for `add_link`; user and password do not matter.

        Raises:
            KeyError: There is none.
        """

    def leave(self) -> None:
        """Have this container leave: clients and items go to others, then it stops."""

    def snapshot(self) -> dict[str, object]:
        """Return what this container knows of the mesh, in plain values.

        There are `id`, `incarnation`, `links`, `containers` and `shards`, see
        `cogwork.router.mesh.view`; and `leaving`: how far it is with that, or None.
        """
