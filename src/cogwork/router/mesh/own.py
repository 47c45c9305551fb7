"""What a container is in the mesh's eyes."""

from __future__ import annotations

from dataclasses import dataclass, field

from cogwork.router.mesh.bounds import PROTOCOL_VERSION, Timers
from cogwork.router.mesh.messages import Figures, Hello
from cogwork.router.mesh.wire import check

__all__ = ("Own",)


@dataclass(slots=True, kw_only=True)
class Own:
    """This container.

    Attributes:
        id: Unique in the mesh.
        incarnation: Higher after each start: milliseconds since 1970, say. Rises while it runs
            where somebody else uses a higher one for this id.
        virtual_hosts: Its virtual hosts; all containers of a mesh have the same.
        version: Of the protocol.
        cluster: The UUID of its cluster; empty while it is in none, or does not know it.
        cluster_name: What its cluster is called; empty if it has no name.
        figures: What its hellos say of it.
        timers: How long it waits.
        life: The incarnation that it began with.

    Raises:
        ValueError: No neighbour would take a hello with these: it says which field.
    """

    id: str
    incarnation: int
    virtual_hosts: frozenset[str] = frozenset({""})
    version: int = PROTOCOL_VERSION
    cluster: str = ""
    cluster_name: str = ""
    figures: Figures = field(default_factory=Figures)
    timers: Timers = field(default_factory=Timers)
    life: int = field(init=False)

    def __post_init__(self) -> None:
        self.life = self.incarnation
        check(self.hello())

    def hello(self) -> Hello:
        """Return a hello to anybody."""
        return Hello(
            id=self.id,
            incarnation=self.incarnation,
            version=self.version,
            virtual_hosts=tuple(sorted(self.virtual_hosts)),
            interval_ms=round(self.timers.hello_s * 1000),
            figures=self.figures,
            cluster=self.cluster,
            cluster_name=self.cluster_name,
        )

    def was(self, incarnation: int) -> bool:
        """Return whether this life has had an incarnation, now or before it was raised."""
        return self.life <= incarnation <= self.incarnation
