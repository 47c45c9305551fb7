"""Where a service's requests come."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cogwork.amqp.terminus import Source
from cogwork.client.receiver import Receiver
from cogwork.dataplane.client.inbox import Inbox
from cogwork.dataplane.message.messages import Message

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.amqp.types import Symbol
    from cogwork.client.mesh import Mesh
    from cogwork.client.rpc.outlet import Outlet

__all__ = ("Inlet",)


class Inlet(Receiver[Message]):
    """A receiving link of a service.

    Attributes:
        inbox: Holds what was taken until it is done.
        outlet: Where replies to what comes here go.
    """

    def __init__(
        self,
        mesh: Mesh,
        address: str,
        mode: Symbol,
        *,
        window: int,
        outlet: Outlet,
        take: Callable[[Inbox, Outlet], object],
    ) -> None:
        """Is not attached yet.

        Args:
            mesh: Keeps it attached.
            address: Where requests come.
            mode: Whether they go to one server (move) or to each (copy).
            window: Requests that may be on their way or under work.
            outlet: Where replies go.
            take: Called when requests are there.
        """
        self.inbox = Inbox(mesh.flusher, mesh.create_future, window)
        super().__init__(mesh, Source(address=address, distribution_mode=mode), self.inbox)
        self.outlives_gaps = True  # whoever asks all servers does not wait for any of them
        self.inbox.listener = partial(take, self.inbox, outlet)
