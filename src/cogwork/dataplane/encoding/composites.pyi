from cogwork.amqp.composite import Composite

SOURCE_HASH: str

def encode(composite: Composite) -> bytes: ...
def decode(
    data: bytes | bytearray | memoryview, offset: int = 0, end: int | None = None
) -> tuple[object, int]: ...
