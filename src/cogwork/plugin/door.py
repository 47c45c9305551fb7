"""How a gateway sends and receives: a door into the container's address space.

Theory of operation. Behind the door is a connection like that of any client, but without a socket:
permissions, credit, outcomes and settlement are the same, and so is what `cogwork status` shows. A
gateway calls `post` and `Inlet` methods as it works through its own input, and `flush` once at the
end of that; what comes from the container is handed to it in batches.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("Arrival", "Code", "Door", "Inlet", "Receiver", "Sender")


class Code(IntEnum):
    """What became of a delivery: descriptor codes of outcomes (AMQP 1.0 §3.4)."""

    LOST = 0x01
    ACCEPTED = 0x24
    REJECTED = 0x25
    RELEASED = 0x26
    MODIFIED = 0x27


class Arrival(NamedTuple):
    """A message that came in.

    Attributes:
        message: Encoded.
        token: Names it to `Inlet.settle`.
        is_settled: Whether nobody waits for its outcome.
    """

    message: bytes
    token: int
    is_settled: bool


class Sender(Protocol):
    """Hears what became of what was posted."""

    def on_outcome(self, token: int, code: int, reason: str) -> None:
        """A message has its outcome; called once for each that was not posted settled.

        Args:
            token: As given to `post`.
            code: One of `Code`.
            reason: What the other end says of a rejection; empty where it says nothing.
        """

    def on_credit(self) -> None:
        """Messages can be posted again after `post` has returned False."""

    def on_closed(self) -> None:
        """Somebody has closed the door; the gateway may open another one."""


class Receiver(Protocol):
    """Gets what comes to one address."""

    def on_attached(self, address: str) -> None:
        """The inlet stands; `address` is the one given to it, where it asked for any."""

    def on_arrivals(self, arrivals: Sequence[Arrival]) -> None:
        """Messages have come; there are no more of them than there was credit for."""

    def on_closed(self, reason: str) -> None:
        """Nothing comes any more: refused, detached, or the door has closed."""


class Inlet(Protocol):
    """A receiving link."""

    def grant(self, credit: int) -> None:
        """Set how many more messages may come now."""

    def settle(self, token: int, code: Code) -> None:
        """Say what became of a message that was not sent settled."""

    def close(self) -> None:
        """Detach; what was not settled is in doubt, or released, as its address has it."""


class Door(Protocol):
    """What a gateway has of its container."""

    def post(self, message: bytes, token: int, *, is_settled: bool) -> bool:
        """Send a message to the address in its `to`.

        Args:
            message: Encoded, of at most `size_bytes_max`.
            token: Names it to `Sender.on_outcome`.
            is_settled: Whether no outcome is wanted.

        Returns:
            False where there is no credit; `Sender.on_credit` tells when there is.
        """

    @property
    def size_bytes_max(self) -> int:
        """How large a message may be; 0 for any size, and until that is known."""

    def is_served(self, address: str) -> bool:
        """Return whether a node, or a receiver anywhere in the mesh, stands at an address now."""

    def attach(
        self, address: str | None, receiver: Receiver, credit: int, *, is_exclusive: bool = False
    ) -> Inlet:
        """Receive from an address.

        Args:
            address: Or None for a new one of its own, which goes with the inlet.
            receiver: Gets the messages.
            credit: How many may come at first.
            is_exclusive: Whether nobody else is to receive there; else it is refused.
        """

    def flush(self) -> None:
        """Have all that was posted, settled and granted go on its way now."""

    def close(self) -> None:
        """Take the door out of use, with every inlet."""
