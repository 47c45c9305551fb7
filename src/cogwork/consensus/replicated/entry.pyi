from collections.abc import Iterator, Sequence

from cogwork.consensus.commands import Command

SOURCE_HASH: str

def encode_entry(commands: Sequence[bytes], time_ms: int) -> bytes: ...
def decode_entry(payload: bytes) -> Iterator[Command]: ...
