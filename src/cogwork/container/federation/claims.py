"""What linked containers say of the addresses that one receiver there has for itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cogwork.container.mesh.elsewhere import Elsewhere
from cogwork.router.mesh.messages import Interest, InterestKind

if TYPE_CHECKING:
    from cogwork.container.mesh.service import MeshService
    from cogwork.container.vhost.virtual_host import VirtualHost

__all__ = ("Claim", "Claims")

FIGURE_BITS = 32


class Claim(NamedTuple):
    """One container's claim; of several of one address the least holds, wherever they are compared.

    Attributes:
        standing: 0 for a first claim; less where its session has held the address before.
        container: Where it is.
        owner: A digest of the session that has it.
    """

    standing: int
    container: str
    owner: int


class Claims:
    """The claims that other containers announce in one virtual host, and this one's to them."""

    def __init__(self, mesh: MeshService, vhost: VirtualHost) -> None:
        """Know of none.

        Args:
            mesh: Tells the others, and hears them.
            vhost: Whose addresses they are.
        """
        self._mesh = mesh
        self._vhost = vhost
        self._said = Elsewhere()

    @property
    def container_id(self) -> str:
        """This container's id, as others know it."""
        return self._mesh.id

    def at(self, address: str) -> list[Claim]:
        """Return the claims of other containers to an address, the one that holds first."""
        return sorted(
            Claim(1 - said.consumers, container, said.producers << FIGURE_BITS | said.backlog)
            for container, said in self._said.at(address).items()
        )

    def announce(self, address: str, claim: Claim) -> None:
        """Tell the others of a claim of this container."""
        upper, lower = divmod(claim.owner, 1 << FIGURE_BITS)
        self._set(address, 1 - claim.standing, upper, lower)

    def withdraw(self, address: str) -> None:
        """Tell the others that this container claims an address no longer."""
        self._set(address, 0, 0, 0)

    def _set(self, address: str, *figures: int) -> None:
        kind = InterestKind.CLAIM
        self._mesh.set_interest(Interest(kind, self._vhost.name, address, *figures))

    def take_interest(self, container: str, interest: Interest) -> None:
        """Take note of another container's claim, and see whether it comes before one here."""
        self._said.take(container, interest)
        self._vhost.holders.compare(interest.address)

    def lose_interest(self, container: str, interest: Interest) -> None:
        """Take note that another container claims something no longer."""
        self._said.lose(container, interest)
