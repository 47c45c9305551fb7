"""Appends a container's own records to a stream, and waits for nobody."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from cogwork.container.vhost.outgoing import ACCEPTED, RECEIVED
from cogwork.dataplane.addresses.port import Port
from cogwork.dataplane.message.messages import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cogwork.container.vhost.virtual_host import VirtualHost

__all__ = ("CONTENT_TYPE", "DATA_SECTION", "Appender", "head_of", "message_of")

CONTENT_TYPE = "application/json"

DATA_SECTION = b"\x00\x53\x75\xb0"
"""What begins a body of less than 4 GiB, before its size."""

GROUP_BITS = 16
GROUP_MASK = (1 << GROUP_BITS) - 1
"""A token is a group's number and a record's place in it."""

log = logging.getLogger("cogwork")


def head_of(subject: str) -> bytes:
    """Encode what stands before the body in all messages with one subject."""
    whole = Message(b"", subject=subject, content_type=CONTENT_TYPE).encode()
    return whole[: whole.rindex(b"\x00\x53\x75")]


def message_of(head: bytes, body: bytes) -> bytes:
    """Encode a message whose body is one data section."""
    return b"".join((head, DATA_SECTION, len(body).to_bytes(4, "big"), body))


class _Group:
    """Records that were appended together: how many have no outcome yet, and which failed."""

    __slots__ = ("failed", "left", "on_done")

    def __init__(self, left: int, on_done: Callable[[list[int]], object] | None) -> None:
        self.left = left
        self.failed: list[int] = []
        self.on_done = on_done


class Appender:
    """One stream's records from this container. Owned by who makes the records.

    Attributes:
        address: The stream's.
        missed: Records that the stream has not taken, and whose maker does not hear of it: who does
            may append them again.
    """

    def __init__(self, vhost: VirtualHost, address: str, under_way_max: int) -> None:
        """Initialize it; it has appended nothing.

        Args:
            vhost: Where the stream is.
            address: The stream's.
            under_way_max: How many records may wait for the stream at once.
        """
        self.address = address
        self.missed = 0
        self._name = address.encode()
        self._vhost = vhost
        self._port = Port(vhost.core, self)
        self._groups: dict[int, _Group] = {}
        self._number = 0
        self._under_way = 0
        self._under_way_max = under_way_max
        self._is_failing = False

    @property
    def room(self) -> int:
        """Counts the records that may be appended now."""
        return self._under_way_max - self._under_way

    def append(
        self, messages: Sequence[bytes], on_done: Callable[[list[int]], object] | None = None
    ) -> None:
        """Append records in order; those that the stream does not take are missed, or heard of.

        Args:
            messages: Encoded; at most 65,536.
            on_done: Hears once all have an outcome which of them were not taken, by their places;
                perhaps before this returns.
        """
        group = _Group(len(messages), on_done)
        if len(messages) > self.room:
            self._end(group, list(range(len(messages))))
            return
        self._number += 1
        self._groups[self._number] = group
        self._under_way += len(messages)
        send, port, name = self._vhost.space.send, self._port, self._name
        token = self._number << GROUP_BITS
        for at, message in enumerate(messages):
            if not send(port, token + at, name, message, False):
                port.outcomes.append((token + at, 0, None, True))
        if port.outcomes:
            self.on_batch(port)

    def on_batch(self, port: Port) -> None:
        """Take in outcomes."""
        outcomes, port.outcomes = port.outcomes, []
        port.arrivals.clear()
        port.woken.clear()
        for token, code, _state, _settled in outcomes:
            group = self._groups.get(token >> GROUP_BITS)
            if group is None or code == RECEIVED:
                continue
            self._under_way -= 1
            group.left -= 1
            if code != ACCEPTED:
                group.failed.append(token & GROUP_MASK)
            if not group.left:
                del self._groups[token >> GROUP_BITS]
                self._end(group, sorted(group.failed))

    def _end(self, group: _Group, failed: list[int]) -> None:
        if group.on_done is None:
            self.missed += len(failed)
        if self._is_failing is not bool(failed):
            self._is_failing = bool(failed)
            self._tell()
        if group.on_done is not None:
            group.on_done(failed)

    def _tell(self) -> None:
        """Log once that the stream takes nothing, and once that it does again."""
        if self._is_failing:
            log.warning("%s does not accept this container's records", self.address)
        else:
            log.info("%s accepts this container's records again", self.address)
