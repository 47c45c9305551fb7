"""What a container tells its reader, and its clients of readers; loads nothing large."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from cogwork.amqp.types import Symbol

if TYPE_CHECKING:
    from cogwork.config.settings import Listen

__all__ = ("OFFERED", "ReaderJob", "place_of")

OFFERED = Symbol("cogwork:arrow")
"""A container that has readers offers this; the property tells their port for each scheme."""


class ReaderJob(Struct, frozen=True):
    """What a reader is told.

    Attributes:
        container: The container's id.
        number: Of the reader, from 0 on.
        fd: The socket to the container.
        ports: One for each listener that was configured at a port at the start, by `place_of`.
    """

    container: str
    number: int
    fd: int
    ports: dict[str, int]


def place_of(listen: Listen) -> str:
    """Name a listener by what a reload of the configuration leaves as it is."""
    return f"{listen.scheme}://{listen.endpoint}"
