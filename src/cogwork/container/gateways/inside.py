"""Where a gateway's connection comes in: no listener, but as listeners call theirs."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ("Inside", "NoSocket")


@dataclass(frozen=True, slots=True)
class Inside:
    """What stands where a listener does.

    Attributes:
        name: The gateway's.
        scheme: As listeners call theirs.
    """

    name: str
    scheme: str = "inside"

    @property
    def is_plain(self) -> bool:
        """Whether a socket carries AMQP as it is: there is none."""
        return False

    @property
    def is_for_links(self) -> bool:
        """Whether other containers connect here and nobody else."""
        return False

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect."""
        return True

    @property
    def endpoint(self) -> str:
        """The gateway's name."""
        return self.name


class NoSocket:
    """What stands where a connection's socket does."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        """Start with no descriptor.

        Args:
            name: Of the gateway.
        """
        self._name = name

    def getpeername(self) -> str:
        """Name the gateway, as a Unix-domain socket does its path."""
        return f"gateway:{self._name}"
