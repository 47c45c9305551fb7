SOURCE_HASH: str
DESCRIBED_DEPTH_MAX: int

def fields_of(body: bytes) -> dict[str, object] | str: ...
