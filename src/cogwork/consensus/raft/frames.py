"""Puts what is for one neighbour into few frames, each message encoded once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.consensus.raft.messages import Append
from cogwork.consensus.raft.wire import VERSION, encode

if TYPE_CHECKING:
    from cogwork.consensus.raft.heartbeats import Beat
    from cogwork.consensus.raft.messages import Message

__all__ = ("FRAME_BYTES", "Frames")

FRAME_BYTES = 1024 * 1024
"""A frame that has so much takes no further message."""

JOINED_BYTES_MAX = 2048
"""Parts that are larger on average are left as they are: it would cost more to join them."""

_VERSION = bytes((VERSION,))


class _Frame:
    __slots__ = ("parts", "size_bytes")

    def __init__(self) -> None:
        self.parts: list[bytes] = [_VERSION]
        self.size_bytes = 1


class Frames:
    """What goes out at the end of a turn."""

    __slots__ = ("_encoded", "_full", "_open")

    def __init__(self) -> None:
        self._open: dict[str, _Frame] = {}
        self._full: list[tuple[str, _Frame]] = []
        self._encoded: dict[int, tuple[Append, list[bytes], int]] = {}

    def add(self, to: str, group: int, message: Message | Beat) -> None:
        """Adds a message; entries that another neighbour gets, too, are encoded once."""
        if type(message) is Append:
            parts, size_bytes = self._encode_once(group, message)
        else:
            parts = encode(group, message)
            size_bytes = sum(map(len, parts))
        frame = self._open.get(to)
        if frame is None:
            frame = self._open[to] = _Frame()
        elif frame.size_bytes + size_bytes > FRAME_BYTES and len(frame.parts) > 1:
            self._full.append((to, frame))
            frame = self._open[to] = _Frame()
        frame.parts += parts
        frame.size_bytes += size_bytes

    def _encode_once(self, group: int, message: Append) -> tuple[list[bytes], int]:
        known = self._encoded.get(id(message))
        if known is None:
            parts = encode(group, message)
            known = self._encoded[id(message)] = (message, parts, sum(map(len, parts)))
        return known[1], known[2]

    def __bool__(self) -> bool:
        return bool(self._open)

    def take(self) -> list[tuple[str, list[bytes]]]:
        """Returns all frames, in parts, with receivers, and forgets them."""
        if not self._open:
            return []
        frames: list[tuple[str, list[bytes]]] = []
        joined: list[tuple[list[bytes], list[bytes]]] = []
        for to, frame in (*self._full, *self._open.items()):
            parts = frame.parts
            if frame.size_bytes < JOINED_BYTES_MAX * len(parts):
                data = next((data for known, data in joined if known == parts), None)
                if data is None:
                    data = [b"".join(parts)]
                    joined.append((parts, data))
                parts = data
            frames.append((to, parts))
        self._open, self._full, self._encoded = {}, [], {}
        return frames
