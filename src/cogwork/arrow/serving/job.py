"""What a container tells its reader, and its clients of readers; loads nothing large."""

from __future__ import annotations

from msgspec import Struct

from cogwork.amqp.types import Symbol

__all__ = ("OFFERED", "ReaderJob")

OFFERED = Symbol("cogwork:arrow")
"""A container that has readers offers this; the property tells their port for each scheme."""


class ReaderJob(Struct, frozen=True):
    """What a reader is told.

    Attributes:
        container: The container's id.
        number: Of the reader, from 0 on.
        fd: The socket to the container.
        ports: One for each configured listener that is at a port, in their order.
    """

    container: str
    number: int
    fd: int
    ports: list[int]
