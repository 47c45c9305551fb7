from collections.abc import Iterator, Sequence

from cogwork.plugin.engine.commands import Command

SOURCE_HASH: str

def encode_entry(commands: Sequence[bytes], time_ms: int) -> bytes: ...
def decode_entry(payload: bytes) -> Iterator[Command]: ...
