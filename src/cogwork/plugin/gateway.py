"""What a gateway is: it lets programs of another protocol talk to the addresses of a container.

Theory of operation. A container makes the gateways that its configuration names, starts them when
it listens, and ticks them; when it stops, they drain first, while clients are still connected. A
gateway owns its sockets and watches them with the container's event loop, which it gets as an
argument: it blocks nowhere, has no thread, and works in bounded batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from cogwork.amqp.errors import CogworkError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cogwork.plugin.door import Door, Sender

__all__ = (
    "Gateway",
    "GatewayContext",
    "GatewayError",
    "GatewayFactory",
    "GatewayListenError",
    "Watch",
)


class GatewayError(CogworkError):
    """A gateway cannot be used as it is configured."""


class GatewayListenError(GatewayError):
    """A gateway cannot listen where it is to."""


class Watch(Protocol):
    """The event loop, as far as a gateway needs it."""

    def add_reader(self, fd: int, callback: Callable[[], object], /) -> object:
        """Call back whenever a descriptor is readable."""

    def remove_reader(self, fd: int, /) -> bool:
        """End that."""

    def call_soon(self, callback: Callable[[], object], /) -> object:
        """Call back once, in the next turn."""


@dataclass(frozen=True, slots=True)
class GatewayContext:
    """What a gateway is made with.

    Attributes:
        name: Which it is, to people and in the configuration.
        options: From the configuration, by name.
        container_id: Whose gateway it is.
        now_s: The monotonic clock.
        token: Makes secrets: so many random bytes.
        warn: Tells the operator.
        note_refusal: Tells the security log of a client that may not connect: where it is, and why.
        open_door: Opens the door; the sender hears of outcomes. With a user, that one's
            permissions hold. Without one everything is allowed but to manage, while no user is
            configured, and nothing as soon as there is one; never what anonymous clients may do.
        is_user: Tells whether a user of a name is configured, by now.
        has_users: Whether any was, when the gateway was made.
    """

    name: str
    options: Mapping[str, object]
    container_id: str
    now_s: Callable[[], float]
    token: Callable[[int], bytes]
    warn: Callable[[str], None]
    note_refusal: Callable[[str, str], None]
    open_door: Callable[[Sender, str | None], Door]
    is_user: Callable[[str], bool]
    has_users: bool


class Gateway(Protocol):
    """A gateway's life: made, started, ticked, reloaded, drained, closed."""

    def start(self, watch: Watch) -> None:
        """Open its sockets, and lets clients in.

        Raises:
            GatewayListenError: It cannot listen there.
        """

    def tick(self, now_s: float) -> None:
        """Let time pass; called about ten times a second, with the monotonic clock."""

    def reload(self) -> None:
        """Read the files that its options name again, and end what they do not allow any more.

        Raises:
            GatewayError: One is wrong; what was read before holds on.
        """

    def drain(self) -> None:
        """Take on nothing new; what is under way goes on."""

    @property
    def is_drained(self) -> bool:
        """Whether nothing is under way any more."""

    def close(self) -> None:
        """Close its sockets; what is under way is given up."""

    @property
    def endpoints(self) -> list[str]:
        """Where it listens, as URLs."""

    def status(self) -> Mapping[str, object]:
        """Return figures for people and for `$management`; values are plain data."""


class GatewayFactory(Protocol):
    """Makes a gateway: what an entry point of the group `cogwork.gateways` names."""

    def __call__(self, context: GatewayContext) -> Gateway:
        """Make a gateway that does not listen yet.

        Raises:
            GatewayError: An option is wrong, or a library that it needs is missing.
        """
