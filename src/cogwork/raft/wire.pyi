from collections.abc import Iterator

from cogwork.raft.heartbeats import Beat
from cogwork.raft.messages import Message

SOURCE_HASH: str
VERSION: int
FRAME_BYTES_MAX: int
"""One entry of the largest size fits, with what may come before it."""
ENTRIES_MAX: int
"""In one message."""

def encode(group: int, message: Message | Beat) -> list[bytes]: ...
def decode(data: bytes | memoryview) -> Iterator[tuple[int, Message | Beat]]: ...
