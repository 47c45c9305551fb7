"""Appends a container's own records to a stream, and waits for nobody."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from cogwork.dataplane.messages import Message

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.container.outgoing import Outgoing
    from cogwork.container.virtual_host import VirtualHost

__all__ = ("CONTENT_TYPE", "Appender", "head_of", "message_of")

CONTENT_TYPE = "application/json"

_DATA_SECTION = b"\x00\x53\x75\xb0"

log = logging.getLogger("cogwork")


def head_of(subject: str) -> bytes:
    """Encodes what stands before the body in all messages with one subject."""
    whole = Message(b"", subject=subject, content_type=CONTENT_TYPE).encode()
    return whole[: whole.rindex(b"\x00\x53\x75")]


def message_of(head: bytes, body: bytes) -> bytes:
    """Encodes a message whose body is one data section."""
    return b"".join((head, _DATA_SECTION, len(body).to_bytes(4, "big"), body))


class Appender:
    """One stream's records from this container. Owned by who makes the records.

    Attributes:
        address: The stream's.
        missed: Records that the stream has not taken.
    """

    def __init__(
        self, outgoing: Outgoing, vhost: VirtualHost, address: str, under_way_max: int
    ) -> None:
        """Has appended nothing.

        Args:
            outgoing: Sends the container's messages.
            vhost: Where the stream is.
            address: The stream's.
            under_way_max: How many records may wait for the stream at once.
        """
        self.address = address
        self.missed = 0
        self._outgoing = outgoing
        self._vhost = vhost
        self._under_way = 0
        self._under_way_max = under_way_max
        self._is_failing = False

    @property
    def room(self) -> int:
        """Counts the records that may be appended now."""
        return self._under_way_max - self._under_way

    def append(self, message: bytes, on_outcome: Callable[[bool], object] | None = None) -> None:
        """Appends a record, or counts it as missed.

        Args:
            message: Encoded.
            on_outcome: Hears whether the stream has taken it; perhaps before this returns.
        """
        self._under_way += 1
        done = partial(self._end, on_outcome)
        if self.room < 0 or not self._outgoing.send(self._vhost, self.address, message, done):
            self._end(on_outcome, accepted=False)

    def _end(self, on_outcome: Callable[[bool], object] | None, *, accepted: bool) -> None:
        self._under_way -= 1
        if not accepted:
            self.missed += 1
        if self._is_failing is accepted:
            self._is_failing = not accepted
            self._tell()
        if on_outcome is not None:
            on_outcome(accepted)

    def _tell(self) -> None:
        """Logs once that the stream takes nothing, and once that it does again."""
        if self._is_failing:
            log.warning("%s does not take this container's records: they are counted", self.address)
        else:
            log.info("%s takes this container's records again", self.address)
