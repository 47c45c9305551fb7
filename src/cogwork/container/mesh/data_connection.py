"""The connection on which tunnels run: sessions that end here, are passed on, or begin here."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, cast

from cogwork.container.mesh.connection import SETTINGS, MeshConnection
from cogwork.dataplane.queue.upstream_link import UpstreamLink
from cogwork.dataplane.transport.incoming import IncomingLink

if TYPE_CHECKING:
    from cogwork.amqp.performatives import Attach
    from cogwork.container.mesh.connection import Owner
    from cogwork.dataplane.link import Link
    from cogwork.dataplane.transport.outgoing import OutgoingLink
    from cogwork.dataplane.transport.session_end import Session

__all__ = ("DataConnection",)

ACCEPTED = 0x24
"""The outcome's descriptor code (AMQP 1.0 §3.4.2)."""


class Draining(Protocol):
    """Who asks for drains."""

    def drained(self) -> None:
        """Hear that all has come that was sent on the credit."""


class DataConnection(MeshConnection):
    """Carries tunnels, and counts what they carry."""

    role = "data"

    def __init__(self, owner: Owner, number: int) -> None:
        super().__init__(owner, number)
        self.settings = replace(SETTINGS, idle_timeout_s=owner.silence_s)
        self._carried = (0, 0)

    @property
    def carried(self) -> tuple[int, int]:
        """Counts the messages that came over it, and that went over it, whoever sent them."""
        sessions = self.connection.sessions
        ends = [link.end for session in sessions for link in session.links.values()]
        counts = [self._carried, self.connection.passed, *map(_count_of, ends)]
        return sum(incoming for incoming, _ in counts), sum(outgoing for _, outgoing in counts)

    def on_stopping(self, link: Link) -> None:
        """Keep the count of a link that is about to end."""
        (incoming, outgoing), (more_in, more_out) = self._carried, _count_of(link.end)
        self._carried = incoming + more_in, outgoing + more_out
        super().on_stopping(link)

    def on_drained(self, link: Link) -> None:
        """Have whoever asked for a drain hear that it is over."""
        if isinstance(link.end, UpstreamLink):
            cast("Draining", link.context).drained()

    def begin(self) -> None:
        """Let sessions of others pass."""
        self.connection.relay = self.owner.on_begin

    def on_attach(self, link: Link, attach: Attach) -> None:
        """Have the attach decided."""
        self.owner.on_attach(link, attach)

    def on_settled_by_sender(
        self, session: Session, first: int, last: int, state: bytes, *, settled: bool
    ) -> None:
        """A shard confirms what was claimed of items that it sent."""
        if not settled:
            return
        code = state[2] if len(state) > 2 else ACCEPTED
        for link in session.owner.links.values():
            if isinstance(link.end, UpstreamLink):
                link.end.confirm(first, last, code, None if code == ACCEPTED else state)


def _count_of(end: IncomingLink | OutgoingLink | None) -> tuple[int, int]:
    """Count the messages that came, and went, by a link that has not ended."""
    if end is None or end.detached:
        return 0, 0
    return (end.deliveries, 0) if isinstance(end, IncomingLink) else (0, end.deliveries)
