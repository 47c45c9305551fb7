SOURCE_HASH: str

class Malformed(Exception): ...

def decode(
    data: bytes | bytearray | memoryview, offset: int = 0, end: int | None = None
) -> tuple[object, int]: ...
