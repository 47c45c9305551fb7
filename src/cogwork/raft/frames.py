"""Puts what is for one neighbour into few frames, each message encoded once.

Compiled: all that a turn sends passes here.
"""

import cython
from cython.cimports.cogwork.raft.wire import encode

from cogwork.raft.messages import Append
from cogwork.raft.wire import VERSION

__all__ = ("FRAME_BYTES", "SOURCE_HASH", "Frames")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

FRAME_BYTES = 1024 * 1024
FRAME_BYTES_FULL = cython.declare(int64_t, FRAME_BYTES)

# Parts that are larger on average are left as they are: it would cost more to join them.
JOINED_BYTES_MAX = cython.declare(int64_t, 4096)

_VERSION = cython.declare(bytes, bytes((VERSION,)))


class Frame:
    """A frame that is being filled, in parts."""


class Encoded:
    """A message in parts."""


def new_frame():
    frame: Frame = Frame.__new__(Frame)
    frame.parts = [_VERSION]
    frame.size_bytes = 1
    return frame


def encoded(group, message):
    made: Encoded = Encoded.__new__(Encoded)
    made.message = message
    made.parts = encode(group, message)
    for part in made.parts:
        made.size_bytes += len(part)
    return made


class Frames:
    """What goes out at the end of a turn."""

    def __init__(self) -> None:
        self._open = {}
        self._full = []
        self._encoded = {}

    def add(self, to, group, message):
        """Add a message; entries that another neighbour gets, too, are encoded once."""
        frame: Frame
        made: Encoded
        known = self._open.get(to)
        if type(message) is Append:
            made = self.encode_once(group, message)
        else:
            made = encoded(group, message)
        if known is None:
            frame = self._open[to] = new_frame()
        else:
            frame = known
            if frame.size_bytes + made.size_bytes > FRAME_BYTES_FULL and len(frame.parts) > 1:
                self._full.append((to, frame))
                frame = self._open[to] = new_frame()
        frame.parts += made.parts
        frame.size_bytes += made.size_bytes
        return 0

    def encode_once(self, group, message):
        key = id(message)
        made = self._encoded.get(key)
        if made is None:
            made = self._encoded[key] = encoded(group, message)
        return made

    def __bool__(self) -> bool:
        return len(self._open) > 0

    def take(self):
        """Return all frames, in parts, with receivers, and forget them."""
        frame: Frame
        frames: list = []
        known: list = []
        if not self._open:
            return frames
        for to, frame in (*self._full, *self._open.items()):
            if frame.size_bytes < JOINED_BYTES_MAX * len(frame.parts):
                frames.append((to, joined(frame.parts, known)))
            else:
                frames.append((to, frame.parts))
        self._open = {}
        self._full = []
        self._encoded = {}
        return frames


def joined(parts, known):
    """Join parts, once for all frames that have the same."""
    for theirs, data in known:
        if theirs == parts:
            return data
    data = [b"".join(parts)]
    known.append((parts, data))
    return data
