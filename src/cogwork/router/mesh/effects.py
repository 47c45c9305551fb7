"""What the container must do after an event: nothing here happens by itself."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct

from cogwork.router.mesh.wire import encode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.router.mesh.messages import Interest, Message

__all__ = (
    "Close",
    "Effect",
    "Effects",
    "Hosts",
    "InterestChanged",
    "NeighbourDown",
    "NeighbourUp",
    "PathsChanged",
    "Reason",
    "Report",
    "Send",
    "Severity",
)


class Reason(StrEnum):
    """Why a connection is closed."""

    SELF = "link to itself"
    DUPLICATE_ID = "duplicate container id"
    VERSION = "protocol version mismatch"
    VIRTUAL_HOSTS = "virtual host mismatch"
    CLUSTER = "another cluster"
    DUPLICATE_LINK = "duplicate link"
    RESTARTED = "restarted"
    DEAD = "no hello"
    MALFORMED = "malformed message"
    FLOOD = "too many messages"
    TOO_MUCH = "beyond the bounds"
    FULL = "too many neighbours"


class Severity(StrEnum):
    """How loud a report is."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Send(Struct, frozen=True):
    """Send these bytes on a link's control connection."""

    link: int
    data: bytes


class Close(Struct, frozen=True):
    """Close a link's pair of connections, and tell the other end why.

    Attributes:
        link: Which.
        reason: For the program: a duplicate is dialled again only when its neighbour is down.
        description: For people, and for the other end.
    """

    link: int
    reason: Reason
    description: str


class NeighbourUp(Struct, frozen=True):
    """Use this link for a neighbour; also where another one was used before."""

    neighbour: str
    link: int


class NeighbourDown(Struct, frozen=True):
    """No link to this neighbour is left."""

    neighbour: str


class PathsChanged(Struct, frozen=True):
    """The ways from here, or their costs, have changed.

    Attributes:
        next_hops: Container to the neighbour that is now the next hop, where that has changed;
            None for one that cannot be reached any more.
    """

    next_hops: Mapping[str, str | None]


class InterestChanged(Struct, frozen=True):
    """Another container's interests have changed.

    Attributes:
        origin: The container.
        removed: What it has no longer, by label.
        added: What is new or has new figures, by label.
    """

    origin: str
    removed: Mapping[int, Interest]
    added: Mapping[int, Interest]


class Hosts(Struct, frozen=True):
    """A neighbour takes clients at these hosts; none: send it nobody."""

    neighbour: str
    hosts: tuple[str, ...]


class Report(Struct, frozen=True):
    """A line for the log."""

    severity: Severity
    text: str


Effect = (
    Send | Close | NeighbourUp | NeighbourDown | PathsChanged | InterestChanged | Hosts | Report
)


class Effects:
    """Where the parts of the mesh put what is to be done."""

    __slots__ = ("_encoded", "_waiting")

    def __init__(self) -> None:
        self._waiting: list[Effect] = []
        self._encoded: dict[int, tuple[Message, bytes]] = {}

    def add(self, effect: Effect) -> None:
        """Add one."""
        self._waiting.append(effect)

    def send(self, link: int, message: Message) -> int:
        """Add a message to one neighbour; return its size in bytes.

        The same object to several neighbours is encoded once.
        """
        known = self._encoded.get(id(message))
        if known is None:
            known = self._encoded[id(message)] = (message, encode(message))
        data = known[1]
        self._waiting.append(Send(link, data))
        return len(data)

    def report(self, severity: Severity, text: str) -> None:
        """Add a line for the log."""
        self._waiting.append(Report(severity, text))

    def take(self) -> list[Effect]:
        """Return all and forget them."""
        taken, self._waiting = self._waiting, []
        self._encoded.clear()
        return taken
